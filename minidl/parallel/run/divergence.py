"""NonFiniteLoss: the error that stops a run whose loss is no longer a finite number, and names the first cause."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from minidl import kernels
from minidl.kernels import Array
from minidl.tensor import Tensor


class NonFiniteLoss(ArithmeticError):  # noqa: N818  (named for what was found, as ZeroDivisionError is)
    """The loss is infinite or nan.

    Attributes
        epoch, step  when, counted from 1
        rank         which rank's loss it was
        parameter    name of the first parameter that is not finite or whose gradient is not; "" if all are
    """

    def __init__(self, message: str, epoch: int, step: int, rank: int, parameter: str) -> None:
        super().__init__(message, epoch, step, rank, parameter)
        self.epoch, self.step, self.rank, self.parameter = epoch, step, rank, parameter

    def __str__(self) -> str:
        return str(self.args[0])


def check_finite(
    value: float,
    model: Any,
    epoch: int,
    step: int,
    rank: int,
    loss: Tensor | None = None,
    examined: Mapping[str, Any] | None = None,
) -> None:
    """Raise NonFiniteLoss unless `value` is finite; the error names the first parameter at fault.

    That is the first whose weights are not finite; if all are, the first whose gradient of `loss` is not. `loss` is the
    tensor with that value; None: `value` is the loss on the test set after the step. A rank with a partition of the
    model looks at what it holds, `examined`; None: at all parameters.
    """
    if math.isfinite(value):
        return
    parameters = dict(model.named_parameters())
    looked_at = parameters if examined is None else examined
    kind, name = "weight", _first_not_finite((name, p.data) for name, p in looked_at.items())
    if name is None and loss is not None and loss.requires_grad:
        model.zero_grad()
        loss.backward()
        kind = "gradient"
        name = _first_not_finite((name, p.grad) for name, p in looked_at.items() if p.grad is not None)
    finite = "weights" if loss is None else "weights and gradients"
    here = "" if all(looked_at.get(name) is p for name, p in parameters.items()) else " of this rank's partition"
    where = f"the first {kind}{here} that is not finite is that of {name}"
    if name is None:
        where = f"all {finite}{here} are finite"
    when = "at" if loss is not None else "on the test set after"
    raise NonFiniteLoss(
        f"the loss is {value} {when} epoch {epoch}, step {step} on rank {rank}; {where}; "
        "lower the learning rate, or look at the data of this step",
        epoch,
        step,
        rank,
        name or "",
    )


def _first_not_finite(arrays: Any) -> str | None:
    def finite(array: Array) -> bool:
        return bool(kernels.array_module(array).isfinite(array).all())

    return next((name for name, array in arrays if not finite(array)), None)
