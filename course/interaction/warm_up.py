"""The first cell of a lecture: compile minidl's kernels, so that no later cell waits for them."""

from __future__ import annotations

from minidl import kernels


def warm_up() -> None:
    """Compile the kernels that training calls; if they are not in the cache on disk, say so and show a bar."""
    if kernels.active() != "numba":
        return
    from course.interaction.compiling import shown
    from minidl.kernels.jit import first_calls

    with shown():
        first_calls.warm_up()
