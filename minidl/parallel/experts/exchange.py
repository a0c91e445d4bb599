"""The all-to-all of expert parallelism, there and back; the backward of each is the forward of the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minidl import kernels
from minidl.arguments import whole_number
from minidl.cluster.comm import Communicator
from minidl.grad_mode import is_grad_enabled
from minidl.kernels import Array
from minidl.tensor import Tensor, record


def dispatched(slots: Tensor, comm: Communicator) -> tuple[Tensor, list[int]]:
    """Send the slots of each expert to the rank that has the expert.

    Parameters
        slots   (experts, capacity, width): this rank's tokens; the capacity may be another one on each rank
        comm    the ranks that divide the experts, in order; their number divides that of the experts

    Returns what this rank's experts read, (experts / ranks, sum of the ranks' capacities, width), and the capacities.
    Messages: an all-to-all in forward and one in backward, of `dispatched_bytes` each. All ranks call it, and backward,
    together.

    Lepikhin et al., GShard (arXiv:2006.16668), section 3.2; Fedus et al. (arXiv:2101.03961), section 5.3.
    """
    if not slots.requires_grad:  # such as where all below is frozen: every rank still makes the all-to-all of backward
        slots = Tensor(slots.data, requires_grad=is_grad_enabled())
    received, capacities = _to_experts(slots.data, comm)
    return record(received, (slots,), lambda g, needs: (_to_tokens(g, comm, capacities),)), capacities


def returned(outputs: Tensor, comm: Communicator, capacities: Sequence[int]) -> Tensor:
    """Send the experts' outputs back to the ranks of the tokens: the counterpart of `dispatched`.

    outputs: (experts / ranks, sum of capacities, width); returns (experts, this rank's capacity, width).
    """
    back = _to_tokens(outputs.data, comm, capacities)
    return record(back, (outputs,), lambda g, needs: (_to_experts(g, comm)[0],))


def dispatched_bytes(ranks: int, experts: int, capacity: int, width: int, itemsize: int = 4) -> int:
    """The bytes that a rank sends in one all-to-all: experts * capacity * width * itemsize * (ranks - 1) / ranks.

    ranks     divide the experts among them, each the same number
    capacity  of each expert for the tokens of one rank, `MixtureOfExperts.capacity(tokens)`.

    With capacity factor 1 and top 1, that is tokens * width * (ranks - 1) / ranks numbers. Empty slots are sent too, as
    in Switch Transformers, so that the messages do not depend on the routing. A training step makes four all-to-alls a
    layer: the tokens and the outputs in forward, the gradients of both in backward; two more if it recomputes.

    Raises TypeError or ValueError for a number that is not whole or negative, and for experts that the ranks do not
    divide.

    >>> dispatched_bytes(ranks=4, experts=8, capacity=5, width=64)
    7680
    """
    whole_number("dispatched_bytes: ranks", ranks, at_least=1)
    for name, size in {"experts": experts, "capacity": capacity, "width": width, "itemsize": itemsize}.items():
        whole_number(f"dispatched_bytes: {name}", size, at_least=0)
    check_divisible("dispatched_bytes", experts, ranks)
    return experts * capacity * width * itemsize * (ranks - 1) // ranks


def check_divisible(name: str, experts: int, ranks: int) -> None:
    """Raise ValueError unless the ranks can divide that number of experts, of what the error calls `name`."""
    if experts % ranks:
        raise ValueError(
            f"{name}: {experts} experts cannot be divided by {ranks} ranks: make their number a multiple of {ranks}, "
            f"or ep a divisor of {experts}"
        )


def _to_experts(x: Array, comm: Communicator) -> tuple[Array, list[int]]:
    received = comm.all_to_all([np.ascontiguousarray(share) for share in np.split(kernels.to_numpy(x), comm.size)])
    joined = kernels.array_module(x).asarray(np.concatenate(received, axis=1))
    return joined, [share.shape[1] for share in received]


def _to_tokens(x: Array, comm: Communicator, capacities: Sequence[int]) -> Array:
    shares = np.split(kernels.to_numpy(x), np.cumsum(capacities)[:-1], axis=1)
    received = comm.all_to_all([np.ascontiguousarray(share) for share in shares])
    joined: Array = kernels.array_module(x).asarray(np.concatenate(received))
    return joined
