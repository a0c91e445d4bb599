"""What is said of names and options that hands know from PyTorch and that are not here: what to type in their place.

`explain_missing_names` and `callable_module` are for modules, `Missing` for attributes of a class, `unknown_option` and
`explains_options` for keyword arguments. The tables of names lie where they are used.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from types import ModuleType
from typing import Any, NoReturn, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

OPTIONS = {  # options that PyTorch has and nothing here
    "amsgrad": "leave it out, the plain rule is used",
    "device": "leave it out, kernels.use('cupy') puts all new tensors on the GPU",
    "dtype": "leave it out, x.to('float64') and model.to('float64') convert",
    "error_if_nonfinite": "leave it out, and see whether the norm that is returned is finite",
    "generator": "leave it out, manual_seed(...) starts the random numbers anew",
    "inplace": "leave it out, the result is always a new tensor",
    "learning_rate": "it is called lr",
    "lr_decay": "leave it out, a schedule such as optim.LambdaLR does it",
    "maximize": "leave it out, and give the loss a minus sign",
    "memory_format": "leave it out, images are (n, c, h, w)",
    "norm_type": "leave it out, the norm is the 2-norm",
    "out": "leave it out, and assign the result",
    "pin_memory": "leave it out, there is no other device to copy to",
    "preserve_rng_state": "leave it out, the second call draws the random numbers of the first",
    "use_reentrant": "leave it out, there is one implementation",
    **dict.fromkeys(("capturable", "differentiable", "foreach", "fused"), "leave it out, there is one implementation"),
    **dict.fromkeys(("layout", "sparse"), "leave it out, arrays and gradients are dense"),
    **dict.fromkeys(("reduce", "size_average"), "type reduction='mean', 'sum' or 'none'"),
}


class Missing:
    """An attribute that is not there, and says what to type."""

    def __init__(self, name: str, hint: str) -> None:
        self._name, self._hint = name, hint

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__!r} object has no attribute {self._name!r}: {self._hint}", name=self._name
        )


def without_missing(names: Iterable[str], kind: type) -> list[str]:
    """The names for `dir()`: those of attributes that are missing are left out."""
    missing = {name for each in kind.__mro__ for name, value in vars(each).items() if isinstance(value, Missing)}
    return [name for name in names if name not in missing]


def explain_missing_names(
    module: str, there: Iterable[str], instead: Mapping[str, str], subpackages: Collection[str] = ()
) -> None:
    """Let a wrong name of a module raise an error with a hint, by giving the module a `__getattr__`.

    The hint is that of `instead`, otherwise the most similar name in `there`. The `__getattr__` is set at run time,
    because a type checker that sees one accepts every name.

    subpackages: modules below this one that are imported when they are first named

    >>> layers = sys.modules["layers"] = ModuleType("layers")
    >>> explain_missing_names("layers", ["Linear"], {"GRU": "type nn.LSTM"})
    >>> layers.linaer
    Traceback (most recent call last):
    AttributeError: module 'layers' has no attribute 'linaer': did you mean 'Linear'?
    """
    lower = {name.lower(): name for name in (*there, *subpackages)}

    def find(name: str) -> ModuleType:
        if name in subpackages:
            return importlib.import_module(f"{module}.{name}")
        message = f"module {module!r} has no attribute {name!r}"
        if name in instead:
            message += f": {instead[name]}"
        elif not name.startswith("_"):
            nearest = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.8)
            message += f": did you mean {lower[nearest[0]]!r}?" if nearest else ""
        raise AttributeError(message, name=name)

    own = vars(sys.modules[module])
    own["__getattr__"] = find
    if subpackages:
        own["__dir__"] = lambda: sorted({*own, *subpackages})


def callable_module(module: str, message: str) -> None:
    """Let a call of the module `module` raise TypeError with `message`."""

    class CalledModule(ModuleType):
        def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
            raise TypeError(message)

        def __reduce__(self) -> tuple[Any, ...]:
            return importlib.import_module, (module,)  # by its name, as cloudpickle does with modules

    sys.modules[module].__class__ = CalledModule


def unknown_option(function: Callable[..., Any], name: str, options: Iterable[str]) -> None:
    """Raise TypeError for the first of `options` that `function`, called `name`, does not take."""
    parameters = inspect.signature(function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for option in options:
        if option not in parameters:
            own = ", ".join(parameter for parameter in parameters if parameter != "self")
            reason = OPTIONS.get(option, f"its arguments are {own}" if own else "it takes no arguments")
            raise TypeError(f"{name} has no option {option!r}: {reason}")


def explains_options(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function; a keyword argument that it does not take is answered with what to type instead."""

    @wraps(function)
    def explained(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if kwargs:
            unknown_option(function, f"{function.__name__}()", kwargs)
        return function(*args, **kwargs)

    return explained
