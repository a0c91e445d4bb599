"""Stochastic gradient descent, with momentum and Nesterov's variant of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minidl import kernels
from minidl.kernels import Array
from minidl.optim.optimizer import Optimizer, zeros_like
from minidl.optim.options import Group, check_option
from minidl.tensor import Tensor


class SGD(Optimizer):
    """Stochastic gradient descent: step against the gradient, or against a decaying sum of the past gradients.

        g = gradient + weight_decay w
        b = momentum b + (1 - dampening) g          (the first b is g itself)
        w = w - lr b                                 (nesterov: w - lr (g + momentum b))

    Memory: one array per parameter with momentum, none without. Under a constant gradient g, T steps from rest move w
    by lr g (T/(1 - m) - m (1 - m^T)/(1 - m)^2), m the momentum: in the end 1/(1 - m) times as fast as without.

    The learning rate multiplies the whole sum, as in PyTorch. Textbooks also write v = m v - lr g, w = w + v, with the
    rate inside the velocity: the same as long as the rate is constant. When it changes from lr to lr', that form equals
    this one with momentum m lr/lr' for one step.

    Sources: Polyak, Some methods of speeding up the convergence of iteration methods (1964); Sutskever et al., On the
    importance of initialization and momentum in deep learning (ICML 2013), section 2, for Nesterov's; Goyal et al.,
    Accurate, large minibatch SGD (arXiv:1706.02677), section 3, remark 2, for the two forms.

    >>> w = Tensor([1.0], requires_grad=True)
    >>> (2 * w).sum().backward()
    >>> SGD([w], lr=0.25).step()
    >>> w.data
    array([0.5], dtype=float32)

    Errors: ValueError for an option below 0, or nesterov without momentum or with dampening.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        for name in ("lr", "momentum", "weight_decay"):
            check_option(group, name)
        check_option(group, "dampening", high=1)
        if group["nesterov"] and (group["momentum"] == 0 or group["dampening"] != 0):
            raise ValueError(
                f"nesterov needs momentum above 0 and dampening 0, got momentum={group['momentum']} and "
                f"dampening={group['dampening']}"
            )

    def update(self, data: Array, gradient: Array, state: dict[str, Any], group: Group) -> None:
        buffer, momentum, dampening = None, group["momentum"], group["dampening"]
        if momentum:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = zeros_like(data)
                dampening = 0.0  # from zeros and undamped: the first sum is the gradient itself
        kernels.current().sgd(
            data, gradient, buffer, group["lr"], momentum, dampening, group["weight_decay"], group["nesterov"]
        )
