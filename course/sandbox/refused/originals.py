"""Restores what a student's code replaced in minidl, in the course, and in Python's own modules.

Checks count and measure with functions of these modules, in the student's process. A notebook that replaced
`minidl.cluster.launch`, a method of the communicator or a probe would otherwise measure itself. Entries
of sys.modules and functions of Python are restored too, since these functions are found and sent by them.
"""

from __future__ import annotations

import builtins
import copy
import gc
import json
import pickle
import sys
import time
import tracemalloc
from collections.abc import Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from course.sandbox.refused.importing import Importing
from course.sandbox.refused.library_code import LibraryCode
from course.sandbox.refused.refusals import Refusals

GUARDED = ("minidl.", "course.")
FREE = ("minidl.kernels",)
"""Modules in which minidl itself replaces functions, when another set of kernels is selected."""

PYTHON = (builtins, copy, gc, json, pickle, time, tracemalloc)
"""Modules of Python that probes use to measure, and that read requests."""

FUNCTIONS = FunctionType | BuiltinFunctionType


class Originals:
    """Records the functions and classes of the loaded guarded modules, with methods and code, and restores them.

    own: further modules to guard, under any name.
    """

    def __init__(self, *own: ModuleType) -> None:
        self._attributes: list[tuple[Any, Mapping[str, Any], str, Any]] = []
        self._code: dict[FunctionType, tuple[CodeType, Any, Any]] = {}
        self._modules: dict[str, ModuleType] = {}
        for module in own:
            self._keep(module, module.__name__)
        for module in PYTHON:
            self._modules[module.__name__] = module
            self._keep(module, module.__name__)
        self._known: dict[str, ModuleType] = {}
        library = LibraryCode([*guarded_modules().values(), *own])
        self._importing = Importing(self._known, self._code, library)
        self._importing.put_in_place()
        self.refusals = Refusals(self._code, self._importing, library)
        self.record_loaded()

    def record_loaded(self) -> None:
        """Record the guarded modules loaded since the last record. (Their code was recorded when they were loaded.)"""
        new = {name: module for name, module in guarded_modules().items() if name not in self._known}
        for name, module in new.items():
            if name.startswith(FREE):
                continue
            package, _, last = name.rpartition(".")
            if (owner := self._known.get(package)) is not None:
                self._attributes.append((owner, vars(owner), last, module))
            self._keep(module, name)
        self._known.update(new)
        self._modules.update(new)
        self.refusals.record(new)

    def put_back(self) -> None:
        """Restore everything that was replaced since."""
        sys.settrace(None)
        sys.setprofile(None)
        sys.modules.update(self._modules)
        self._importing.put_in_place()
        for owner, has, name, value in self._attributes:
            if has.get(name) is not value:
                setattr(owner, name, value)
        for function in [*self._importing.touched & self._code.keys()]:
            function.__code__, function.__defaults__, function.__kwdefaults__ = self._code[function]
        self._importing.touched.clear()

    def _keep(self, owner: Any, module: str) -> None:
        for name, value in list(vars(owner).items()):
            if name.startswith("__") and name not in (
                "__init__", "__call__", "__getattr__", "__setattr__", "__new__", "__import__", "__build_class__",
            ):  # fmt: skip
                continue
            if isinstance(value, FUNCTIONS | ModuleType):
                self._attributes.append((owner, vars(owner), name, value))
                if isinstance(value, FunctionType):
                    self._code[value] = value.__code__, value.__defaults__, value.__kwdefaults__
            elif isinstance(value, type):
                self._attributes.append((owner, vars(owner), name, value))
                if value.__module__ == module and owner is not value and value.__flags__ & IS_MUTABLE:
                    self._keep(value, module)
            elif isinstance(value, property | classmethod | staticmethod):
                self._attributes.append((owner, vars(owner), name, value))


def guarded_modules() -> dict[str, ModuleType]:
    """The loaded modules of minidl and the course."""
    return {name: module for name, module in list(sys.modules.items()) if is_guarded(name)}


def is_guarded(name: str) -> bool:
    """Whether a module belongs to minidl or to the course."""
    return f"{name}.".startswith(GUARDED)


IS_MUTABLE = 1 << 9
"""Flag of classes that are defined in Python, whose methods can be replaced (Py_TPFLAGS_HEAPTYPE)."""
