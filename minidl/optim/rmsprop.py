"""RMSprop: divide every weight's step by the root mean square of its recent gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minidl import kernels
from minidl.arguments import real_number
from minidl.kernels import Array
from minidl.optim.optimizer import Optimizer, check_not_negative, zeros_like
from minidl.optim.state_dict import Group
from minidl.tensor import Tensor


class RMSprop(Optimizer):
    """RMSprop: Adagrad that forgets, so that its steps do not vanish.

        g = gradient + weight_decay w
        s = alpha s + (1 - alpha) g^2
        w = w - lr g / (sqrt(s) + eps)

    Parameters
        lr              learning rate
        alpha           decay factor of the mean square s, 0 to 1
        eps             added to the root, to avoid a division by zero
        weight_decay    factor of w that is added to the gradient
        momentum        above 0 the step is lr b, where b = momentum b + g / (sqrt(s) + eps)
        centered        subtract the square of the mean gradient, m = alpha m + (1 - alpha) g, from s

    Under a constant gradient the step tends to lr sign(g); if centered, to lr g / eps, since the variance of a constant
    is 0: give a larger eps where gradients hardly change. eps stands outside the root, as in PyTorch; some texts write
    sqrt(s + eps). Memory: one array per parameter, one more with momentum, one more if centered.

    Raises
        TypeError     an option that is not a number
        ValueError    an option below 0, alpha above 1

    References
        Tieleman and Hinton, Coursera lecture 6.5 (2012); Graves, Generating sequences with recurrent neural networks
        (arXiv:1308.0850), equations 38 to 45 (the centered form).

    >>> w = Tensor([1.0], requires_grad=True)
    >>> (3 * w).sum().backward()
    >>> RMSprop([w], lr=0.1, alpha=0.75).step()  # sqrt((1 - 0.75) 3^2) = 1.5, so the step is 0.1 * 3 / 1.5
    >>> w.data
    array([0.8], dtype=float32)
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative(group, "lr", "momentum", "eps", "weight_decay")
        real_number("alpha", group["alpha"], at_least=0, at_most=1)

    def new_state(self, data: Array, group: Group) -> dict[str, Any]:
        state: dict[str, Any] = {"step": 0, "square_avg": zeros_like(data)}
        if group["momentum"]:
            state["momentum_buffer"] = zeros_like(data)
        if group["centered"]:
            state["grad_avg"] = zeros_like(data)
        return state

    def update(self, data: Array, gradient: Array, state: dict[str, Any], group: Group) -> None:
        state["step"] += 1
        kernels.current().rmsprop(
            data,
            gradient,
            state["square_avg"],
            _buffer(state, "grad_avg", data) if group["centered"] else None,
            _buffer(state, "momentum_buffer", data) if group["momentum"] else None,
            group["lr"],
            group["alpha"],
            group["eps"],
            group["weight_decay"],
            group["momentum"],
        )


def _buffer(state: dict[str, Any], name: str, data: Array) -> Array:
    """The named array of the state; zeros if the option that needs it was off until now."""
    buffer = state.get(name)
    if buffer is None:
        buffer = state[name] = zeros_like(data)
    return buffer
