"""LargeBatchLR: the learning rate of a large minibatch: scaled with its size, warmed up, then decayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, sqrt

from minidl.optim.lars import LARS
from minidl.optim.optimizer import Optimizer
from minidl.optim.options import Group
from minidl.optim.schedules import LRScheduler
from minidl.optim.sgd import SGD

SCALINGS: dict[str, Callable[[float], float]] = {"linear": lambda k: k, "sqrt": sqrt, "fixed": lambda k: 1.0}
WARMUPS = ("none", "constant", "gradual")


class LargeBatchLR(LRScheduler):
    """Scale the rate with the minibatch, warm it up, and let it fall.

        k = batch_size / base_batch_size
        peak = lr k (linear), lr sqrt(k) (sqrt), lr (fixed)

        in the first warmup_epochs:   peak                                      (none)
                                      start_factor lr                           (constant)
                                      from start_factor lr up to peak, in a line (gradual)
        then:                         peak gamma^(milestones passed)
                              or      peak (1 - share of the steps after the warm-up)^power     (polynomial decay)

    The optimizer's rate `lr` is that of minibatches of `base_batch_size` samples. Call `step()` after every update.

    steps_per_epoch: updates an epoch; it comes second, so that `partial(LargeBatchLR, batch_size=…, …)` is the
    `schedule` of a Job. scaling: "linear", "sqrt" or "fixed". warmup: "none", "constant" or "gradual", for the first
    `warmup_epochs`. milestones: the epochs (they may be fractions) at which the rate is multiplied by `gamma`.
    total_epochs, power: with a total the rate falls polynomially to 0 at its end instead.
    momentum_correction: for an optimizer whose rate is inside the velocity v = m v + lr g, as LARS and
    SGD(momentum_form="v"): after a change of the rate from lr to lr' one step is made with the momentum m lr'/lr, so
    that past gradients count with the new rate too. SGD's u-form multiplies the whole sum by the rate, and needs none;
    Nesterov's look-ahead would be scaled as well, so it is refused.

    Source: Goyal et al., Accurate, large minibatch SGD (arXiv:1706.02677), sections 2.1 and 2.2, and section 3, remark
    2; polynomial decay with power 2: You et al. (arXiv:1708.03888), section 6.

    >>> from minidl import Tensor, optim
    >>> optimizer = optim.SGD([Tensor(0.0, requires_grad=True)], lr=0.1)
    >>> schedule = LargeBatchLR(
    ...     optimizer, steps_per_epoch=2, batch_size=64, base_batch_size=16, warmup_epochs=2, milestones=[3]
    ... )
    >>> rates = []
    >>> for step in range(8):
    ...     rates += [round(rate, 4) for rate in schedule.get_last_lr()]
    ...     schedule.step()
    >>> rates
    [0.1, 0.175, 0.25, 0.325, 0.4, 0.4, 0.04, 0.04]

    Errors: ValueError for a size, a number of epochs or a name out of range; TypeError for momentum_correction with an
    optimizer that needs none.
    """

    state_names = ("_momenta",)

    def __init__(
        self,
        optimizer: Optimizer,
        steps_per_epoch: int,
        batch_size: int,
        base_batch_size: int,
        scaling: str = "linear",
        warmup: str = "gradual",
        warmup_epochs: float = 0,
        start_factor: float = 1.0,
        milestones: Sequence[float] = (),
        gamma: float = 0.1,
        total_epochs: float | None = None,
        power: float = 2.0,
        momentum_correction: bool = False,
        last_epoch: int = -1,
    ) -> None:
        sizes = {"steps_per_epoch": steps_per_epoch, "batch_size": batch_size, "base_batch_size": base_batch_size}
        for name, size in sizes.items():
            if not size >= 1:
                raise ValueError(f"{name} must be at least 1, got {size!r}")
        for name, value in {"warmup_epochs": warmup_epochs, "start_factor": start_factor, "gamma": gamma}.items():
            if not (value >= 0 and isfinite(value)):
                raise ValueError(f"{name} must be at least 0, got {value!r}")
        if scaling not in SCALINGS:
            raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}")
        if warmup not in WARMUPS:
            raise ValueError(f"warmup must be one of {', '.join(WARMUPS)}, got {warmup!r}")
        if total_epochs is not None and not total_epochs > warmup_epochs:
            raise ValueError(f"total_epochs must be above the warm-up's {warmup_epochs}, got {total_epochs!r}")
        if total_epochs is not None and milestones:
            raise ValueError("give milestones or total_epochs (polynomial decay), not both")
        if momentum_correction and not all(_has_rate_inside(optimizer, group) for group in optimizer.param_groups):
            raise TypeError(
                "momentum_correction is for an optimizer with the rate inside its velocity (LARS, or "
                f"SGD(momentum_form='v') without nesterov), which {type(optimizer).__name__} is not: leave it out"
            )
        self.scale: float = SCALINGS[scaling](batch_size / base_batch_size)
        self.warmup, self.start_factor, self.gamma, self.power = warmup, start_factor, gamma, power
        self.warmup_steps = round(warmup_epochs * steps_per_epoch)
        self.milestones = [round(milestone * steps_per_epoch) for milestone in milestones]
        self.total_steps = None if total_epochs is None else round(total_epochs * steps_per_epoch)
        self._momenta: list[float] = []
        self._corrected_at = [-1 for _ in optimizer.param_groups]  # the updates made before the last correction
        if momentum_correction:
            self._momenta = [group["momentum"] for group in optimizer.param_groups]
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """What the optimizer's first rate is multiplied by in that step, from 0."""
        if step < self.warmup_steps and self.warmup == "constant":
            return self.start_factor
        if step < self.warmup_steps and self.warmup == "gradual":
            return self.start_factor + (self.scale - self.start_factor) * step / self.warmup_steps
        if self.total_steps is None:
            return self.scale * self.gamma ** sum(step >= milestone for milestone in self.milestones)
        left = max(self.total_steps - max(step, self.warmup_steps), 0)
        return self.scale * float((left / (self.total_steps - self.warmup_steps)) ** self.power)

    def next_lr(self, lr: float, base_lr: float, index: int) -> float:
        new = base_lr * self.factor(self.last_epoch)
        if self._momenta:
            group, own, updates = self.optimizer.param_groups[index], self._momenta[index], self.optimizer.updates
            changed = new / lr if self.last_epoch > 0 and lr > 0 else 1.0
            is_unused = self._corrected_at[index] == updates  # several steps of the schedule before the next update
            group["momentum"] = (group["momentum"] if is_unused else own) * changed
            self._corrected_at[index] = updates
        return new


def _has_rate_inside(optimizer: Optimizer, group: Group) -> bool:
    """Whether the step is the velocity v = m v + lr g itself, so that a factor on m corrects it."""
    if isinstance(optimizer, SGD):
        return group["momentum_form"] == "v" and not group["nesterov"]
    return isinstance(optimizer, LARS)
