"""Refuses the library's version of what an exercise builds, while the check calls the answer.

Every function of the named modules gets other code, which raises unless its caller is the library. So the name under
which an answer has the function does not matter: an import, a name bound in a cell, a `partial`, an inherited method.

It does not refuse copies of the library's source, or of a function's code, that a cell has made, compiled kernels, and
the work of processes that a cell has started: within one process, these look like the student's own code.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from course.sandbox.refused.builds import OTHER_LIBRARIES, Builds
from course.sandbox.refused.importing import Importing, LibraryVersionError, begins
from course.sandbox.refused.library_code import LibraryCode

Code = tuple[CodeType, Any, Any]
"""What can be replaced in a function: its code, its defaults, its keyword defaults."""

UNTOUCHED = frozenset(
    {"__del__", "__repr__", "__str__", "__hash__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__",
     "__class_getitem__", "__init_subclass__", "__set_name__", "__copy__", "__deepcopy__"}
)  # fmt: skip
"""Methods that Python itself calls on values left by a cell, and that compute nothing."""


class Refusals:
    """Refuses one exercise's Builds at a time.

    Parameters
        expected    the code that each guarded function must have, recorded by Originals
        importing   refuses imports
        library     the library's code, whose calls are allowed

    It is made before any of the student's code runs, because that code may set a function's `__module__`.
    """

    def __init__(self, expected: dict[FunctionType, Code], importing: Importing, library: LibraryCode) -> None:
        self._expected = expected
        self._importing = importing
        self._library = library
        self._before: dict[FunctionType, tuple[Code, bool]] = {}
        self._undo: list[Callable[[], None]] = []
        self._defined: dict[str, list[FunctionType]] = {}

    def record(self, modules: Mapping[str, ModuleType]) -> None:
        """Record which functions these modules of minidl define."""
        self._defined |= {name: list(functions_of(modules[name])) for name in modules if begins(name, ("minidl",))}

    def refuse(self, exercise: str, builds: Builds, namespaces: list[dict[str, Any]]) -> None:
        """Refuse what this exercise builds; end earlier refusals.

        namespaces: those of the student's functions; names of other libraries in them are refused as well.
        """
        self.allow()
        # All are imported before the first is refused: importing one may read the files of another.
        places = {name: located(name) for name in builds.names}
        for name, (module, path) in places.items():
            used = functools.partial(builds.sentence, exercise)
            if path:
                for function in functions_in(module, path):
                    self._gate(function, used(name))
                continue
            for loaded, its_module in loaded_in(name).items():
                for function in [*self._defined.get(loaded, ()), *functions_of(its_module)]:
                    called = function.__qualname__.removesuffix(".__init__")
                    self._gate(function, used(f"{loaded}.{called}"))
            self._importing.refused[name] = used(name)
            for file in files_of(module):
                self._importing.files[file] = used(f"the text of {name}")
        others = {library: builds.sentence(exercise, library) for library in OTHER_LIBRARIES}
        self._importing.refused.update(others)
        self._close(others, namespaces)
        self._importing.programs = builds.sentence(exercise, "a program of its own")

    def allow(self) -> None:
        """End all refusals."""
        self._importing.refused.clear()
        self._importing.files.clear()
        self._importing.programs = ""
        for function, (code, is_expected) in self._before.items():
            self._set(function, code)
            if is_expected:
                self._expected[function] = code
            else:
                del self._expected[function]
        self._before.clear()
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    def _gate(self, function: FunctionType, sentence: str) -> None:
        if function in self._before:
            return
        code = self._expected.get(function) or code_of(function)
        self._before[function] = code, function in self._expected
        house = gatehouse(len(code[0].co_freevars), code[0].co_filename)
        self._library.add(house)
        self._expected[function] = house, None, {"_gate": Gate(function, code, sentence, self._library)}
        self._set(function, self._expected[function])

    def _set(self, function: FunctionType, code: Code) -> None:
        """Set a function's code, which then needs no restoring: the code of a thousand functions takes 4 ms."""
        function.__code__, function.__defaults__, function.__kwdefaults__ = code
        self._importing.touched.discard(function)

    def _close(self, others: dict[str, str], namespaces: list[dict[str, Any]]) -> None:
        """Make the modules of other libraries, and values of them in namespaces, raise on use.

        others: the error message for each library.
        """
        for name, module in list(sys.modules.items()):
            sentence = others.get(str(name).partition(".")[0])
            if sentence and type(module) is ModuleType:
                vars(module)["__refused__"] = sentence
                module.__class__ = Closed
                self._undo.append(functools.partial(reopen, module))
        for names in namespaces:
            for name, value in list(names.items()):
                if isinstance(value, ModuleType):
                    continue
                if sentence := others.get(home_of(value).partition(".")[0]):
                    names[name] = Closed.substitute(sentence)
                    self._undo.append(functools.partial(names.__setitem__, name, value))


