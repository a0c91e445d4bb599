"""Adam and AdamW: two running moments of each gradient give every weight momentum and its own learning rate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minidl import kernels
from minidl.kernels import Array
from minidl.optim.optimizer import Optimizer, check_betas, check_not_negative, zeros_like
from minidl.optim.state_dict import Group
from minidl.tensor import Tensor


class Adam(Optimizer):
    """Adam: step along the mean of the recent gradients, divided by their root mean square.

        g = gradient + weight_decay w
        m = beta1 m + (1 - beta1) g
        v = beta2 v + (1 - beta2) g^2
        m_hat = m / (1 - beta1^t),  v_hat = v / (1 - beta2^t)
        w = w - lr m_hat / (sqrt(v_hat) + eps)

    Parameters
        lr              learning rate: the change of a weight per step while its gradient is constant
        betas           decay factors of the two moments, each at least 0 and below 1
        eps             added to the root, to avoid a division by zero
        weight_decay    factor of w that is added to the gradient
        decoupled_weight_decay
                        True: shrink the weights directly instead, as AdamW does

    m and v start at zero; dividing by 1 - beta^t removes that bias. The first step is lr sign(g) for eps -> 0. eps
    stands outside the root, as in the paper and in PyTorch; some texts write sqrt(v_hat + eps).
    Memory: two arrays per parameter.

    Raises
        TypeError     an option that is not a number
        ValueError    an option below 0, betas out of range

    References
        Kingma and Ba, Adam: a method for stochastic optimization (arXiv:1412.6980), algorithm 1.

    >>> w = Tensor([1.0, 1.0], requires_grad=True)
    >>> (w * Tensor([300.0, -0.02])).sum().backward()
    >>> Adam([w], lr=0.5).step()
    >>> w.data.round(4)
    array([0.5, 1.5], dtype=float32)
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        decoupled_weight_decay: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative(group, "lr", "eps", "weight_decay")
        check_betas(group)

    def new_state(self, data: Array, group: Group) -> dict[str, Any]:
        return {"step": 0, "exp_avg": zeros_like(data), "exp_avg_sq": zeros_like(data)}

    def update(self, data: Array, gradient: Array, state: dict[str, Any], group: Group) -> None:
        state["step"] += 1
        kernels.current().adam(
            data,
            gradient,
            state["exp_avg"],
            state["exp_avg_sq"],
            state["step"],
            group["lr"],
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["decoupled_weight_decay"],
        )


class AdamW(Adam):
    """AdamW: Adam that shrinks the weights by w = w - lr weight_decay w before each step.

    Adam adds the decay to the gradient and divides it by the root mean square as well, so that weights with large
    gradients decay least. AdamW decays all weights by the same factor.
    Parameters, memory and errors are those of `Adam`.

    References
        Loshchilov and Hutter, Decoupled weight decay regularization (arXiv:1711.05101), algorithm 2.

    >>> w = Tensor([2.0], requires_grad=True)
    >>> (0 * w).sum().backward()
    >>> AdamW([w], lr=0.5, weight_decay=0.5).step()
    >>> w.data
    array([1.5], dtype=float32)
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, decoupled_weight_decay=True)

    def check_group(self, group: Group) -> None:
        super().check_group(group)
        if not group["decoupled_weight_decay"]:
            raise ValueError("the weight decay of AdamW is decoupled: use Adam for weight decay in the gradient")
