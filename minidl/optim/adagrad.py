"""Adagrad: the sum of its squared gradients gives every weight its own learning rate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minidl import kernels
from minidl.kernels import Array
from minidl.optim.optimizer import Optimizer, check_not_negative, zeros_like
from minidl.optim.state_dict import Group
from minidl.tensor import Tensor


class Adagrad(Optimizer):
    """Adagrad: the larger a weight's past gradients, the smaller its steps.

        g = gradient + weight_decay w
        s = s + g^2                                  (from initial_accumulator_value)
        w = w - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)

    Parameters
        lr              learning rate
        lr_decay        decrease of the rate: at step t it is lr / (1 + (t - 1) lr_decay)
        weight_decay    factor of w that is added to the gradient
        initial_accumulator_value
                        value of s before the first step; a larger one makes the first steps smaller
        eps             added to the root, to avoid a division by zero

    If s starts at 0, the first step is lr sign(g), regardless of the size of g (for eps -> 0).
    Memory: one array per parameter.

    Raises
        TypeError     an option that is not a number
        ValueError    an option below 0

    References
        Duchi, Hazan and Singer, Adaptive subgradient methods for online learning and stochastic optimization,
        JMLR 12 (2011), figure 1, with the diagonal matrix.

    >>> w = Tensor([1.0, 1.0], requires_grad=True)
    >>> (w * Tensor([300.0, -0.02])).sum().backward()
    >>> Adagrad([w], lr=0.5).step()
    >>> w.data
    array([0.5, 1.5], dtype=float32)
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
    ) -> None:
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative(group, *self.defaults)

    def new_state(self, data: Array, group: Group) -> dict[str, Any]:
        total = zeros_like(data)
        total += group["initial_accumulator_value"]
        return {"step": 0, "sum": total}

    def update(self, data: Array, gradient: Array, state: dict[str, Any], group: Group) -> None:
        state["step"] += 1
        lr = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        kernels.current().adagrad(data, gradient, state["sum"], lr, group["eps"], group["weight_decay"])
