"""LARS: one learning rate per layer, proportional to the norm of its weights, for very large minibatches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minidl import kernels
from minidl.kernels import Array
from minidl.optim.layer_rate import enlarged, within_type
from minidl.optim.optimizer import Optimizer, zeros_like
from minidl.optim.options import Group, check_not_negative
from minidl.tensor import Tensor


class LARS(Optimizer):
    """Layer-wise adaptive rate scaling: each layer's step is proportional to the norm of its weights.

        ratio = trust_coefficient |w| / (|g| + weight_decay |w|)          (1 where |w| or |g| is 0)
        v = momentum v + lr ratio (g + weight_decay w)
        w = w - v

    Parameters
        lr                   learning rate, before the ratio
        momentum             factor of the past velocity
        weight_decay         factor of w that is added to the gradient
        trust_coefficient    length of a step with lr 1 and no momentum, as a fraction of |w|
        exclude_1d           use ratio 1 for parameters of fewer than two dimensions: biases and the gains of
                             normalization layers; to exempt them from weight decay too, give them their own group

    Each norm is that of a whole parameter. Biases that start at zero take SGD's step at first, with ratio 1. The rate
    is inside the velocity v, as in the paper: SGD's docstring explains the difference.
    Memory: one array per parameter.

    Raises
        TypeError     an option that is not a number
        ValueError    an option below 0

    References
        You, Gitman and Ginsburg, Large batch training of convolutional networks (arXiv:1708.03888), algorithm 1.

    >>> w = Tensor([3.0, 4.0], requires_grad=True)
    >>> (w * Tensor([0.0, 100.0])).sum().backward()
    >>> LARS([w], lr=1.0, trust_coefficient=0.1).step()  # |w| = 5, so the step is 0.5 long
    >>> w.data
    array([3. , 3.5], dtype=float32)
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust_coefficient: float = 1e-3,
        exclude_1d: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "trust_coefficient": trust_coefficient,
            "exclude_1d": exclude_1d,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative(group, "lr", "momentum", "weight_decay", "trust_coefficient")

    def new_state(self, data: Array, group: Group) -> dict[str, Any]:
        return {"momentum_buffer": zeros_like(data)}

    def update(self, data: Array, gradient: Array, state: dict[str, Any], group: Group) -> None:
        kernel = kernels.current()
        weight_decay, ratio = group["weight_decay"], 1.0
        if data.ndim > 1 or not group["exclude_1d"]:
            weight_norm, gradient_norm = kernel.l2_norm(data), kernel.l2_norm(gradient)
            if weight_norm and gradient_norm:
                ratio = group["trust_coefficient"] * weight_norm / (gradient_norm + weight_decay * weight_norm)
        rate, factor = within_type(group["lr"] * ratio, gradient)
        gradient = enlarged(gradient, factor)
        kernel.lars(data, gradient, state["momentum_buffer"], rate, group["momentum"], weight_decay * factor)
