"""LargeBatchLR: the learning rate for large minibatches, scaled with their size, warmed up, then decayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

from minidl.arguments import one_of, real_number
from minidl.optim.layer_wise import LARS
from minidl.optim.optimizer import Optimizer
from minidl.optim.schedules import LRScheduler
from minidl.optim.sgd import SGD
from minidl.optim.state_dict import Group

SCALINGS: dict[str, Callable[[float], float]] = {"linear": lambda k: k, "sqrt": sqrt, "fixed": lambda k: 1.0}
WARMUPS = ("none", "constant", "gradual")


class LargeBatchLR(LRScheduler):
    """Scale the learning rate with the minibatch size, warm it up, then decay it.

        k = batch_size / base_batch_size
        peak = lr k (linear), lr sqrt(k) (sqrt), lr (fixed)
        in the first warmup_epochs:
            rate = peak (none), start_factor lr (constant), or linear from start_factor lr to peak (gradual)
        then:
            rate = peak gamma^(milestones passed)
            rate = peak (steps left / steps after the warm-up)^power, if total_epochs is given

    The optimizer's rate `lr` belongs to minibatches of `base_batch_size` samples. Call `step()` after every update.

    Parameters
        steps_per_epoch    updates per epoch; second, so that `partial(LargeBatchLR, batch_size=…, …)` is a Job's
                           `schedule`
        batch_size         samples per minibatch
        base_batch_size    samples per minibatch for which the optimizer's lr was chosen
        scaling            peak rate: "linear", "sqrt" or "fixed"
        warmup             "none", "constant" or "gradual"
        warmup_epochs      length of the warm-up in epochs; fractions are allowed
        start_factor       rate at the start of a gradual warm-up, or during a constant one, as a multiple of lr
        milestones         epochs at which the rate is multiplied by gamma; fractions are allowed
        gamma              factor at each milestone
        total_epochs       polynomial decay to 0 at this epoch, instead of milestones
        power              exponent of the polynomial decay
        momentum_correction
                           after a change from lr to lr', make one step with momentum m lr'/lr, so that past
                           gradients count with the new rate

    Momentum correction is for optimizers with the rate inside the velocity, v = m v + lr g: LARS and
    SGD(momentum_form="v"). SGD's u-form multiplies the whole sum by the rate and needs none. It is refused with
    nesterov, whose look-ahead it would scale as well. At rate 0 such a velocity takes up nothing of a gradient, so no
    correction brings it back: with start_factor=0 the first gradient is lost, which the u-form uses later.

    Raises
        TypeError     a setting that is not a number, momentum_correction for another optimizer
        ValueError    a setting out of range, both milestones and total_epochs

    References
        Goyal et al., Accurate, large minibatch SGD (arXiv:1706.02677), sections 2.1 and 2.2, and section 3, remark 2;
        You et al. (arXiv:1708.03888), section 6 (polynomial decay with power 2).

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
            real_number(name, size, at_least=1)
        factors = {"warmup_epochs": warmup_epochs, "start_factor": start_factor, "gamma": gamma, "power": power}
        for name, value in factors.items():
            real_number(name, value, at_least=0)
        one_of("scaling", scaling, SCALINGS)
        one_of("warmup", warmup, WARMUPS)
        milestones = [real_number("a milestone", milestone) for milestone in milestones]
        if total_epochs is not None:
            real_number("total_epochs", total_epochs, above=warmup_epochs, hint="it counts the warm-up's epochs too")
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
        if self.total_steps is not None and self.total_steps <= self.warmup_steps:
            raise ValueError(
                f"total_epochs={total_epochs} leaves no step after the warm-up: it ends at step {self.total_steps} of "
                f"{steps_per_epoch} per epoch, the warm-up at step {self.warmup_steps}: give a larger total_epochs"
            )
        self._momenta: list[float] = []
        if momentum_correction:
            self._momenta = [group["momentum"] for group in optimizer.param_groups]
        super().__init__(optimizer, last_epoch)
        optimizer.after_step.append(self._end_correction)

    def factor(self, step: int) -> float:
        """Return the multiple of the optimizer's initial rate that is used in step `step`, counted from 0."""
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
        if self._momenta and index == len(self._momenta):  # a group added since
            self._momenta.append(self.optimizer.param_groups[index]["momentum"])
        if self._momenta and self.last_epoch > 0 and lr > 0:
            self.optimizer.param_groups[index]["momentum"] *= new / lr  # of several changes before one step: all
        return new

    def _end_correction(self) -> None:
        """Set the momentum back after one update, since the schedule need not step before the next one."""
        for group, momentum in zip(self.optimizer.param_groups, self._momenta, strict=False):  # none: no correction
            group["momentum"] = momentum


def _has_rate_inside(optimizer: Optimizer, group: Group) -> bool:
    """Return whether the step is the velocity v = m v + lr g, so that scaling m corrects it."""
    if isinstance(optimizer, SGD):
        return group["momentum_form"] == "v" and not group["nesterov"]
    return isinstance(optimizer, LARS)
