"""The strategies and compressors that a package exports, by the names under which a user types them."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Collection, Mapping
from typing import Any, get_type_hints

from minidl.arguments import one_of

Classes = Mapping[str, type]


def classes(package: types.ModuleType, base: type, bases: Collection[type] = ()) -> dict[str, type]:
    """The subclasses of `base` that the package exports, by name in snake case; without `bases`, to be subclassed."""
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


def find(kind: str, name: str, known: Classes, hint: str = "one of your own needs --import FILE.py") -> type:
    """The class of that name, regardless of capitals and underscores, or the first with those initials."""
    typed = name.replace("_", "").lower()
    for full, cls in known.items():
        if typed == full.replace("_", ""):
            return cls
    initials = [cls for full, cls in known.items() if "_" in full and typed == "".join(w[0] for w in full.split("_"))]
    if initials:
        return initials[0]
    return known[one_of(kind, name, known, hint=hint)]


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
    return ", ".join(
        name if setting.default is setting.empty else f"{name}={_default_text(setting.default)}"
        for name, setting in settings(cls).items()
    )


def _default_text(value: Any) -> str:
    """The value as it is typed; "..." for one that cannot be typed."""
    if isinstance(value, str):
        return value
    return repr(value) if value is None or isinstance(value, (bool, int, float, tuple, list)) else "..."
