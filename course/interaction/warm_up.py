"""The first cell of a lecture: compile minidl's kernels, so that no later cell waits for them."""

from __future__ import annotations

from course.interaction import frontend
from course.interaction.bar import Progress
from minidl import kernels


def warm_up() -> None:
    """Compile the kernels that training calls; if they are not in the cache on disk, say so and show a bar."""
    if kernels.active() != "numba":
        return
    from minidl.kernels.jit import first_calls

    bar: Progress | None = None

    def show(done: int, steps: int) -> None:
        nonlocal bar
        if bar is not None:
            bar.advance()
        elif frontend.person_is_there():
            bar = Progress("Compiling minidl's kernels, once per computer (up to a minute)", steps)

    try:
        first_calls.warm_up(show)
    finally:
        if bar is not None:
            bar.close()
