"""Functions made of random operations on three random arrays: shared, broadcast, reduced, viewed, written, dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minidl import Tensor, no_grad
from minidl import functional as F
from minidl.compiler import CompilationError

SHAPES = [(), (1,), (5,), (3, 5), (3, 1), (2, 3, 5), (0, 5), (1, 5), (7, 1, 5), (4, 4), (4, 4)]
SPECIAL = [np.nan, -0.0, 0.0, np.inf, -np.inf, 1e-40, 3.7]


def random_program(seed: int) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """A function of three Tensors that does the same in every call, and arrays to call it with."""
    random = np.random.default_rng(seed)
    dtype = random.choice([np.float32, np.float64])
    arrays = [_array(random, SHAPES[random.integers(len(SHAPES))], dtype) for _ in range(3)]
    steps = int(random.integers(1 << 30))

    def program(*given: Tensor) -> Any:
        leaf = Tensor(given[2].data, requires_grad=True)
        random, made = np.random.default_rng(steps), [*given, leaf]
        for _ in range(random.integers(4, 14)):
            a, b = (made[random.integers(len(made))] for _ in range(2))
            try:
                made.append(OPERATIONS[random.integers(len(OPERATIONS))](a, b, given))
            except (ValueError, IndexError):  # shapes that do not fit, in every call
                continue
        try:
            made[-1].sum().backward()
        except (
            RuntimeError
        ) as error:  # nothing requires a gradient, or what a gradient reads was written: in every call
            if isinstance(error, CompilationError):
                raise
        return (*(one.data for one in made[-3:]), *(() if leaf.grad is None else (leaf.grad,)))

    return program, arrays


def _array(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    array = random.standard_normal(shape).astype(dtype)
    if array.size:
        array.flat[random.integers(array.size)] = random.choice(SPECIAL)
    layout = random.integers(3) if array.ndim else 0
    if layout == 1:
        return np.asfortranarray(array)
    return np.repeat(array, 2, axis=0)[::2] if layout == 2 else array  # with gaps


def _written(a: Tensor, value: Any, index: Any = None) -> Tensor:
    with no_grad():
        a = a * 2.0
        if index is None:
            a += value
        else:
            a[index] = value
    return a


def _argument_written(a: Tensor, b: Tensor, given: tuple[Tensor, ...]) -> Tensor:
    given[0].add_(given[1])
    return given[0] * 1.5


OPERATIONS: list[Callable[[Tensor, Tensor, tuple[Tensor, ...]], Tensor]] = [
    *[lambda a, b, _: a + b, lambda a, b, _: a - b, lambda a, b, _: a * b, lambda a, b, _: a / b],
    *[lambda a, b, _: a + b, lambda a, b, _: b * a, lambda a, b, _: a * 1.3, lambda a, b, _: 2 - a],
    *[lambda a, b, _: a + 0.0, lambda a, b, _: a + (-0.0), lambda a, b, _: a / 0.7, lambda a, b, _: -a],
    *[lambda a, b, _: F.relu(a), lambda a, b, _: F.sigmoid(a), lambda a, b, _: F.exp(a), lambda a, b, _: abs(a)],
    *[lambda a, b, _: F.sqrt(a), lambda a, b, _: F.tanh(a), lambda a, b, _: F.gelu(a), lambda a, b, _: F.square(a)],
    *[lambda a, b, _: F.where(a > b, a, b), lambda a, b, _: a * (a == b), lambda a, b, _: F.dropout(a, 0.3)],
    *[lambda a, b, _: a.sum(), lambda a, b, _: a.mean(axis=-1, keepdims=True), lambda a, b, _: a.sum(axis=0)],
    *[
        lambda a, b, _: a.reshape(-1),
        lambda a, b, _: a[..., :1],
        lambda a, b, _: a[::2],
        lambda a, b, _: a.T,
        lambda a, b, _: a.T * a,
    ],
    *[lambda a, b, _: _written(a, b), lambda a, b, _: _written(a, 0.5, ...), lambda a, b, _: _written(a, 0.5, 0)],
    *[lambda a, b, _: _written(a, b, ...), lambda a, b, _: _written(a, a.T, ...)],
    *[lambda a, b, _: Tensor([0.3]) * Tensor([0.7]) * a, lambda a, b, _: a.softmax(-1), _argument_written],
]
