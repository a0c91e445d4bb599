"""Probes for the answers of chapter 13: updates that count numbers, and a model that counts its live inputs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.probes.backpropagation import peak_bytes

Array = NDArray[Any]


class Update:
    """An optimizer's update of a vector: `w, state = update(w, g, state)`, with state None in the first step.

    kind: "momentum", whose state is the velocity, or "Adam", whose state is (t, m, v). most: the numbers that it may be
    given in all its calls; -1 for any number.
    """

    def __init__(self, kind: str, most: int = -1) -> None:
        self._kind = kind
        self._left = self._most = most

    def __call__(self, w: Any, g: Any, state: Any = None) -> tuple[Array, Any]:
        for name, array in (("w", w), ("g", g)):
            if not isinstance(array, np.ndarray) or array.ndim != 1:
                got = f"an array of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
                raise TypeError(f"update(w, g, state): {name} is an array with one axis; got {got}")
        if w.shape != g.shape:
            raise ValueError(f"update(w, g, state): w has {w.size} numbers, but g has {g.size}")
        if self._most >= 0:
            self._left -= w.size
            if self._left < 0:
                raise MemoryError(
                    f"update was given {self._most - self._left} numbers, but this rank's range has {self._most}: "
                    "this rank has room for no other optimizer state"
                )
        return self._adam(w, g, state) if self._kind == "Adam" else self._momentum(w, g, state)

    def _momentum(self, w: Array, g: Array, state: Any) -> tuple[Array, Any]:
        velocity = 0.9 * as_state(state, w) + g
        return w - 0.1 * velocity, velocity

    def _adam(self, w: Array, g: Array, state: Any) -> tuple[Array, Any]:
        if state is not None and (not isinstance(state, (tuple, list)) or len(state) != 3):
            raise ValueError("update(w, g, state): state is None or what update returned for this range before")
        t, m, v = (0, None, None) if state is None else state
        t, m, v = t + 1, 0.9 * as_state(m, w) + 0.1 * g, 0.99 * as_state(v, w) + 0.01 * g**2
        return w - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 0.1), (t, m, v)


def as_state(state: Any, w: Array) -> Array:
    """The state of earlier steps as an array like w; zeros if there is none."""
    if state is None:
        return np.zeros_like(w)
    if np.shape(state) != w.shape:
        raise ValueError(
            f"update(w, g, state): w has {w.size} numbers, but the state is of shape {np.shape(state)}: "
            "state is None or what update returned for this range before"
        )
    return np.asarray(state)


class Chain:
    """n layers in a row, tanh(x w) and last half the mean square of x w; counts calls, and inputs that are alive.

    An input is alive as long as anything refers to it. Copies count, and so do arrays that forward has returned.
    most, most_in_first: inputs alive at a time; in the first forward, before the first backward.
    """

    def __init__(self, weights: Sequence[Array]) -> None:
        self._weights = list(weights)
        self._alive: list[weakref.ref[Array]] = []
        self.most = self.most_in_first = 0
        self.forwards = [0] * len(weights)
        self.backwards = [0] * len(weights)

    def forward(self, i: int, x: Array) -> Any:
        i = self._see(i, x, "forward(i, x)")
        self.forwards[i] += 1
        y = x @ self._weights[i]
        if i == len(self._weights) - 1:
            return float(np.mean(y**2) / 2)
        y = np.tanh(y)
        self._see(i, y, "")
        return y

    def backward(self, i: int, x: Array, g: Any) -> tuple[Array, Array]:
        i = self._see(i, x, "backward(i, x, g)")
        self.backwards[i] += 1
        y = x @ self._weights[i]
        if i == len(self._weights) - 1:
            if np.ndim(g):
                raise ValueError(f"backward({i}, x, g) is of the loss: g is a number, got shape {np.shape(g)}")
            slope = g * y / y.size
        else:
            if np.shape(g) != y.shape:
                raise ValueError(f"backward({i}, x, g): g has shape {np.shape(g)}, the layer's output {y.shape}")
            slope = g * (1 - np.tanh(y) ** 2)
        return slope @ self._weights[i].T, x.T @ slope

    def _see(self, i: Any, x: Any, call: str) -> int:
        """Count an input with those that are alive."""
        n = len(self._weights)
        if isinstance(i, bool) or not isinstance(i, (int, np.integer)) or not 0 <= i < n:
            raise ValueError(f"{call}: i is the number of a layer, from 0 to {n - 1}; got {i!r}")
        if not isinstance(x, np.ndarray) or x.ndim != 2:
            raise TypeError(f"{call}: x is the input of layer {i}, a matrix; got a {type(x).__name__}")
        while isinstance(x.base, np.ndarray):  # a view keeps what it is a view of
            x = x.base
        self._alive = [each for each in self._alive if each() is not None and each() is not x]
        self._alive.append(weakref.ref(x))
        self.most = max(self.most, len(self._alive))
        if not any(self.backwards):
            self.most_in_first = self.most
        return int(i)


def recomputed(function: Callable[..., Any], weights: Sequence[Array], keep: list[int], x: Array) -> dict[str, Any]:
    """Probe: what function(forward, backward, n, keep, x) returns, its calls of each layer, and its live inputs."""
    chain = Chain(weights)
    returned = function(chain.forward, chain.backward, len(weights), keep, x)
    return {
        "returned": returned, "forwards": chain.forwards, "backwards": chain.backwards, "most": chain.most,
        "most_in_first": chain.most_in_first,
    }  # fmt: skip


def recomputed_bytes(function: Callable[..., Any], weights: Sequence[Array], keep: list[int], x: Array) -> int:
    """Probe: the peak memory of such a call in bytes, x included."""
    chain = Chain(weights)
    return x.nbytes + peak_bytes(function, chain.forward, chain.backward, len(weights), keep, x)
