"""Recognises the library's own code by its code objects, which student's code cannot imitate."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType

HERE = str(Path(__file__).resolve().parents[3])
FOLDERS = tuple(os.path.join(HERE, *parts, "") for parts in (("minidl",), ("course", "probes"), ("course", "sandbox")))
CALLERS = (FOLDERS[0], os.path.join(FOLDERS[2], "refused", ""))


class LibraryCode:
    """The code objects of guarded modules, loaded before or later."""

    def __init__(self, modules: Iterable[ModuleType]) -> None:
        self._codes: dict[int, CodeType] = {}  # by identity, as two that are equal are still two
        namespaces = {id(vars(module)) for module in modules}
        for value in gc.get_objects():
            if type(value) is FunctionType and id(value.__globals__) in namespaces:
                self.add(value.__code__)

    def add(self, code: CodeType) -> None:
        """Add this code, and that of the functions in it, to the library's."""
        if id(code) in self._codes:
            return
        self._codes[id(code)] = code
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self.add(constant)

    def runs_in(self, frame: FrameType | None) -> bool:
        """Whether this frame runs code of minidl or of the course."""
        return frame is not None and id(frame.f_code) in self._codes

    def may_call(self, frame: FrameType | None) -> bool:
        """Whether this frame may call what is refused: the course's other frames are those that call the answer."""
        return frame is not None and self.runs_in(frame) and frame.f_code.co_filename.startswith(CALLERS)

    def found(self, name: str, path: Iterable[str] | None) -> ModuleSpec | None:
        """The spec of the module `name` if it is a file of the library; its code will be added on loading."""
        spec = PathFinder.find_spec(name, None if path is None else list(path))
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or not (spec.origin or "").startswith(FOLDERS):
            return None
        spec.loader = Recorded(name, spec.loader.path, self)
        return spec


class Recorded(SourceFileLoader):
    """Loads a file of the library, and adds its code to the library's."""

    def __init__(self, name: str, path: str, library: LibraryCode) -> None:
        super().__init__(name, path)
        self._library = library

    def get_code(self, fullname: str) -> CodeType | None:
        code = super().get_code(fullname)
        if code is not None:
            self._library.add(code)
        return code
