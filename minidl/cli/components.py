"""What is typed for a strategy or a compressor, `local_sgd:period=8` or `top_k(0.01)`, as the object that it names."""

from __future__ import annotations

import ast
import inspect
import keyword
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from minidl.data.checks import one_of

LONGEST = 300  # characters
_HEAD = re.compile(r"(?P<name>[\w-]+)\s*(?::(?P<settings>.*)|\((?P<inside>.*)\))?", re.S)
_CONSTANTS = {"true": "True", "false": "False", "none": "None"}
_RESERVED = re.compile(rf"(?<==)\s*({'|'.join(sorted(set(keyword.kwlist) - set(_CONSTANTS.values())))})\s*(?=[,)]|$)")
"""A reserved word of Python as the value of a setting, as in `variant=async`: read as a plain word."""

Classes = Mapping[str, type]
Parts = Mapping[Any, Classes]


def classes(package: types.ModuleType, base: type) -> dict[str, type]:
    """The classes that the package exports and that are of such a base, by name in snake case.

    Left out are bases of other exported classes, unless they can be used themselves: a dataclass, or a class with an
    `__init__` of its own, has settings.
    """
    exported = [getattr(package, name) for name in package.__all__]
    chosen = [one for one in exported if inspect.isclass(one) and issubclass(one, base) and _is_usable(one, exported)]
    return {snake_case(one.__name__): one for one in sorted(chosen, key=lambda one: one.__name__)}


def _is_usable(cls: type, exported: Sequence[Any]) -> bool:
    has_settings = is_dataclass(cls) or cls.__init__ is not object.__init__  # type: ignore[misc]
    return has_settings or not any(inspect.isclass(one) and one in cls.__subclasses__() for one in exported)


def snake_case(name: str) -> str:
    """The name of a class as it is typed.

    >>> snake_case("ParameterServer"), snake_case("LocalSGD"), snake_case("QSGD"), snake_case("TopK")
    ('parameter_server', 'local_sgd', 'qsgd', 'top_k')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def call_of(kind: str, text: str) -> ast.Call:
    """`name`, `name:setting=value,...` or `name(value, setting=value, ...)` as a call; ValueError where it is none."""
    match = _HEAD.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if match is None:
        raise ValueError(f"{text[:LONGEST]!r} is no {kind}: write a name, or name:setting=value,setting=value")
    name = match["name"].replace("-", "_")
    inside = match["settings"] or match["inside"] or ""
    try:
        call = ast.parse("_(" + _RESERVED.sub(r"'\1'", inside) + ")", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    if not isinstance(call, ast.Call) or not (isinstance(call.func, ast.Name) and call.func.id == "_"):
        raise ValueError(
            f"the settings in {text!r} cannot be read: write {name}:setting=value,setting=value; what has settings of "
            "its own is written with parentheses, as in compressor=top_k(0.01)"
        )
    call.func = ast.Name(name)
    return call


def build(kind: str, call: ast.Call, known: Classes, parts: Parts, others: Iterable[str] = ()) -> Any:
    """The object that the call names among the classes `known`.

    Parameters
        kind    what the classes are, for messages
        parts   by a base class, the classes of that base that can be named: a setting of the type of the base, or of a
                class between, is read as one of them
        others  further settings that the user may write, which the caller has taken out of the call; messages name them

    Raises
        ValueError that says what is wrong and what there is.
    """
    cls = find(kind, ast.unparse(call.func), known)
    name = snake_case(cls.__name__)
    given = _arguments(name, call, settings(cls), others)
    values = {
        setting: value_of(name, setting, node, settings(cls)[setting].annotation, parts)
        for setting, node in given.items()
    }
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:
        is_named = cls.__name__ in str(error)
        raise ValueError(str(error) if is_named else f"{name}: {error}") from error


def value_of(name: str, setting: str, node: ast.expr, hint: Any, parts: Parts) -> Any:
    """What stands behind a setting: a number, a word, a list of them, or one of the parts with its own settings."""
    part = _part(hint, parts)
    if isinstance(node, ast.Name) and node.id in _CONSTANTS and not fits(node.id, hint):
        node = ast.parse(_CONSTANTS[node.id], mode="eval").body  # true, as in other languages
    if part is not None:
        node = _with_underscores(node)
    is_none = isinstance(node, ast.Constant) and node.value is None
    call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    if part is not None and isinstance(call.func, ast.Name) and not is_none:
        kind, known, others = part
        if call.func.id.replace("_", "").lower() in {one.replace("_", "") for one in others}:
            got = f"got {ast.unparse(node)}: choose one of {', '.join(known)}"
            raise ValueError(f"{name}: {setting} must be {hint_text(hint)}, {got}")
        return build(kind, call, known, parts)
    try:
        value = node.id if isinstance(node, ast.Name) else ast.literal_eval(node)  # words need no quotation marks
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"{name}: {setting} must be {hint_text(hint)}, got {ast.unparse(node)}") from None
    if not fits(value, hint):
        raise ValueError(f"{name}: {setting} must be {hint_text(hint)}, got {ast.unparse(node)}")
    return value


def _with_underscores(node: ast.expr) -> ast.expr:
    """`error-feedback(...)`, which reads as a difference, as `error_feedback(...)`."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)):
        return node
    left, right = _with_underscores(node.left), node.right
    name = right.func if isinstance(right, ast.Call) else right
    if not (isinstance(left, ast.Name) and isinstance(name, ast.Name)):
        return node
    whole = ast.Name(f"{left.id}_{name.id}")
    return ast.Call(whole, right.args, right.keywords) if isinstance(right, ast.Call) else whole


