"""Stochastic gradient descent, with momentum and Nesterov momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minidl import kernels
from minidl.arguments import one_of, real_number
from minidl.kernels import Array
from minidl.optim.optimizer import Optimizer, check_not_negative, zeros_like
from minidl.optim.state_dict import Group
from minidl.tensor import Tensor

MOMENTUM_FORMS = ("u", "v")


class SGD(Optimizer):
    """Stochastic gradient descent: step against the gradient, or against a decaying sum of the past gradients.

        g = gradient + weight_decay w

        momentum_form="u" (PyTorch's)                    momentum_form="v" (textbooks')
        u = momentum u + (1 - dampening) g               v = momentum v - lr (1 - dampening) g
        w = w - lr u                                     w = w + v
        w = w - lr (g + momentum u)   with nesterov      w = w + momentum v - lr g   with nesterov

    Parameters
        lr             learning rate
        momentum       factor of the past sum, typically 0.9; 0: plain descent without state
        dampening      share of each new gradient that is dropped, from the second step on, 0 to 1
        weight_decay   factor of w that is added to the gradient: the loss gains weight_decay |w|^2 / 2
        nesterov       use Nesterov momentum: the step is lr (g + momentum u) instead of lr u
        momentum_form  "u": lr multiplies the whole sum; "v": lr multiplies each gradient when it is added

    Both forms take the same steps while lr is constant: v = -lr u. After a change from lr to lr', past gradients count
    with the new rate in the u-form and with the old one in the v-form. The v-form equals the u-form again if the next
    step's momentum is momentum lr'/lr (without nesterov): `LargeBatchLR` does so with momentum_correction=True.

    PyTorch has no v-form. Its SGD loads such a state without the velocities and starts them from zero. PyTorch's state
    loads here as the u-form.

    Memory: one array per parameter with momentum, none without. Under a constant gradient g, T steps from rest move w
    by lr g (T/(1 - m) - m (1 - m^T)/(1 - m)^2), where m is the momentum: for large T, 1/(1 - m) times as fast as
    without momentum.

    Raises
        TypeError     an option that is not a number
        ValueError    an option below 0, an unknown momentum_form, nesterov without momentum or with dampening

    References
        Polyak, Some methods of speeding up the convergence of iteration methods (1964); Sutskever et al., On the
        importance of initialization and momentum in deep learning (ICML 2013), section 2 (Nesterov); Goyal et al.,
        Accurate, large minibatch SGD (arXiv:1706.02677), section 3, remark 2 (the two forms).

    >>> w = Tensor([1.0], requires_grad=True)
    >>> (2 * w).sum().backward()
    >>> SGD([w], lr=0.25).step()
    >>> w.data
    array([0.5], dtype=float32)
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        momentum_form: str = "u",
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "momentum_form": momentum_form,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative(group, "lr", "momentum", "weight_decay")
        real_number("dampening", group["dampening"], at_least=0, at_most=1)
        form = group["momentum_form"]
        one_of("momentum_form", form, MOMENTUM_FORMS, hint="'u' has the rate outside of the momentum, 'v' inside of it")
        if group["nesterov"] and (group["momentum"] == 0 or group["dampening"] != 0):
            raise ValueError(
                f"nesterov needs momentum above 0 and dampening 0, got momentum={group['momentum']} and "
                f"dampening={group['dampening']}"
            )

    def update(self, data: Array, gradient: Array, state: dict[str, Any], group: Group) -> None:
        kernel, momentum, dampening = kernels.current(), group["momentum"], group["dampening"]
        rule, name, has_sum = kernel.sgd, "momentum_buffer", momentum > 0
        if group["momentum_form"] == "v":
            has_sum = has_sum or "velocity" in state  # also at momentum 0, so that no old velocity returns later
            if has_sum:
                rule, name = kernel.sgd_velocity, "velocity"
        buffer = state.get(name) if has_sum else None
        if has_sum and buffer is None:
            buffer = state[name] = zeros_like(data)
            dampening = 0.0  # from zeros and undamped: the first sum is the gradient itself
        rule(data, gradient, buffer, group["lr"], momentum, dampening, group["weight_decay"], group["nesterov"])
