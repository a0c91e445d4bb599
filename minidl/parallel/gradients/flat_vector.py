"""All parameters of a model as one long vector, and all gradients: what travels between nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from minidl import kernels
from minidl.kernels import Array
from minidl.tensor import Tensor


def weights(parameters: Sequence[Tensor]) -> Array:
    """A copy of all weights, one parameter after the other, in the host's memory."""
    return np.concatenate([parameter.numpy().reshape(-1) for parameter in parameters])


def set_weights(parameters: Sequence[Tensor], vector: Array, keep_frozen: bool = False) -> None:
    """Write the vector into the parameters, in place.

    keep_frozen: not into those that need no gradient, which a mean of equal weights would change in their last bits.
    """
    for parameter, part in parts(parameters, vector):
        if parameter.requires_grad or not keep_frozen:
            parameter.copy_(part)


def gradient(parameters: Sequence[Tensor]) -> Array:
    """A copy of all gradients, in the host's memory; zeros where there is none."""
    return np.concatenate(
        [np.zeros(p.size, p.dtype) if p.grad is None else kernels.to_numpy(p.grad).reshape(-1) for p in parameters]
    )


def set_gradient(parameters: Sequence[Tensor], vector: Array) -> None:
    """Give every parameter its part of the vector as its gradient."""
    for parameter, part in parts(parameters, vector):
        parameter.grad = kernels.array_module(parameter.data).asarray(part)


def parts(parameters: Sequence[Tensor], vector: Array) -> Iterator[tuple[Tensor, Array]]:
    """Every parameter with the part of the vector that is its own, a view in its shape."""
    start = 0
    for parameter in parameters:
        yield parameter, vector[start : start + parameter.size].reshape(parameter.shape)
        start += parameter.size


def digest(parameters: Sequence[Tensor]) -> str:
    """A hash of all weights: equal on two ranks exactly if their models are equal to the bit."""
    result = hashlib.sha256()
    for parameter in parameters:
        result.update(np.ascontiguousarray(parameter.numpy()).tobytes())
    return result.hexdigest()
