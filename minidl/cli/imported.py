"""`--import my.py`, `--data my.py`: strategies, compressors, models, data sets and all-reduces of the user, by name."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle

from minidl import compress, data, nn, parallel
from minidl.cli import mpi_job
from minidl.cli.components import description, settings, snake_case
from minidl.cli.models import MODELS, MakeModel, Recipe
from minidl.cli.simulate.cases import IMPORTED_ALL_REDUCES
from minidl.cli.strategies import COMPRESSORS, STRATEGIES
from minidl.cluster.collectives import ALL_REDUCE
from minidl.data import Splits

DATA: dict[str, types.FunctionType] = {}
"""Functions that return data sets and that `--import` has brought, by name."""

_PREFIX = "minidl_own_"  # of the names of imported modules
_WHAT = (
    "a subclass of parallel.Strategy, compress.Compressor or nn.Module (that needs no arguments, or only splits), a "
    "function that is annotated to return nn.Module or data.Splits, or an all-reduce, a function f(comm, x, op)"
)


def register_all(paths: Sequence[Path] | None, on: str) -> None:
    """Register what the files define, on every rank that mpiexec has started."""

    def register_here() -> None:
        for path in paths or ():
            register(path)

    if paths:
        mpi_job.on_all_ranks(register_here, on)


def data_set(text: str, on: str) -> str:
    """The name of the data set that --data means; of a Python file, the one that it defines."""
    if not text.endswith(".py"):
        return text
    path, module = Path(text), _module_name(Path(text))
    if getattr(sys.modules.get(module), "__file__", None) != str(path.resolve()):  # unless --import has brought it
        register_all([path], on)
    new = sorted(name for name, make in DATA.items() if make.__module__ == module)
    if len(new) != 1:
        found = f"it defines {', '.join(new)}" if new else "it defines none"
        raise ValueError(f"--data {text} must define one function annotated to return data.Splits; {found}")
    return new[0]


def register(path: Path) -> None:
    """Run the file, and register what it defines, under its name in snake case.

    - a subclass of `parallel.Strategy` or `compress.Compressor`
    - a model: a subclass of `nn.Module`, or a function that is annotated to return one. It is called without arguments,
      or with the data set if it has a parameter named `splits` or annotated as `data.Splits`
    - a data set: a function without arguments that is annotated to return `data.Splits`
    - an all-reduce: a function whose first parameters are named comm, x and op, for `minidl simulate --algorithm`

    Names that begin with an underscore, modules that need other arguments, and what the file imports are left out.

    Raises
        ValueError  the file cannot be read or run, defines none of these, or uses a name that exists already
    """
    module = _run(path)
    found = 0
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value) and issubclass(value, parallel.Strategy):
            _add(path, name, _with_readable_settings(path, value), STRATEGIES)
        elif inspect.isclass(value) and issubclass(value, compress.Compressor):
            _add(path, name, _with_readable_settings(path, value), COMPRESSORS)
        elif (fit := _fit(value)) is not None:
            _add(path, name, Recipe(fit, about(value)), MODELS)
        elif inspect.isfunction(value) and _returns(value, Splits) and not _needed(value):
            _add(path, name, value, DATA, data.NAMES)
        elif _is_all_reduce(value):
            _add(path, name, value, IMPORTED_ALL_REDUCES, ("auto", *ALL_REDUCE))
        else:
            continue
        found += 1
    if not found:
        raise ValueError(f"{path} defines nothing that minidl can use: write {_WHAT}")


def loader(name: str) -> Callable[[], Splits]:
    """A function that loads the data set of that name, imported or minidl's, also in another process."""
    return partial(_made, name, DATA[name]) if name in DATA else partial(data.load, name)


def _made(name: str, make: types.FunctionType) -> Splits:
    """The data set that an imported function makes. Raises ValueError with the line of whatever it raises."""
    try:
        splits = make()
    except Exception as error:
        path = Path(make.__code__.co_filename)
        where = f"{path.name}{_line_of(error, path)}"
        raise ValueError(f"--data {name}: {where}: {type(error).__name__}: {error}") from error
    if not isinstance(splits, Splits):
        raise ValueError(f"--data {name}: it returns a {type(splits).__name__}, expected data.Splits")
    if not all(isinstance(part, data.Dataset) for part in splits):
        raise ValueError(f"--data {name}: it returns Splits of something else than two of data.Dataset")
    return splits


