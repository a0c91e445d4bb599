"""Classes as a user types them, `local_sgd:period=8` or `top_k(0.01)`: found by name, settings checked, object built.

The text is split here; whether a value is of the type of its setting, pydantic decides.
"""

from __future__ import annotations

import ast
import inspect
import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from minidl.arguments import one_of

Classes = Mapping[str, type]
LONGEST = 1000  # characters
HOW_TO_IMPORT = "one of your own needs --import FILE.py"
_HEAD = re.compile(r"(?P<name>[^\W\d][\w-]*)\s*(?::(?P<settings>.*)|\((?P<inside>.*)\))?")
_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|.""")
_SETTING = re.compile(r"(?P<name>\w[\w-]*)\s*=(?!=)\s*(?P<value>.*)")
_WORD = re.compile(r"[^\W\d]\w*(-[^\W\d]\w*)*|\d+[A-Za-z]\w*")  # ring, zb-h1, 1f1b


class UnreadableError(ValueError):
    """The text has not the form of a name with settings."""


@dataclass(frozen=True)
class Typed:
    """A name and its settings, by place and by name; their values are still text."""

    name: str
    values: list[str]
    named: dict[str, str]


def parse(kind: str, text: str) -> Typed:
    """Parse `name`, `name:setting=value,...` or `name(value, setting=value, ...)`.

    Hyphens in names stand for underscores.

    Raises
        UnreadableError  the text is none of these
        ValueError       it gives a setting twice

    >>> parse("strategy", "local-sgd:8,algorithm=ring")
    Typed(name='local_sgd', values=['8'], named={'algorithm': 'ring'})
    """
    match = _HEAD.fullmatch(" ".join(text.split())) if len(text) <= LONGEST else None
    if match is None:
        raise UnreadableError(f"{text[:LONGEST]!r} is no {kind}: write a name, or name:setting=value,setting=value")
    name, split = match["name"].replace("-", "_"), _split(match["settings"] or match["inside"] or "")
    if split is None:
        raise UnreadableError(
            f"the settings in {text!r} cannot be read: write {name}:setting=value,setting=value; a value with settings "
            "is written with parentheses, as in compressor=top_k(0.01)"
        )
    values, pairs = split
    names = [setting for setting, _ in pairs]
    if twice := [setting for setting in names if names.count(setting) > 1]:
        raise ValueError(f"{name}: {twice[0]} is given twice")
    return Typed(name, values, dict(pairs))


def _split(text: str) -> tuple[list[str], list[tuple[str, str]]] | None:
    """The values by place, and the settings by name, between commas outside of brackets and quotation marks.

    None if the text cannot be read.
    """
    pieces, depth = [""], 0
    for token in _TOKEN.findall(text):
        depth += (token in tuple("([{")) - (token in tuple(")]}"))
        if depth < 0 or (token == ":" and "{" not in text):  # a dict has colons
            return None
        if token == "," and not depth:
            pieces.append("")
        else:
            pieces[-1] += token
    if depth or not text.isprintable():
        return None
    values: list[str] = []
    named: list[tuple[str, str]] = []
    for piece in map(str.strip, pieces if pieces[-1].strip() else pieces[:-1]):
        setting = _SETTING.fullmatch(piece)
        if setting and setting["value"]:
            named.append((setting["name"].replace("-", "_"), setting["value"]))
        elif piece and not setting and not named:
            values.append(piece)
        else:
            return None
    return values, named


def build(kind: str, typed: Typed, known: Classes, nested: Classes, others: Iterable[str] = ()) -> Any:
    """Make the object that was typed.

    Parameters
        kind    what the text stands for, for messages: "strategy", or a setting and its owner
        known   the classes that can be named
        nested  the classes that a setting can name: a setting whose type is a base of some of them is one of those
        others  further settings that a user can type, which the caller has removed; messages name them

    Raises
        ValueError  says what is wrong and what there is
    """
    cls = find(kind, typed.name, known)
    own = settings(cls)
    for setting in (one for one in typed.named if one not in (*own, *others)):
        if owners := [name for name, other in known.items() if setting in settings(other)]:
            name = snake_case(cls.__name__)
            raise ValueError(f"{name} has no setting {setting!r}: it is a setting of {', '.join(owners)}")
    values = values_of(cls, typed, own, nested, others)
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:
        is_named = cls.__name__ in str(error)
        raise ValueError(str(error) if is_named else f"{snake_case(cls.__name__)}: {error}") from error


def values_of(
    cls: type, typed: Typed, known: Mapping[str, inspect.Parameter], nested: Classes, others: Iterable[str] = ()
) -> dict[str, Any]:
    """The values that were typed, by the names of the settings `known` of the class. Raises ValueError as `build`."""
    name = snake_case(cls.__name__)
    for setting in typed.named:
        if not known and not others:
            raise ValueError(f"{name} has no settings, got {setting!r}")
        one_of(f"a setting of {name}", setting, dict.fromkeys((*known, *others)))
    try:
        given = inspect.Signature([*known.values()]).bind(*typed.values, **typed.named).arguments
    except TypeError as error:  # too many values, one that is given twice, or one that is missing
        there_is = f"its settings are {', '.join(known)}" if known else "it has no settings"
        raise ValueError(f"{name}: {error}; {there_is}") from None
    return {
        setting: value_of(name, setting, text, known[setting].annotation, nested) for setting, text in given.items()
    }


def value_of(owner: str, setting: str, text: str, hint: Any, nested: Classes) -> Any:
    """The value of a setting of type `hint`: a number, a word, a list of them, or an object of a class in `nested`.

    Raises
        ValueError  names the owner of the setting, the type and what was typed
    """
    if text in ("true", "false", "none") and not fits(text, hint):  # as other languages write them
        text = text.title()
    refusal = ValueError(f"{owner}: {setting} must be {in_words(hint)}, got {text}")
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
        bases = tuple(one for one in (hint, *get_args(hint)) if inspect.isclass(one))
        fitting = {name: cls for name, cls in nested.items() if issubclass(cls, bases)}
        if fitting and _HEAD.fullmatch(text):
            kind = f"{owner}: {setting}"
            return build(kind, parse(kind, text), fitting, nested)
        words = text[1:-1].split(",") if text[0] + text[-1] == "[]" else [text]
        if not all(_WORD.fullmatch(word.strip()) for word in words):
            raise refusal from None
        value = text if words == [text] else [word.strip() for word in words]
    if isinstance(value, list) and not fits(value, hint):
        value = tuple(value)
    if not fits(value, hint):
        raise refusal
    return value


# ---- types ----


def fits(value: Any, hint: Any) -> bool:
    """Whether the value is of the annotated type. An int is also a float; a bool is not an int, infinity not a float.

    >>> fits(1, float), fits(True, int), fits(None, int | None), fits((1, 2), tuple[int, ...]), fits("a", Literal["b"])
    (True, False, True, True, False)
    >>> fits((0.25, 0.1), Sequence[float]), fits("fast", Sequence[float]), fits(1e999, float)
    (True, False, False)
    """
    from pydantic import ConfigDict, TypeAdapter, ValidationError  # slow to import; most runs need no check

    rules = ConfigDict(strict=True, arbitrary_types_allowed=True, allow_inf_nan=False)
    try:
        TypeAdapter(hint, config=rules).validate_python(value)
    except ValidationError:
        return False
    return True


_WORDS = {int: "a whole number", float: "a number", bool: "True or False", str: "a word", None: "None", ...: "..."}


def in_words(hint: Any) -> str:
    """The annotated type in words, for a message.

    >>> in_words(int | None), in_words(Literal["solo", "majority"]), in_words(Sequence[float])
    ('a whole number or None', 'solo or majority', 'a sequence (a number, ...)')
    """
    origin = get_origin(hint)
    if origin is Callable:
        return "something that cannot be typed here"
    arguments = get_args(hint)
    if str in arguments:  # a word or a function: a user can type the word
        arguments = tuple(one for one in arguments if get_origin(one) is not Callable)
    items = [one if isinstance(one, str) else in_words(one) for one in arguments]
    if origin in (Union, types.UnionType, Literal):
        return " or ".join(items)
    if items:
        return f"a {snake_case(origin.__name__)} ({', '.join([*items, *['...'] * (origin is Sequence)])})"
    return _WORDS.get(None if hint is type(None) else hint) or f"a {snake_case(hint.__name__).replace('_', ' ')}"


# ---- classes and their names ----


def classes(package: types.ModuleType, base: type, bases: Collection[type] = ()) -> dict[str, type]:
    """The subclasses of `base` that the package exports, by name in snake case, without the abstract `bases`."""
    exported = [one for one in (getattr(package, name) for name in package.__all__) if inspect.isclass(one)]
    chosen = [one for one in exported if issubclass(one, base) and one not in (base, *bases)]
    return {snake_case(one.__name__): one for one in sorted(chosen, key=lambda one: one.__name__)}


def snake_case(name: str) -> str:
    """The name of a class as it is typed.

    A capital with a single small letter, as in SlowMo, begins no word.

    >>> snake_case("ParameterServer"), snake_case("LocalSGD"), snake_case("TopK"), snake_case("SlowMo")
    ('parameter_server', 'local_sgd', 'top_k', 'slowmo')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z](?![a-z](?:[A-Z]|$)))|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def find(kind: str, name: str, known: Classes, hint: str = HOW_TO_IMPORT) -> type:
    """The class of that name, regardless of capitals and underscores, or the first with those initials."""
    typed = name.replace("_", "").lower()
    for full, cls in known.items():
        if typed == full.replace("_", ""):
            return cls
    initials = [cls for full, cls in known.items() if "_" in full and typed == "".join(w[0] for w in full.split("_"))]
    return initials[0] if initials else known[one_of(kind, name, known, hint=hint)]


def settings(cls: type) -> dict[str, inspect.Parameter]:
    """The parameters of the class, with their types and defaults."""
    owner = next(one for one in cls.__mro__ if "__init__" in vars(one))
    hints = get_type_hints(cls if "__dataclass_params__" in vars(owner) else owner.__init__)  # type: ignore[misc]
    return {
        name: parameter.replace(annotation=hints.get(name, Any))
        for name, parameter in inspect.signature(cls).parameters.items()
    }


def description(value: object) -> str:
    """The first sentence of the docstring of a class or a function; "" without one of its own."""
    doc = value.__doc__ or ""
    if inspect.isclass(value) and doc.startswith(f"{value.__name__}("):  # that of a dataclass is its signature
        return ""
    text = " ".join(inspect.cleandoc(doc).split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", text)[0]


def defaults(cls: type) -> str:
    """The settings as they are typed, with their defaults: "period=8, algorithm=auto"; "density" has none."""

    def as_typed(value: Any) -> str:
        if isinstance(value, str):
            return value
        return repr(value) if value is None or isinstance(value, (bool, int, float, tuple, list)) else "..."

    return ", ".join(
        name if setting.default is setting.empty else f"{name}={as_typed(setting.default)}"
        for name, setting in settings(cls).items()
    )
