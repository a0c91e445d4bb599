"""The smallest choices that still break an invariant."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.swarm.choices import OF_RUN, Choices
from benchmarks.swarm.invariants import BrokenError, check


def broken(choices: Choices) -> str:
    """The invariant that the run breaks, or the type of an error of the swarm's own; "" if all is well."""
    try:
        check(choices)
    except Exception as error:
        return str(error.args[0] if isinstance(error, BrokenError) else type(error))
    return ""


def shrunk(choices: Choices) -> Choices:
    """The choices, each as simple as it can be while the run still breaks the same invariant.

    They are returned as they are if the run breaks none when it is played again.
    """
    invariant = broken(choices)
    while invariant and (simpler := next((one for one in simplifications(choices) if broken(one) == invariant), None)):
        choices = simpler
    return choices


def simplifications(choices: Choices) -> Iterator[Choices]:
    """The choices without one of them, then with a simpler value of one, the simplest first."""
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
