"""Differentiable collectives of tensor parallelism: the backward of each is the forward of its counterpart.

    function        forward             backward
    copied          identity            all-reduce        Megatron's f, the input of a sharded layer
    summed          all-reduce          identity          Megatron's g, the output of a sharded layer
    gathered        all-gather          own slice         the whole output of a layer sharded by outputs
    sliced          own slice           all-gather        a slice of a tensor that is the same on every rank
    gathered_whole  all-gather          reduce-scatter    f in sequence parallelism: each rank has a slice of positions
    summed_sliced   reduce-scatter      all-gather        g in sequence parallelism

The vector-Jacobian products follow from one fact: all ranks together compute one loss. A tensor that is the same on
every rank therefore has the same gradient on every rank.

References
    Shoeybi et al., Megatron-LM (arXiv:1909.08053), section 3; Korthikanti et al. (arXiv:2205.05198), section 4.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl import kernels
from minidl.cluster.collectives.partition import split
from minidl.cluster.comm import Communicator
from minidl.kernels import Array
from minidl.kernels.sixteen_bit import cast, is_sixteen_bit
from minidl.tensor import Tensor, record


def copied(x: Tensor, comm: Communicator) -> Tensor:
    """Return x; backward sums its gradient over the ranks. The input of a sharded layer goes through it.

    Parameters
        x     the same on every rank, of any shape
        comm  the ranks that share the layer, such as `session.mesh["tp"]`

    Messages: none in forward, an all-reduce of the gradient in backward. All ranks call it, and backward, together.

    >>> import numpy as np
    >>> from minidl import cluster, nn
    >>> class Pair(nn.Module):  # y = relu(x a) b: a rank has some columns of a, and the matching rows of b
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
    """Return the sum of the ranks' x; its gradient is the gradient of each x. A sharded layer ends with it.

    Parameters
        x     this rank's term of the sum, of the same shape on every rank
        comm  the ranks that share the layer

    Messages: an all-reduce in forward, none in backward. For an example, see `copied`.
    """
    return record(all_reduced(x.data, comm), (x,), lambda g, needs: (g,))


def gathered(x: Tensor, comm: Communicator, axis: int = -1) -> Tensor:
    """Concatenate the ranks' x along an axis, on every rank: the whole output of a layer sharded by outputs.

    Parameters
        x     this rank's outputs, of the same shape on every rank
        comm  the ranks that share the layer
        axis  axis of the concatenation, in rank order

    Messages: an all-gather in forward; none in backward, where each rank takes its slice of the gradient. The gradient
    must be the same on every rank, as it is if all compute the same loss from the whole outputs.
    """
    return record(joined(x.data, comm, axis), (x,), lambda g, needs: (own_slice(g, comm, axis).copy(),))


def sliced(x: Tensor, comm: Communicator, axis: int) -> Tensor:
    """This rank's slice, along an axis, of x, which is the same on every rank."""
    return record(own_slice(x.data, comm, axis), (x,), lambda g, needs: (joined(g, comm, axis),), view_of=x)


def gathered_whole(x: Tensor, comm: Communicator, axis: int) -> Tensor:
    """Concatenate the ranks' x along an axis; backward sums, since each rank computes a different share from it."""
    if comm.size == 1:
        return x
    return record(joined(x.data, comm, axis), (x,), lambda g, needs: (reduce_scattered(g, comm, axis),))


def summed_sliced(x: Tensor, comm: Communicator, axis: int) -> Tensor:
    """This rank's slice, along an axis, of the sum of the ranks' x."""
    return record(reduce_scattered(x.data, comm, axis), (x,), lambda g, needs: (joined(g, comm, axis),))


# ---- the same on arrays, without gradients ----


def all_reduced(x: Array, comm: Communicator, op: str = "sum", label: str | None = None) -> Array:
    """The sum of the ranks' arrays, a new array; op and label are those of `comm.all_reduce`."""
    if comm.size == 1:
        return x
    total = comm.all_reduce(_widened(x), op, label=label)
    return cast(kernels.array_module(x).asarray(total), x.dtype)


def joined(x: Array, comm: Communicator, axis: int) -> Array:
    """The ranks' arrays, concatenated along an axis."""
    if comm.size == 1:
        return x
    mine = kernels.to_numpy(x)
    module = kernels.array_module(mine)
    shares = comm.all_gather(module.ascontiguousarray(mine))
    return kernels.array_module(x).asarray(module.concatenate(shares, axis))


def reduce_scattered(x: Array, comm: Communicator, axis: int) -> Array:
    """This rank's slice, along an axis, of the sum; ValueError if slices of another axis than 0 would differ."""
    if comm.size == 1:
        return x
    if axis and x.shape[axis] % comm.size:  # samples may differ in number, but not positions: dropout counts on it
        raise ValueError(
            f"{x.shape[axis]} numbers along axis {axis} of an array of shape {x.shape} cannot be divided by "
            f"{comm.size} ranks: use a multiple of {comm.size}"
        )
    whole = _widened(x)
    module = kernels.array_module(whole)
    mine = comm.reduce_scatter(module.ascontiguousarray(np.moveaxis(whole, axis, 0)))
    return cast(kernels.array_module(x).asarray(module.ascontiguousarray(np.moveaxis(mine, 0, axis))), x.dtype)


def _widened(x: Array) -> NDArray[Any]:
    """A copy for the sum: 16-bit numbers are added in float32 and rounded once."""
    mine = kernels.to_numpy(x)
    return cast(mine, np.dtype(np.float32)) if is_sixteen_bit(mine.dtype) else mine.copy()


def own_slice(x: Array, comm: Communicator, axis: int) -> Array:
    """This rank's slice of an array along an axis, a view; where sizes differ, the first ranks have one more."""
    mine = split(range(x.shape[axis]), comm.size)[comm.rank]
    place: list[Any] = [slice(None)] * x.ndim
    place[axis] = slice(mine.start, mine.stop)
    return x[tuple(place)]
