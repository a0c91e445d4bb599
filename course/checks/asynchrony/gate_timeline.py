"""A picture of a student's own gate: when the workers compute and when they wait, for several bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from IPython.display import display

from course.checks.asynchrony.gate_times import random_stragglers
from course.checks.asynchrony.requests import AT_ONCE, CLOCK, DONE, request
from course.judging.display import in_notebook
from course.judging.run_to_draw import run_to_draw
from minidl import cluster

WORKERS, STEPS = 3, 8
SEED = 277  # of 300 the one with the largest difference between the bounds 0, 1 and 3


def timeline(ssp_gate: Callable[..., Any], bounds: Sequence[int] = (0, 1, 3)) -> None:
    """Draw the same steps of three workers with `ssp_gate` for each bound, and print how long they take.

    If it fails, or is not written yet, print that instead. Outside of a notebook, as in grading, do nothing.
    """
    if not in_notebook():
        return
    seconds = random_stragglers(SEED, WORKERS, STEPS)

    def program(comm: cluster.Communicator, bound: int) -> None:
        if comm.rank == WORKERS:
            ssp_gate(comm, WORKERS, bound)
            return
        for step, each in enumerate(seconds[comm.rank]):
            comm.compute(seconds=each, label=f"{step}")
            comm.send(request(DONE if step + 1 == STEPS else CLOCK), WORKERS)
            if step + 1 < STEPS:
                comm.recv(WORKERS)

    runs = {}
    for bound in bounds:
        run = run_to_draw(program, args=(bound,), nodes=WORKERS + 1, network=AT_ONCE)
        if run is None:
            return
        runs[bound] = run
    titles = [f"bound = {bound}" for bound in runs]
    display(cluster.plot_traces([run.trace for run in runs.values()], titles=titles))
    print(
        f"Rows 0 to {WORKERS - 1} are the workers, with the same {STEPS} steps in all panels; row {WORKERS} is the "
        "gate. Simulated. Grey is waiting: a delayed step stops the others only once they are `bound` steps ahead."
    )