def _part(hint: Any, parts: Parts) -> tuple[str, Classes, Classes] | None:
    """Where the setting is an object with settings of its own: its kind, the classes that will do, and the others."""
    for base, known in parts.items():
        for one in (hint, *get_args(hint)):
            if inspect.isclass(one) and issubclass(one, base):
                fitting = {name: cls for name, cls in known.items() if issubclass(cls, one)}
                others = {name: cls for name, cls in known.items() if name not in fitting}
                return snake_case(one.__name__).replace("_", " "), fitting, others
    return None


def find(kind: str, name: str, known: Classes) -> type:
    """The class of that name; capitals and underscores do not matter, and initials will do (ef for ErrorFeedback)."""
    typed = name.replace("_", "").lower()
    for full, cls in known.items():
        if typed == full.replace("_", ""):
            return cls
    initials = [cls for full, cls in known.items() if "_" in full and typed == "".join(w[0] for w in full.split("_"))]
    if len(initials) == 1:
        return initials[0]
    return known[one_of(kind, name, known)]


def settings(cls: type) -> dict[str, inspect.Parameter]:
    """What the class can be given, with types and defaults."""
    hints = get_type_hints(cls if is_dataclass(cls) else cls.__init__)  # type: ignore[misc]
    return {
        name: parameter.replace(annotation=hints.get(name, parameter.empty))
        for name, parameter in inspect.signature(cls).parameters.items()
    }


def description(cls: type) -> str:
    """The first sentence of the class's docstring."""
    text = " ".join((inspect.getdoc(cls) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", text)[0]


def defaults(cls: type) -> str:
    """Its settings as they are typed, with their defaults: "period=8, post_local_after=0"; "density" has none."""
    return ", ".join(
        name if setting.default is setting.empty else f"{name}={default_text(setting.default)}"
        for name, setting in settings(cls).items()
    )


def default_text(value: Any) -> str:
    """The value as it is typed; of one that cannot be typed, the first word of what it is."""
    if isinstance(value, str):
        return value
    return repr(value) if value is None or isinstance(value, (bool, int, float, tuple, list)) else "..."


def fits(value: Any, hint: Any) -> bool:
    """Whether the value is of the annotated type; for types that can be written on the command line.

    An int is a float too.

    >>> fits(1, float), fits(True, int), fits(None, int | None), fits((1, 2), tuple[int, ...]), fits("a", Literal["b"])
    (True, False, True, True, False)
    >>> fits((0.25, 0.1), Sequence[float]), fits("fast", Sequence[float]), fits(1e999, float)
    (True, False, False)
    """
    origin = get_origin(hint)
    if hint is Any or hint is inspect.Parameter.empty:
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if hint is None or hint is type(None):
        return value is None
    if hint in (int, float):
        is_number = isinstance(value, (int, float) if hint is float else int) and not isinstance(value, bool)
        return is_number and abs(value) <= sys.float_info.max  # 1e999 is infinite
    if origin is not None:
        items = get_args(hint)
        return isinstance(origin, type) and isinstance(value, origin) and _items_fit(value, items)
    return isinstance(hint, type) and isinstance(value, hint)


def _items_fit(value: Any, items: tuple[Any, ...]) -> bool:
    if not isinstance(value, (tuple, list)) or not items:  # a word is no sequence of numbers
        return not isinstance(value, (str, bytes)) and not callable(value)
    if items[-1] is Ellipsis or len(items) == 1:
        return all(fits(item, items[0]) for item in value)
    return len(value) == len(items) and all(fits(item, one) for item, one in zip(value, items, strict=True))


_WORDS: dict[Any, str] = {int: "a whole number", float: "a number", bool: "True or False", str: "a word"}


def hint_text(hint: Any) -> str:
    """The annotated type in words.

    >>> hint_text(int | None), hint_text(Literal["solo", "majority"])
    ('a whole number or None', 'solo or majority')
    """
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(hint_text(one) for one in get_args(hint)))
    if origin is Literal:
        return " or ".join(map(str, get_args(hint)))
    if origin is Sequence:
        return f"a sequence ({hint_text(get_args(hint)[0])}, ...)"
    if origin in (tuple, list):
        items = ["..." if one is Ellipsis else hint_text(one) for one in get_args(hint)]
        return f"a {origin.__name__} ({', '.join(items)})"
    if hint is None or hint is type(None):
        return "None"
    if hint in _WORDS:
        return _WORDS[hint]
    if not isinstance(origin or hint, type) or origin is Callable:
        return "something that cannot be typed here"
    return f"a {snake_case((origin or hint).__name__).replace('_', ' ')}"


def _arguments(
    name: str, call: ast.Call, known: Mapping[str, inspect.Parameter], others: Iterable[str]
) -> dict[str, ast.expr]:
    """The nodes of the call by the names of the settings."""
    there_is = f"its settings are {', '.join(known)}" if known else "it has no settings"
    if len(call.args) > len(known) or any(isinstance(one, ast.Starred) for one in call.args):
        raise ValueError(f"{name} was given {len(call.args)} values: {there_is}")
    given: dict[str, ast.expr] = dict(zip(known, call.args, strict=False))
    for pair in call.keywords:
        if pair.arg is None:
            raise ValueError(f"{name}: write setting=value, not **")
        if not known and not others:
            raise ValueError(f"{name} has no setting {pair.arg!r}: it has none at all")
        one_of(f"setting of {name}", pair.arg, dict.fromkeys((*known, *others)))
        if pair.arg in given:
            raise ValueError(f"{name}: {pair.arg} is given twice")
        given[pair.arg] = pair.value
    missing = [one for one, setting in known.items() if setting.default is setting.empty and one not in given]
    if missing:
        raise ValueError(f"{name} needs {' and '.join(missing)}: write {name}({missing[0]}=...), {there_is}")
    return given
