"""Controls the imports of the student's code: no modules of the checks, and no second copies of guarded modules.

`Importing` is the first of Python's finders, so it is asked for every module that is not loaded yet. Its audit hook
sees the files that are opened, the programs that are started, and the functions whose code is set.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import FrameType, FunctionType, ModuleType
from typing import Any

from course.sandbox.cells.stand_in import HOLDS
from course.sandbox.refused.library_code import LibraryCode

STARTS = frozenset({"os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "os.system", "subprocess.Popen"})
"""Events that start another program, in which nothing would be refused; `os.fork` does not."""


class LibraryVersionError(RuntimeError):
    """An answer used the library's version of what it had to build."""


class Same(Loader):
    """Loads a module that existed before the student's code as the same module object."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


class Importing(MetaPathFinder):
    """Refuses to import the checks' modules, and what `refusals.py` puts into `refused`, `files` and `programs`.

    Parameters
        known     loaded guarded modules; a reload, or an import after a deletion, returns the same module
        guarded   functions whose code is guarded
        library   the library's code, which may import what is refused

    Attributes
        refused    for each module that is refused now, with all modules in it, the error message
        files      for each beginning of a path that may not be opened now, the error message
        programs   the error message for an answer that starts another program; empty if it may
        touched    guarded functions whose code or defaults were set since `put_back`
    """

    def __init__(self, known: dict[str, ModuleType], guarded: Container[FunctionType], library: LibraryCode) -> None:
        self._known = known
        self._library = library
        self._guarded = guarded
        self._is_hooked = False
        self.refused: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self.programs = ""
        self.touched: set[FunctionType] = set()

    def put_in_place(self) -> None:
        """Make this the first finder again; a student's code may have removed it."""
        if not sys.meta_path or sys.meta_path[0] is not self:
            sys.meta_path[:] = [self, *(finder for finder in sys.meta_path if finder is not self)]
        if not self._is_hooked:
            sys.addaudithook(self._audit)
            self._is_hooked = True

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a known or library module; None for all others. Raises for a refused module."""
        if begins(name, ("course.checks",)):
            raise ImportError(HOLDS, name=name)
        if begins(name, ("course.judging",)):
            raise ImportError(f"{name} is the check's own side: an answer may not import it", name=name)
        for refused, sentence in self.refused.items():
            if begins(name, (refused,)) and not self._library.runs_in(importer()):
                raise LibraryVersionError(sentence)
        if (known := self._known.get(name)) is not None:
            return spec_from_loader(name, Same(known))
        return self._library.found(name, path) if begins(name, ("minidl", "course")) else None

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if self.files and isinstance(arguments[0], str | bytes):
                self._read(os.path.abspath(os.fsdecode(arguments[0])))
        elif event == "object.__setattr__":
            if type(arguments[0]) is FunctionType and arguments[0] in self._guarded:
                self.touched.add(arguments[0])
        elif event in STARTS and self.programs:
            raise PermissionError(self.programs)  # an OSError, so that a library which asks the system does without

    def _read(self, path: str) -> None:
        """Refuse to read the source of refused modules."""
        for beginning, sentence in self.files.items():
            if path.startswith(beginning):
                raise PermissionError(sentence)


def begins(name: str, packages: Sequence[str]) -> bool:
    """Whether a module is one of these packages or inside one."""
    return f"{name}.".startswith(tuple([f"{package}." for package in packages]))


def importer() -> FrameType | None:
    """The frame with the import statement, or with the call of importlib."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and ("importlib" in frame.f_code.co_filename or frame.f_globals is globals()):
        frame = frame.f_back
    return frame
