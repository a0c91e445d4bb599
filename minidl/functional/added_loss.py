"""with_loss: a second loss that a layer adds to the loss of the model, without passing through the layers above."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from minidl.kernels import array_module
from minidl.tensor import Tensor, record

loss_weight: ContextVar[float] = ContextVar("minidl_loss_weight", default=1.0)
"""Factor of the mean loss of the present forward pass in what backward differentiates."""


@contextmanager
def weighing_loss(factor: float) -> Iterator[None]:
    """The forward pass within the block ends in a mean loss that is multiplied by this factor before backward.

    The factor of a share of a minibatch is its share of the labels. Blocks may be nested: their factors multiply.
    """
    token = loss_weight.set(loss_weight.get() * factor)
    try:
        yield
    finally:
        loss_weight.reset(token)


def with_loss(y: Tensor, loss: Tensor) -> Tensor:
    """Return y; its backward also computes the gradient of `loss`, as if the model's loss were larger by `loss`.

    Parameters
        y       a tensor on the way to the model's loss
        loss    a number, such as the load-balancing loss of a layer, whose outputs are y

    So a layer needs no way to the end of the model, which a stage of a pipeline or a checkpointed function lacks. The
    value of the model's loss does not change. A loss that is multiplied by a factor before backward, such as the share
    of a minibatch, is computed within `weighing_loss(factor)`; `parallel.Session` does so.

    >>> x = Tensor([3.0], requires_grad=True)
    >>> with_loss(x * 2, (x * x).sum()).sum().backward()
    >>> x.grad
    array([8.], dtype=float32)
    """
    weight = loss_weight.get()

    def vjp(g: Any, needs: Any) -> tuple[Any, Any]:
        return g, array_module(loss.data).full_like(loss.data, weight)

    return record(y.data, (y, loss), vjp, view_of=y)
