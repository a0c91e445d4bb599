"""Run a swarm and report the runs that break an invariant: `python -m benchmarks.swarm --seed 1 --minutes 10`."""

from __future__ import annotations

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count, takewhile
from pprint import pformat
from typing import Annotated

import typer

from benchmarks.swarm.choices import OF_RUN, Choices, drawn
from benchmarks.swarm.invariants import BrokenError, check


def swarm(
    seed: Annotated[int, typer.Option(help="Seed of the random choices.")] = 0,
    minutes: Annotated[float, typer.Option(help="Start no further run after this time.")] = 1.0,
    run: Annotated[int | None, typer.Option(help="Play only the run with this number.")] = None,
) -> None:
    """Draw training runs and check what must hold in each; shrink those that break it."""
    until = time.monotonic() + 60 * minutes
    ends = play(seed, takewhile(lambda _: time.monotonic() < until, count()) if run is None else [run])
    print(", ".join(f"{number} {end}" for end, number in ends.most_common()))
    raise typer.Exit(bool(ends[BROKEN]))


BROKEN = "broke an invariant"


def play(seed: int, numbers: Iterable[int]) -> Counter[str]:
    """Play the runs with these numbers and count how they ended.

    For each run that breaks an invariant, print the command that plays it again and the smallest run that breaks it.
    """
    ends = Counter[str]()
    for number in numbers:
        with warnings.catch_warnings(action="ignore"):
            try:
                ends[check(drawn(seed, number))] += 1
            except Exception:
                ends[BROKEN] += 1
                print(f"python -m benchmarks.swarm --seed {seed} --run {number}\n{traceback.format_exc()}\n")
                smallest = pformat(shrunk(drawn(seed, number)), sort_dicts=False)
                print(f"from benchmarks.swarm.invariants import check\n\ncheck({smallest})\n", flush=True)
    return ends


def shrunk(choices: Choices) -> Choices:
    """The simplest choices that break the same invariant; unchanged if a second run breaks none."""
    invariant = broken(choices)
    while invariant and (simpler := next((one for one in simplifications(choices) if broken(one) == invariant), None)):
        choices = simpler
    return choices


def broken(choices: Choices) -> str:
    """The invariant that the run breaks, or the type of any other error; "" if it breaks none."""
    try:
        check(choices)
    except Exception as error:
        return str(error.args[0] if isinstance(error, BrokenError) else type(error))
    return ""


def simplifications(choices: Choices) -> Iterator[Choices]:
    """The choices with one of them removed, then with a simpler value of one, the simplest first."""
    for name in choices:
        yield {key: value for key, value in choices.items() if key != name and not key.startswith(f"{name}.")}
    for name, value in choices.items():
        if name.startswith("fault "):
            kind, rank, at = value
            yield from (choices | {name: (kind, lower, at)} for lower in range(rank))
            if isinstance(at, int):
                yield from (choices | {name: (kind, rank, call)} for call in range(1, at))
        elif name in OF_RUN:
            yield from (choices | {name: simpler} for simpler in OF_RUN[name][1 : OF_RUN[name].index(value)])


if __name__ == "__main__":
    typer.run(swarm)
