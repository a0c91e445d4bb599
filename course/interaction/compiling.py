"""A progress bar for numba's compiling of minidl's kernels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

from course.interaction.bar import Progress
from course.interaction.frontend import person_is_there

KERNELS = 41
"""Kernels that training needs, as they are counted here on a computer that has none in its cache."""


@contextmanager
def shown() -> Iterator[Compiling]:
    """Show a bar while kernels are compiled within the block; kernels that come from the cache need none."""
    compiling = Compiling()
    try:
        with event.install_listener("numba:compile", compiling):
            yield compiling
    finally:
        if compiling.progress is not None:
            compiling.progress.close()


class Compiling(event.Listener):  # type: ignore[misc]
    """Counts the compiled kernels and shows a bar to a person."""

    def __init__(self) -> None:
        self.compiled = 0
        self.progress: Progress | None = None

    def on_start(self, event: Any) -> None:
        """Numba begins to compile a function."""
        if is_kernel(event.data["dispatcher"]) and self.progress is None and person_is_there():
            self.progress = Progress("Compiling minidl's kernels, once per computer (up to a minute)", KERNELS)

    def on_end(self, event: Any) -> None:
        """Numba has compiled a function."""
        if is_kernel(event.data["dispatcher"]):
            self.compiled += 1
            if self.progress is not None:
                self.progress.advance()


def is_kernel(dispatcher: Any) -> bool:
    """Whether a function is one that the cache keeps; the functions that it calls are compiled with it."""
    return type(dispatcher._cache).__name__ == "FunctionCache"