def about(value: object) -> str:
    """The first sentence of the docstring, and the file if it was imported."""
    module = getattr(value, "__module__", "")
    file = f"({Path(str(sys.modules[module].__file__)).name})" if module.startswith(_PREFIX) else ""
    return " ".join(filter(None, [description(value), file]))


def _fit(value: Any) -> Callable[[Splits], MakeModel] | None:
    """The `fit` of a model's recipe; None if the value makes no model or needs other arguments than the data."""
    is_model = issubclass(value, nn.Module) if inspect.isclass(value) else _returns(value, nn.Module)
    needed = _needed(value) if is_model else []
    if not is_model or len(needed) > 1 or any(p.name != "splits" and not _names(p.annotation, Splits) for p in needed):
        return None
    return partial(_maker, value, bool(needed))


def _maker(make: Callable[..., nn.Module], reads_data: bool, splits: Splits) -> MakeModel:
    return partial(make, splits) if reads_data else make


def _needed(value: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters without a default."""
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(value).parameters.values()
    return [one for one in parameters if one.default is one.empty and one.kind not in several]


def _returns(value: Any, cls: type) -> bool:
    return inspect.isfunction(value) and _names(value.__annotations__.get("return"), cls)


def _names(annotation: Any, cls: type) -> bool:
    """Whether the annotation, which may be text, is the class or a subclass."""
    if isinstance(annotation, str):
        return annotation.split(".")[-1] == cls.__name__
    return inspect.isclass(annotation) and issubclass(annotation, cls)


def _is_all_reduce(value: object) -> bool:
    """Whether it is a function f(comm, x, op), with these names, whose other parameters have defaults."""
    if not inspect.isfunction(value):
        return False
    parameters = list(inspect.signature(value).parameters.values())
    return [one.name for one in parameters[:3]] == ["comm", "x", "op"] and all(
        one.default is not one.empty for one in parameters[3:]
    )


def _with_readable_settings(path: Path, cls: type) -> type:
    try:
        settings(cls)
    except Exception as error:
        raise ValueError(f"{path}: the types of the settings of {cls.__name__} cannot be read: {error}") from None
    return cls


def _add(path: Path, name: str, value: Any, known: dict[str, Any], minidls: Iterable[str] = ()) -> None:
    typed = snake_case(name)
    taken = {each.replace("_", "") for each in (*known, *minidls)}
    if typed.replace("_", "") in taken:
        raise ValueError(f"{path}: {name} would be typed as {typed}, a name that exists already: choose another")
    known[typed] = value


def _line_of(error: BaseException, path: Path) -> str:
    """The last line of the file that the error came through, as ", line 3"; "" if it came through none."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
    return f", line {lines[-1]}" if lines else ""


def _module_name(path: Path) -> str:
    return f"{_PREFIX}{path.stem}"


def _run(path: Path) -> types.ModuleType:
    """Run the file as a module; ValueError with the line for whatever it raises."""
    if not path.exists():
        raise ValueError(f"--import {path}: there is no such file")
    if path.suffix != ".py" or not path.is_file():
        raise ValueError(f"--import {path}: give a file of Python code, NAME.py")
    name = _module_name(path)
    if name in sys.modules:
        raise ValueError(f"--import {path}: another file of that name is imported already; give each its own name")
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.append(str(path.resolve().parent))  # the file may import others of its folder, as a script may
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        is_other = error.filename is not None and Path(error.filename) != path.resolve()  # a file that it imports
        raise ValueError(f"{error.filename if is_other else path}, line {error.lineno}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path}{_line_of(error, path.resolve())}: {type(error).__name__}: {error}") from None
    cloudpickle.register_pickle_by_value(module)  # other processes do not import the file
    return module
