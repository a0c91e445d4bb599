"""Collectives with a gradient: what one does in forward, its counterpart does in backward.

    function        forward             backward
    copied          nothing             all-reduce        Megatron's f, where a divided layer begins
    summed          all-reduce          nothing           Megatron's g, where it ends
    gathered        all-gather          own slice         whole outputs of a layer that is divided by them
    sliced          own slice           all-gather        a share of what every rank has
    gathered_whole  all-gather          reduce-scatter    f, where every rank has a slice of the positions
    summed_sliced   reduce-scatter      all-gather        g, where every rank has a slice of the positions

The vector-Jacobian products follow from one fact: the loss is computed once, by all ranks together. What every rank has
the same of has the same gradient on every rank.

References
    Shoeybi et al., Megatron-LM (arXiv:1909.08053), section 3; Korthikanti et al. (arXiv:2205.05198), section 4.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl import kernels
from minidl.cluster.comm import Communicator
from minidl.kernels import Array
from minidl.kernels.sixteen_bit import cast, is_sixteen_bit
from minidl.tensor import Tensor, record


def copied(x: Tensor, comm: Communicator) -> Tensor:
    """Where a divided layer begins: x itself, which every rank has; its gradient is the sum of those of the ranks.

    Parameters
        x     the same on every rank, of any shape
        comm  the ranks that divide the layer, such as `session.mesh["tp"]`

    Messages: none in forward, an all-reduce of the gradient in backward. All ranks call it, and backward, together.

    >>> import numpy as np
    >>> from minidl import cluster, nn
    >>> class Pair(nn.Module):  # y = relu(x a) b: a rank has some columns of a, and the rows of b that belong to them
    ...     def __init__(self, a, b, comm):
    ...         self.a, self.b, self.comm = nn.Parameter(a), nn.Parameter(b), comm
    ...     def forward(self, x):
    ...         return summed((copied(x, self.comm) @ self.a).relu() @ self.b, self.comm)
    >>> def program(comm):
    ...     rng = np.random.default_rng(0)
    ...     a, b, x = rng.normal(size=(3, 4)), rng.normal(size=(4, 2)), Tensor(rng.normal(size=(5, 3)))
    ...     mine = slice(comm.rank, None, comm.size)
    ...     y = Pair(a[:, mine], b[mine], comm)(x)
    ...     return bool(np.allclose(y.numpy(), np.maximum(x.numpy() @ a, 0) @ b))
    >>> cluster.launch(program, nodes=2, on="simulation").results
    [True, True]
    """
    return record(x.data, (x,), lambda g, needs: (all_reduced(g, comm),), view_of=x)


def summed(x: Tensor, comm: Communicator) -> Tensor:
    """Where a divided layer ends: the sum of the ranks' x, on every rank; each x has the gradient of the sum.

    Parameters
        x     this rank's share of a sum, of the same shape on every rank
        comm  the ranks that divide the layer

    Messages: an all-reduce in forward, none in backward. For an example, see `copied`.
    """
    return record(all_reduced(x.data, comm), (x,), lambda g, needs: (g,))


def gathered(x: Tensor, comm: Communicator, axis: int = -1) -> Tensor:
    """The whole outputs of a layer that is divided by them: the ranks' x, joined along an axis, on every rank.

    Parameters
        x     this rank's outputs, of the same shape on every rank
        comm  the ranks that divide the layer
        axis  along which they are joined, in the order of the ranks

    Messages: an all-gather in forward; none in backward, where each rank takes its slice of the gradient: it must be
    the same on every rank, as it is where all compute the same loss of the whole outputs.
    """
    return record(joined(x.data, comm, axis), (x,), lambda g, needs: (own_slice(g, comm, axis).copy(),))


def sliced(x: Tensor, comm: Communicator, axis: int) -> Tensor:
    """This rank's slice of x, which every rank has, along an axis."""
    return record(own_slice(x.data, comm, axis), (x,), lambda g, needs: (joined(g, comm, axis),), view_of=x)


def gathered_whole(x: Tensor, comm: Communicator, axis: int) -> Tensor:
    """The ranks' x, joined along an axis, of which every rank computes a share of what follows."""
    return record(joined(x.data, comm, axis), (x,), lambda g, needs: (reduce_scattered(g, comm, axis),))


def summed_sliced(x: Tensor, comm: Communicator, axis: int) -> Tensor:
    """This rank's slice, along an axis, of the sum of the ranks' x."""
    return record(reduce_scattered(x.data, comm, axis), (x,), lambda g, needs: (joined(g, comm, axis),))


# ---- the same on arrays ----


def all_reduced(x: Array, comm: Communicator, op: str = "sum", label: str | None = None) -> Array:
    """The sum of the ranks' arrays, a new array; op and label are those of `comm.all_reduce`."""
    if comm.size == 1:
        return x
    total = comm.all_reduce(_widened(x), op, label=label)
    return cast(kernels.array_module(x).asarray(total), x.dtype)


def joined(x: Array, comm: Communicator, axis: int) -> Array:
    """The ranks' arrays, joined along an axis."""
    if comm.size == 1:
        return x
    shares = comm.all_gather(np.ascontiguousarray(kernels.to_numpy(x)))
    return kernels.array_module(x).asarray(np.concatenate(shares, axis))


def reduce_scattered(x: Array, comm: Communicator, axis: int) -> Array:
    """This rank's slice, along an axis, of the sum of the ranks' arrays."""
    if comm.size == 1:
        return x
    check_divides(x.shape, comm, axis)
    mine = comm.reduce_scatter(np.ascontiguousarray(np.moveaxis(_widened(x), axis, 0)))
    return cast(kernels.array_module(x).asarray(np.ascontiguousarray(np.moveaxis(mine, 0, axis))), x.dtype)


def _widened(x: Array) -> NDArray[Any]:
    """A copy to add up in: 16 bits are added in float32 and rounded once."""
    mine = kernels.to_numpy(x)
    return cast(mine, np.dtype(np.float32)) if is_sixteen_bit(mine.dtype) else np.array(mine)


def own_slice(x: Array, comm: Communicator, axis: int) -> Array:
    """This rank's slice of an array along an axis, a view."""
    check_divides(x.shape, comm, axis)
    size = x.shape[axis] // comm.size
    place: list[Any] = [slice(None)] * x.ndim
    place[axis] = slice(comm.rank * size, (comm.rank + 1) * size)
    return x[tuple(place)]


def check_divides(shape: tuple[int, ...], comm: Communicator, axis: int) -> None:
    """Raise ValueError unless an array of this shape has as many slices along the axis as there are ranks."""
    if shape[axis] % comm.size:
        raise ValueError(
            f"{shape[axis]} numbers along axis {axis} of an array of shape {shape} cannot be divided by {comm.size} "
            f"ranks: use a multiple of {comm.size}"
        )