class Closed(ModuleType):
    """The class of another library's module while it is refused: access to any attribute raises."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            return ModuleType.__getattribute__(self, name)
        raise LibraryVersionError(ModuleType.__getattribute__(self, "__dict__")["__refused__"])

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise LibraryVersionError(ModuleType.__getattribute__(self, "__dict__")["__refused__"])

    @classmethod
    def substitute(cls, sentence: str) -> Closed:
        """A stand-in for a value of such a library."""
        closed = cls("refused")
        vars(closed)["__refused__"] = sentence
        return closed


def reopen(module: ModuleType) -> None:
    """Restore a module that was closed."""
    module.__class__ = ModuleType
    vars(module).pop("__refused__", None)


def located(name: str) -> tuple[ModuleType, list[str]]:
    """The longest module at the beginning of a dotted name, imported, and the rest of the name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            return import_module(".".join(parts[:length])), parts[length:]
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(f"no module {name}")


def loaded_in(package: str) -> dict[str, ModuleType]:
    """The loaded modules of a package, itself included, by name."""
    beginning = f"{package}."
    loaded = list(sys.modules.items())
    return {name: module for name, module in loaded if module is not None and f"{name}.".startswith(beginning)}


def functions_in(module: ModuleType, path: list[str]) -> Iterator[FunctionType]:
    """The function, or the methods of the class, at `path` in a module."""
    value: Any = module
    for part in path:
        value = getattr(value, part)
    yield from functions_of_value(value)


def functions_of(module: ModuleType) -> Iterator[FunctionType]:
    """The functions that a module defines, and the methods of its classes."""
    for value in list(vars(module).values()):
        if getattr(value, "__module__", None) == module.__name__:
            yield from functions_of_value(value)


def functions_of_value(value: Any) -> Iterator[FunctionType]:
    """The functions behind a function, a method, a property or a class."""
    if isinstance(value, type):
        for name, member in list(vars(value).items()):
            if name not in UNTOUCHED and not isinstance(member, type):
                yield from functions_of_value(member)
    elif isinstance(value, staticmethod | classmethod):
        yield from functions_of_value(value.__func__)
    elif isinstance(value, property):
        for accessor in (value.fget, value.fset, value.fdel):
            yield from functions_of_value(accessor)
    elif isinstance(value, FunctionType) and not is_borrowed(value):
        yield value
        yield from functions_of_value(getattr(value, "__wrapped__", None))


def is_borrowed(function: FunctionType) -> bool:
    """Whether another library defines it and uses it elsewhere: every Enum of the process has `Enum.__new__`."""
    home = str(function.__globals__.get("__name__"))
    value: Any = sys.modules.get(home)
    for name in function.__qualname__.split("."):
        value = getattr(value, name, None)
    return value is function and not begins(home, ("minidl", "course"))


def files_of(module: ModuleType) -> Iterator[str]:
    """The beginnings of the paths of the files of a module, or of a package with all its modules."""
    origin = getattr(module.__spec__, "origin", None)
    if not origin:
        return
    folder, file = os.path.split(origin)
    if file == "__init__.py":
        yield folder + os.sep
        return
    stem = file.removesuffix(".py")
    yield origin
    yield os.path.join(folder, "__pycache__", f"{stem}.")


def home_of(value: Any) -> str:
    """The module that a value, or its class, comes from."""
    if isinstance(value, FunctionType | type):
        return str(value.__module__)
    if isinstance(value, BuiltinFunctionType):
        owner = value.__self__
        return str(value.__module__ or (owner.__module__ if isinstance(owner, type) else type(owner).__module__))
    return str(type.__dict__["__module__"].__get__(type(value)))


def code_of(function: FunctionType) -> Code:
    return function.__code__, function.__defaults__, function.__kwdefaults__


class Gate:
    """Allows calls of a function by minidl, and raises for all others: also for the frame that calls the answer."""

    def __init__(self, function: FunctionType, code: Code, sentence: str, library: LibraryCode) -> None:
        self._function = function
        self._code = code
        self._sentence = sentence
        self._library = library

    def __call__(self) -> FunctionType:
        """The original function. Called by the code that replaces it, on behalf of its caller."""
        if not self._library.may_call(sys._getframe(2)):
            raise LibraryVersionError(self._sentence)
        code, defaults, keywords = self._code
        was = FunctionType(code, self._function.__globals__, None, defaults, self._function.__closure__)
        was.__kwdefaults__ = keywords
        return was


@functools.cache
def gatehouse(free: int, file: str) -> CodeType:
    """The code that replaces that of a function with `free` free variables: asks `_gate`, then calls the original.

    It has the function's file name, so that a search for the caller's line finds only the library.
    """
    return compiled_gatehouse(free).replace(co_filename=file)


@functools.cache
def compiled_gatehouse(free: int) -> CodeType:
    names = "".join(f"free{number}, " for number in range(free))
    source = f"""
def make({names}):
    def house(*_arguments, _gate, **_keywords):
        return _gate()(*_arguments, **_keywords)
        ({names})
    return house
"""
    made: dict[str, Any] = {}
    exec(compile(source, "", "exec", dont_inherit=True), made)
    code: CodeType = made["make"](*range(free)).__code__
    return code
