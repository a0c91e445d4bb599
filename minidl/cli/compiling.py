"""A bar for the first compilation of the kernels."""

from __future__ import annotations

from functools import partial

from rich.console import Console

from minidl import cluster, kernels
from minidl.cli.display import LiveBar
from minidl.kernels import cache

DOING = "compiling the kernels"


def compile_kernels(console: Console, on: str) -> None:
    """Compile what training calls, with a bar, if nothing has been compiled since the kernels last changed.

    on: the engine; of several copies of a command under mpiexec, the first compiles.
    """
    if kernels.active() != "numba" or cache.is_filled():
        return
    from minidl.kernels.jit.first_calls import warm_up

    with LiveBar(console, DOING, "(once per computer)") as bar:

        def show(done: int, steps: int) -> None:
            bar.show(done, steps, DOING, f"{done} of {steps} groups (once per computer)")

        cluster.once(partial(warm_up, show), on)
