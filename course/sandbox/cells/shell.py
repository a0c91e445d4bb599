"""Runs a notebook's cells as a kernel does, magics and top-level await included, without a kernel."""

from __future__ import annotations

import contextlib
from typing import Any

from IPython.core.compilerop import CachingCompiler
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from course.sandbox.errors.sources import Sources, as_compiled


class NamedCells(CachingCompiler):
    """Compiles cells under their titles, so that tracebacks name the cell."""

    def __init__(self, sources: Sources) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._sources = sources
        self.title = ""

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        file = f"<{self.title}>"
        self._sources.add(file, self.title, as_compiled(raw_code))
        return file


def new_shell(sources: Sources) -> Any:
    """A shell for cells. It keeps no history, and shows no tracebacks: the check reports errors."""
    config = Config({"HistoryManager": {"enabled": False}, "InteractiveShell": {"colors": "nocolor"}})
    shell: Any = InteractiveShell.instance(config=config)
    shell.compile = NamedCells(sources)
    shell.showtraceback = lambda *args, **kwargs: None
    shell._tee = lambda channel: contextlib.nullcontext()  # else all printed text stays in memory
    shell.showsyntaxerror = lambda *args, **kwargs: None
    shell.ask_exit = lambda: None  # in a notebook `exit()` would end the kernel
    shell.enable_matplotlib = lambda gui=None: (None, "agg")  # for every argument of `%matplotlib`: there is no screen
    return shell
