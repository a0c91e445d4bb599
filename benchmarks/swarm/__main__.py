"""Play a swarm of runs and report those that break an invariant: `python -m benchmarks.swarm --seed 1 --minutes 10`."""

from __future__ import annotations

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable
from itertools import count, takewhile
from pprint import pformat
from typing import Annotated

import typer

from benchmarks.swarm.choices import drawn
from benchmarks.swarm.invariants import check
from benchmarks.swarm.shrinking import shrunk


def swarm(
    seed: Annotated[int, typer.Option(help="Seed of all that is drawn.")] = 0,
    minutes: Annotated[float, typer.Option(help="Begin no other run after so many minutes.")] = 1.0,
    runs: Annotated[int | None, typer.Option(help="Play so many runs; by default, as there is time for.")] = None,
    run: Annotated[int | None, typer.Option(help="Play only the run of this number.")] = None,
) -> None:
    """Draw training runs and verify what must hold in each; shrink those that break it."""
    until = time.monotonic() + 60 * minutes
    numbers: Iterable[int] = [run] if run is not None else count() if runs is None else range(runs)
    ends = play(seed, takewhile(lambda _: time.monotonic() < until, numbers))
    print(", ".join(f"{number} {end}" for end, number in ends.most_common()))
    raise typer.Exit(bool(ends[BROKEN]))


BROKEN = "broke an invariant"


def play(seed: int, numbers: Iterable[int]) -> Counter[str]:
    """Play the runs of these numbers; return how many ended in which way.

    Prints for each that breaks an invariant how to play it again, and the smallest run that breaks the same.
    """
    ends = Counter[str]()
    for number in numbers:
        with warnings.catch_warnings(action="ignore"):
            try:
                ends[check(drawn(seed, number))] += 1
            except Exception:
                ends[BROKEN] += 1
                print(
                    f"python -m benchmarks.swarm --seed {seed} --run {number}\n{traceback.format_exc()}\n", flush=True
                )
                smallest = pformat(shrunk(drawn(seed, number)), sort_dicts=False)
                print(f"from benchmarks.swarm.invariants import check\n\ncheck({smallest})\n", flush=True)
    return ends


if __name__ == "__main__":
    typer.run(swarm)
