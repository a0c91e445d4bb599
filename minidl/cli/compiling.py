"""Compile the kernels before their first use, with a progress bar."""

from __future__ import annotations

import os
from functools import partial

from rich.console import Console

from minidl import cluster, kernels
from minidl.cli.display import LiveBar
from minidl.kernels import cache

DOING = "compiling the kernels"


def compile_kernels(console: Console, on: str, model: str) -> None:
    """Compile what training this model calls, with a bar, if that has not been done since the kernels last changed.

    on: the engine; under mpiexec, only the first copy of the command compiles.
    """
    if kernels.active() != "numba":
        return
    os.environ[cache.MODEL_VARIABLE] = model  # the ranks of a launch call only these kernels
    if cache.is_filled(model):
        return
    from minidl.kernels.jit.first_calls import warm_up

    with LiveBar(console, f"{DOING} (once per computer)") as bar:

        def show(done: int, steps: int) -> None:
            bar.show(done, steps, DOING, f"{done} of {steps} groups (once per computer)")

        cluster.once(partial(warm_up, show, model), on)
