"""The smallest choices that still break an invariant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.swarm.choices import OF_RUN, Choices
from benchmarks.swarm.invariants import Broken, check


def broken(choices: Choices) -> str:
    """The invariant that the run breaks; "" if all hold. An error of the swarm's own counts as one."""
    try:
        check(choices)
    except Broken as error:
        return error.invariant
    except Exception as error:
        return type(error).__name__
    return ""


def shrunk(choices: Choices) -> Choices:
    """The choices, each as simple as it can be while the run still breaks the same invariant."""
    invariant = broken(choices)
    while simpler := next((one for one in simplifications(choices) if broken(one) == invariant), None):
        choices = simpler
    return choices


def simplifications(choices: Choices) -> Iterator[Choices]:
    """The choices without one of them, then with a simpler value of one, the simplest first."""
    for name in choices:
        yield {key: value for key, value in choices.items() if key != name and not key.startswith(f"{name}.")}
    for name, value in choices.items():
        for simpler in _simpler(name, value):
            yield choices | {name: simpler}


def _simpler(name: str, value: Any) -> list[Any]:
    if name.startswith("fault "):
        kind, rank, at = value
        calls = range(1, at) if isinstance(at, int) else ((at[0], number) for number in range(1, at[1]))
        return [(kind, lower, at) for lower in range(rank)] + [(kind, rank, call) for call in calls]
    values = OF_RUN.get(name, [])
    return values[1 : values.index(value)] if value in values else []
