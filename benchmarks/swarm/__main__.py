"""Play a swarm of runs and report those that break an invariant: `python -m benchmarks.swarm --seed 1 --minutes 10`."""

from __future__ import annotations

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from pprint import pformat
from typing import Annotated

from typer import Exit, Option, run

from benchmarks.swarm.choices import Choices, drawn
from benchmarks.swarm.invariants import check
from benchmarks.swarm.shrinking import shrunk


def swarm(
    seed: Annotated[int, Option(help="Seed of all that is drawn.")] = 0,
    minutes: Annotated[float, Option(help="Begin no other run after so many minutes.")] = 1.0,
    runs: Annotated[int | None, Option(help="Play so many runs; by default, as many as there is time for.")] = None,
    run: Annotated[int | None, Option(help="Play only the run of this number.")] = None,
) -> None:
    """Draw training runs and verify what must hold in each; shrink those that break it."""
    until = time.monotonic() + 60 * minutes
    numbers: Iterable[int] = [run] if run is not None else count() if runs is None else range(runs)
    ends, failed = play(seed, numbers, lambda: time.monotonic() < until)
    print(", ".join(f"{number} {end}" for end, number in ends.most_common()), f"; {failed} broke an invariant")
    if failed:
        raise Exit(1)


def play(seed: int, numbers: Iterable[int], goes_on: Callable[[], bool] = lambda: True) -> tuple[Counter[str], int]:
    """Play the runs of these numbers; return how many ended in which way, and how many broke an invariant."""
    ends, failed = Counter[str](), 0
    for number in numbers:
        if not goes_on():
            break
        choices = drawn(seed, number)
        try:
            with warnings.catch_warnings(action="ignore"):
                ends[check(choices)] += 1
        except Exception:
            failed += 1
            print(told(seed, number, choices, traceback.format_exc()), flush=True)
    return ends, failed


def told(seed: int, number: int, choices: Choices, error: str) -> str:
    """What is printed of a run that broke an invariant: how to play it again, and the smallest such run."""
    with warnings.catch_warnings(action="ignore"):
        smallest = shrunk(choices)
    return (
        f"python -m benchmarks.swarm --seed {seed} --run {number}\n{error}\nThe smallest run that breaks the same:\n\n"
        f"from benchmarks.swarm.invariants import check\n\ncheck({pformat(smallest, sort_dicts=False)})\n"
    )


if __name__ == "__main__":
    run(swarm)
