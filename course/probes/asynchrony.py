"""Probes for the answers of chapter 06: gradients by step, weights that other workers change meanwhile, clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Pulls:
    """The gradient of a worker's own loss in each step: the distance of the weights from the target of that step.

    A step may be asked for once.
    """

    def __init__(self, targets: Array) -> None:
        self._targets = targets
        self._left = set(range(len(targets)))

    def __call__(self, weights: Array, step: int) -> Array:
        if step not in self._left:
            raise ValueError(
                f"gradient was called for step {step} again; one gradient a step: compute it once, and use it twice"
            )
        self._left.remove(step)
        return np.asarray(weights - self._targets[step])


class SharedWeights:
    """Weights in shared memory, with a lock: whenever the lock is free, another worker's update may come.

    Here it always does: before each operation that finds the lock free, the others add 1 to every weight.
    """

    def __init__(self, weights: Array) -> None:
        self.events: list[str] = []
        self.given: list[Array] = []
        self.updates_of_others = 0
        self.weights = weights.copy()
        self.is_locked = False

    def others(self) -> None:
        """The other workers' update, if the lock is free."""
        if not self.is_locked:
            self.weights += 1
            self.updates_of_others += 1

    def read(self) -> Array:
        """A copy of the weights as they are now."""
        self.others()
        self.events.append("read")
        return self.weights.copy()

    def write(self, values: Array) -> None:
        """The weights are these values from now on."""
        self.others()
        self.events.append("write")
        self.weights[...] = values


class Lock:
    """The lock of shared weights; `with lock:` acquires and releases it."""

    def __init__(self, shared: SharedWeights) -> None:
        self._shared = shared

    def acquire(self) -> bool:
        if self._shared.is_locked:
            raise RuntimeError("this worker has the lock already: with a real lock it would wait for itself forever")
        self._shared.others()
        self._shared.events.append("acquire")
        self._shared.is_locked = True
        return True

    def release(self) -> None:
        if not self._shared.is_locked:
            raise RuntimeError("release of a lock that this worker does not have")
        self._shared.events.append("release")
        self._shared.is_locked = False

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def interrupted_step(function: Callable[..., Any], weights: Array, slopes: Array, lr: float) -> dict[str, Any]:
    """Probe: a step on shared weights that others change whenever the lock is free; what happened, in order."""
    shared = SharedWeights(weights)

    def gradient(at: Array) -> Array:
        shared.others()
        shared.events.append("gradient")
        shared.given.append(np.array(at))
        return np.asarray(slopes * at)

    function(shared, Lock(shared), gradient, lr)
    return {
        "events": shared.events,
        "given": shared.given,
        "weights": shared.weights,
        "updates": shared.updates_of_others,
    }


@dataclass(frozen=True)
class Cluster:
    """A cluster and a training job, for which synchronous or asynchronous training is to be chosen.

    Attributes
        gradients     gradients to the target if none is stale
        workers       number of workers, p
        seconds       of a gradient, on a worker that nothing delays
        slow_share    probability that a gradient is delayed, for each gradient anew (random stragglers)
        slow_factor   a delayed gradient takes slow_factor times as long
        slowest       worker 0 always takes `slowest` times as long as the others (a persistent straggler)
        nbytes        of a gradient, and of the weights
        alpha         seconds a message
        beta          seconds a byte
        penalty       staleness penalty: if each gradient misses s others, 1 + penalty s times as many are needed
    """

    gradients: int
    workers: int
    seconds: float
    slow_share: float
    slow_factor: float
    slowest: float
    nbytes: int
    alpha: float
    beta: float
    penalty: float
