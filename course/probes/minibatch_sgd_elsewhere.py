"""Probe: a call as if in another process, at another time, or after other random numbers."""

from __future__ import annotations

import builtins
import os
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from course.probes.minibatch_sgd import listed

CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")


def listed_elsewhere(function: Callable[..., Any], where: str, *arguments: int) -> dict[str, Any]:
    """Probe: the batches, as `listed` gives them, and which global generators the call has drawn from or seeded.

    where: "after other random numbers", "at another time" or "in another process"; where hash() of a text
    and os.getpid() differ.
    """
    kept = {(time, name): getattr(time, name) for name in CLOCKS} | {
        (builtins, "hash"): hash,
        (os, "getpid"): os.getpid,
    }
    if where == "after other random numbers":
        random.seed(987654321)
        np.random.seed(987654321)  # noqa: NPY002  (it is what answers may draw from)
    before = states()
    try:
        if where == "at another time":
            for name in CLOCKS:
                setattr(time, name, later(getattr(time, name)))
        if where == "in another process":
            builtins.hash = salted(hash)
            os.getpid = another_process
        batches = listed(function, *arguments)
    finally:
        for (module, name), original in kept.items():
            setattr(module, name, original)
    after = states()
    return {"batches": batches, "changed": [name for name in before if before[name] != after[name]]}


def another_process() -> int:
    """os.getpid() as it is in another process."""
    return os.getppid() + 1_000_000


def states() -> dict[str, str]:
    """The states of the global generators, by their names."""
    _, words, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    of_numpy = f"{np.asarray(words).tobytes().hex()} {position} {has_gauss} {gauss}"
    return {"np.random": of_numpy, "random": repr(random.getstate())}


def later(clock: Callable[[], Any]) -> Callable[[], Any]:
    """A clock that is half a year ahead, in any unit."""
    return lambda: clock() + type(clock())(15_778_800 * (10**9 if isinstance(clock(), int) else 1))


def salted(original: Callable[[Any], int]) -> Callable[[Any], int]:
    """hash() as in another process: different for strings, and for tuples with strings."""
    return lambda value: original((value, "salt")) if has_text(value) else original(value)


def has_text(value: Any) -> bool:
    return isinstance(value, str | bytes) or (isinstance(value, tuple) and any(map(has_text, value)))
