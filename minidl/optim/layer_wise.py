"""LARS and LAMB: one learning rate per layer, proportional to the norm of its weights, for very large minibatches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from math import sqrt
from typing import Any

from ml_dtypes import finfo

from minidl import kernels
from minidl.kernels import Array
from minidl.optim.optimizer import Due, Optimizer, check_betas, check_not_negative, zeros_like
from minidl.optim.state_dict import Group
from minidl.tensor import Tensor


class LayerWise(Optimizer):
    """Base of LARS and LAMB: each parameter's step has a direction, and a length that depends on two norms.

    Attributes
        sum_over_ranks  where each rank updates a slice of every parameter: adds up what the ranks give for each of
                        their slices, the squares of both norms; None: the parameters are whole
    """

    sum_over_ranks: Callable[[dict[Tensor, list[float]]], dict[Tensor, list[float]]] | None = None

    @abstractmethod
    def direction(self, data: Array, gradient: Array, state: dict[str, Any], group: Group) -> Array:
        """Return the direction of the step."""

    @abstractmethod
    def apply(
        self, data: Array, direction: Array, state: dict[str, Any], group: Group, norm: float, of_direction: float
    ) -> None:
        """Change `data` and `state`; norm: of the whole parameter. Both norms are 0 where the length shall be lr."""

    def update(self, data: Array, gradient: Array, state: dict[str, Any], group: Group) -> None:
        direction = self.direction(data, gradient, state, group)
        self.apply(data, direction, state, group, *_norms(data, direction, group))

    def update_each(self, due: Iterator[Due]) -> None:
        if self.sum_over_ranks is None:
            super().update_each(due)
            return
        steps = [(each, self.direction(each.data, each.gradient, each.state, each.group)) for each in due]
        squares = {each.parameter: [x * x for x in _norms(each.data, step, each.group)] for each, step in steps}
        sums = self.sum_over_ranks(squares)  # once for all
        for each, step in steps:
            self.apply(each.data, step, each.state, each.group, *map(sqrt, sums[each.parameter]))
            each.done()


def _norms(data: Array, direction: Array, group: Group) -> tuple[float, float]:
    if data.ndim < 2 and group["exclude_1d"]:
        return 0.0, 0.0
    kernel = kernels.current()
    return kernel.l2_norm(data), kernel.l2_norm(direction)


class LARS(LayerWise):
    """Layer-wise adaptive rate scaling: each layer's step is proportional to the norm of its weights.

        ratio = trust_coefficient |w| / (|g| + weight_decay |w|)   (1 where |w| or |g| is 0)
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

    def direction(self, data: Array, gradient: Array, state: dict[str, Any], group: Group) -> Array:
        return gradient

    def apply(
        self, data: Array, direction: Array, state: dict[str, Any], group: Group, norm: float, of_direction: float
    ) -> None:
        weight_decay, ratio = group["weight_decay"], 1.0
        if norm and of_direction:
            ratio = group["trust_coefficient"] * norm / (of_direction + weight_decay * norm)
        rate, factor = _within_type(group["lr"] * ratio, direction)
        enlarged, momentum = _enlarged(direction, factor), group["momentum"]
        kernels.current().lars(data, enlarged, state["momentum_buffer"], rate, momentum, weight_decay * factor)


class LAMB(LayerWise):
    """Layer-wise adaptive moments: a step along Adam's direction, with length lr times the norm of the layer's weights.

        m = beta1 m + (1 - beta1) g
        v = beta2 v + (1 - beta2) g^2
        m_hat = m / (1 - beta1^t),  v_hat = v / (1 - beta2^t)
        r = m_hat / (sqrt(v_hat) + eps) + weight_decay w
        w = w - lr |w| / |r| r                       (w - lr r where |w| or |r| is 0)

    Parameters
        lr              learning rate: the length of a step as a fraction of |w|
        betas           decay factors of the two moments, each at least 0 and below 1
        eps             added to the root, to avoid a division by zero
        weight_decay    factor of w that is added to the direction r
        exclude_1d      take the step lr r for parameters of fewer than two dimensions

    Each norm is that of a whole parameter; the paper's scaling function phi is the identity.
    Memory: two arrays per parameter.

    Raises
        TypeError     an option that is not a number
        ValueError    an option below 0, betas out of range

    References
        You et al., Large batch optimization for deep learning: training BERT in 76 minutes (arXiv:1904.00962),
        algorithm 2.

    >>> w = Tensor([3.0, 4.0], requires_grad=True)
    >>> (w * Tensor([0.0, 100.0])).sum().backward()
    >>> LAMB([w], lr=0.1, weight_decay=0.0).step()  # |w| = 5, so the step is 0.5 long
    >>> w.data
    array([3. , 3.5], dtype=float32)
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 1e-2,
        exclude_1d: bool = False,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "exclude_1d": exclude_1d}
        super().__init__(params, defaults)

    def check_group(self, group: Group) -> None:
        check_not_negative(group, "lr", "eps", "weight_decay")
        check_betas(group)

    def new_state(self, data: Array, group: Group) -> dict[str, Any]:
        return {"step": 0, "exp_avg": zeros_like(data), "exp_avg_sq": zeros_like(data)}

    def direction(self, data: Array, gradient: Array, state: dict[str, Any], group: Group) -> Array:
        state["step"] += 1
        return kernels.current().lamb_direction(
            data,
            gradient,
            state["exp_avg"],
            state["exp_avg_sq"],
            state["step"],
            *group["betas"],
            group["eps"],
            group["weight_decay"],
        )

    def apply(
        self, data: Array, direction: Array, state: dict[str, Any], group: Group, norm: float, of_direction: float
    ) -> None:
        ratio = norm / of_direction if norm and of_direction else 1.0
        rate, factor = _within_type(group["lr"] * ratio, direction)
        kernels.current().sgd(data, _enlarged(direction, factor), None, rate, 0.0, 0.0, 0.0, False)


# ---- rates of |w| / |update|: where the update is tiny, they are huge ----


def _within_type(rate: float, update: Array) -> tuple[float, float]:
    """Return two factors whose product is `rate`: the first is a number of the update's type, the second 1 or more.

    A gradient of 1e-43 makes rates of 1e39, which float32 does not have; their product is a step of ordinary size.
    """
    largest = float(finfo(update.dtype).max)  # type: ignore[no-untyped-call]
    return (rate, 1.0) if rate <= largest else (largest, rate / largest)


def _enlarged(update: Array, factor: float) -> Array:
    """The update times the factor, computed in float64."""
    return update if factor == 1 else (update.astype("float64") * factor).astype(update.dtype)
