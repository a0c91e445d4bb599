"""All weights of a model, or all gradients, as one flat vector: the form in which nodes exchange them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from minidl import kernels
from minidl.kernels import Array
from minidl.tensor import Tensor


def weights(parameters: Sequence[Tensor]) -> Array:
    """A copy of all weights in host memory, one parameter after the other."""
    return _joined([parameter.numpy().reshape(-1) for parameter in parameters])


def set_weights(parameters: Sequence[Tensor], vector: Array, keep_frozen: bool = False) -> None:
    """Write the vector into the parameters, in place.

    keep_frozen: skip parameters that need no gradient, since averaging equal weights may change their last bits.
    """
    for parameter, values in slices(parameters, vector):
        if parameter.requires_grad or not keep_frozen:
            parameter.copy_(values)


def gradient(parameters: Sequence[Tensor], out: Array | None = None) -> Array:
    """A copy of all gradients in host memory, in `out` if given; zeros where there is none."""
    return _joined(gradients(parameters), out)


def gradients(parameters: Sequence[Tensor]) -> list[Array]:
    """Each gradient in host memory, in one dimension, not copied if it is there already; zeros where there is none."""
    return [np.zeros(p.size, p.dtype) if p.grad is None else kernels.to_numpy(p.grad).reshape(-1) for p in parameters]


def _joined(arrays: list[Array], out: Array | None = None) -> Array:
    return np.concatenate(arrays, out=out) if arrays else np.empty(0, np.float32)  # a stage may have no parameters


def set_gradient(parameters: Sequence[Tensor], vector: Array) -> None:
    """Give every parameter its slice of the vector as its gradient."""
    for parameter, values in slices(parameters, vector):
        parameter.grad = kernels.array_module(parameter.data).asarray(values)


def slices(parameters: Sequence[Tensor], vector: Array) -> Iterator[tuple[Tensor, Array]]:
    """Every parameter with its slice of the vector, a view in the parameter's shape."""
    start = 0
    for parameter in parameters:
        yield parameter, vector[start : start + parameter.size].reshape(parameter.shape)
        start += parameter.size


def mean(vectors: Sequence[Array]) -> Array:
    """The mean of the vectors, in their dtype; 16-bit numbers are added in float32, so that the sum is finite."""
    dtype = vectors[0].dtype
    return np.asarray(np.mean(vectors, axis=0, dtype=np.result_type(dtype, np.float32))).astype(dtype, copy=False)


def norm(vector: Array) -> float:
    """The 2-norm of the vector; 16-bit numbers are squared in float32, so that the squares are finite."""
    return float(np.linalg.norm(vector.astype(np.result_type(vector.dtype, np.float32), copy=False)))


def digest(parameters: Iterable[Tensor]) -> str:
    """A hash of all weights: equal on two ranks exactly if their models are equal to the bit."""
    result = hashlib.sha256()
    for parameter in parameters:
        result.update(np.ascontiguousarray(parameter.numpy()).tobytes())
    return result.hexdigest()


def joint_digest(digests: Sequence[str]) -> str:
    """Combine the hashes of several ranks' weights to one; a single hash is returned as it is."""
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
