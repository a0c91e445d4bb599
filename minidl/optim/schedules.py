"""Schedules change an optimizer's learning rate during training.

`step()` computes each group's next rate from its present one, so that several schedules on one optimizer compose: a
LinearLR and a StepLR give a warm-up and later drops. Call `step()` after the optimizer's, once per epoch or once per
minibatch: a schedule counts calls and names them epochs.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import cos, pi
from typing import Any

import numpy as np

from minidl.arguments import real_number, whole_number
from minidl.optim.optimizer import Optimizer


class LRScheduler(ABC):
    """Base class: `next_lr` of a subclass gives the learning rate of each parameter group.

    Parameters
        optimizer     optimizer whose `param_groups` are changed; each group stores its first rate as "initial_lr"
        last_epoch    -1 to start; k to resume from epoch k, with an optimizer whose groups have "initial_lr"

    Attributes
        last_epoch    current epoch
        base_lrs      initial rates, one per group
    """

    state_names: tuple[str, ...] = ()  # attributes in the state_dict, in addition to those of every schedule

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _checked(optimizer)
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise ValueError(
                    f"group {index} has no 'initial_lr' to go on from at last_epoch={last_epoch}: load the optimizer's "
                    "state first, or begin with last_epoch=-1"
                )
        self.optimizer = optimizer
        self.base_lrs: list[float] = _plain([group["initial_lr"] for group in optimizer.param_groups])
        self.last_epoch = _plain(last_epoch)
        self._resuming = last_epoch != -1
        self.step()
        self._resuming = False

    @abstractmethod
    def next_lr(self, lr: float, base_lr: float, index: int) -> float:
        """Return the rate of group `index` in epoch `last_epoch`; `lr` is the rate of the epoch before."""

    def step(self) -> None:
        """Advance to the next epoch and set every group's rate."""
        self.last_epoch += 1
        for group in self.optimizer.param_groups[len(self.base_lrs) :]:  # added since
            self.base_lrs.append(_plain(group.setdefault("initial_lr", group["lr"])))
        for index, (group, base_lr) in enumerate(zip(self.optimizer.param_groups, self.base_lrs, strict=True)):
            group["lr"] = float(self.next_lr(group["lr"], base_lr, index))
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """Return the current rates, one per group."""
        return list(self._last_lr)

    def state_dict(self) -> dict[str, Any]:
        """Return what is needed to resume, as plain numbers under PyTorch's names."""
        names = ("last_epoch", "base_lrs", "_last_lr", *self.state_names)
        return {name: _plain(getattr(self, name)) for name in names}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state, also one that went through JSON; the optimizer's state holds the rates.

        Raises ValueError if an entry is missing.
        """
        own = self.state_dict()
        if not isinstance(state, Mapping):
            raise TypeError(f"a schedule's state is a dict, as state_dict() gives, not a {type(state).__name__}")
        missing = own.keys() - state.keys()
        if missing:
            raise ValueError(f"the state lacks {', '.join(sorted(missing))}: it is not that of a {type(self).__name__}")
        values = {name: _plain(state[name]) for name in own}
        for name, value in values.items():
            if not _is_like(value, own[name]):
                raise ValueError(
                    f"{name} in the state is {value!r}: it is not that of a {type(self).__name__}, whose {name} is "
                    f"{own[name]!r}"
                )
        groups = len(self.optimizer.param_groups)
        if len(values["base_lrs"]) not in (len(self.base_lrs), groups):  # groups may have been added since
            raise ValueError(f"the state is for {len(values['base_lrs'])} parameter groups, the optimizer has {groups}")
        for name, value in values.items():
            setattr(self, name, value)


class StepLR(LRScheduler):
    """Multiply the rate by `gamma` every `step_size` epochs: lr = base gamma^(epoch // step_size).

    >>> from minidl import Tensor, optim
    >>> optimizer = optim.SGD([Tensor(0.0, requires_grad=True)], lr=1.0)
    >>> schedule = StepLR(optimizer, step_size=2, gamma=0.5)
    >>> rates = []
    >>> for epoch in range(5):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    state_names = ("step_size", "gamma")

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        real_number("gamma", gamma, at_least=0)
        self.step_size, self.gamma = whole_number("step_size", step_size, at_least=1), _plain(gamma)
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: float, base_lr: float, index: int) -> float:
        return lr * self.gamma if self.last_epoch > 0 and self.last_epoch % self.step_size == 0 else lr


class MultiStepLR(LRScheduler):
    """Multiply the rate by `gamma` at each epoch in `milestones`; an epoch listed twice counts twice.

    >>> from minidl import Tensor, optim
    >>> optimizer = optim.SGD([Tensor(0.0, requires_grad=True)], lr=1.0)
    >>> schedule = MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> rates = []
    >>> for epoch in range(5):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 0.5, 0.25, 0.25]
    """

    state_names = ("milestones", "gamma")

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        if not isinstance(milestones, Iterable):
            raise TypeError(f"milestones is a list of epochs, such as [30, 60], not {milestones!r}")
        real_number("gamma", gamma, at_least=0)
        counted = Counter(milestones)
        for milestone in counted:
            real_number("a milestone", milestone)
        self.milestones, self.gamma = _plain(counted), _plain(gamma)
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: float, base_lr: float, index: int) -> float:
        return lr * self.gamma ** self.milestones.get(self.last_epoch, 0)


class CosineAnnealingLR(LRScheduler):
    """Follow half a cosine from the base rate down to `eta_min` in `T_max` epochs.

        lr = eta_min + (base - eta_min) (1 + cos(pi epoch / T_max)) / 2

    After T_max epochs the rate rises again along the second half of the cosine.

    References
        Loshchilov and Hutter, SGDR (arXiv:1608.03983), equation 5, without restarts.

    >>> from minidl import Tensor, optim
    >>> optimizer = optim.SGD([Tensor(0.0, requires_grad=True)], lr=1.0)
    >>> schedule = CosineAnnealingLR(optimizer, T_max=4)
    >>> rates = []
    >>> for epoch in range(5):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     schedule.step()
    >>> rates
    [1.0, 0.8536, 0.5, 0.1464, 0.0]
    """

    state_names = ("T_max", "eta_min")

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        real_number("T_max", T_max, at_least=1)
        real_number("eta_min", eta_min, at_least=0)
        self.T_max, self.eta_min = _plain(T_max), _plain(eta_min)
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: float, base_lr: float, index: int) -> float:
        t, T = self.last_epoch, self.T_max
        if t == 0 or self._resuming:
            return lr
        if (t - 1 - T) % (2 * T) == 0:  # the rate was eta_min: a ratio of rates would be 0/0
            return lr + (base_lr - self.eta_min) * (1 - cos(pi / T)) / 2
        return self.eta_min + (lr - self.eta_min) * (1 + cos(pi * t / T)) / (1 + cos(pi * (t - 1) / T))


class LinearLR(LRScheduler):
    """Warm-up: multiply the rate by a factor that changes linearly from `start_factor` to `end_factor`.

    The change takes `total_iters` epochs.

    References
        Goyal et al., Accurate, large minibatch SGD (arXiv:1706.02677), section 2.2 (gradual warm-up).

    >>> from minidl import Tensor, optim
    >>> optimizer = optim.SGD([Tensor(0.0, requires_grad=True)], lr=1.0)
    >>> schedule = LinearLR(optimizer, start_factor=0.25, total_iters=3)
    >>> rates = []
    >>> for epoch in range(5):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     schedule.step()
    >>> rates
    [0.25, 0.5, 0.75, 1.0, 1.0]
    """

    state_names = ("start_factor", "end_factor", "total_iters")

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        real_number("start_factor", start_factor, above=0, at_most=1)
        real_number("end_factor", end_factor, at_least=0, at_most=1)
        real_number("total_iters", total_iters, at_least=1)
        self.start_factor, self.end_factor, self.total_iters = map(_plain, (start_factor, end_factor, total_iters))
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: float, base_lr: float, index: int) -> float:
        t = self.last_epoch
        if t == 0:
            return lr * self.start_factor
        if self._resuming or t > self.total_iters:
            return lr
        # factor(t) / factor(t - 1), where factor(t) = start + (end - start) t / total
        rise = self.end_factor - self.start_factor
        return lr * (1 + rise / (self.total_iters * self.start_factor + (t - 1) * rise))


class LambdaLR(LRScheduler):
    """Multiply the base rate by a function of the epoch, or by one function per parameter group.

    The rate is computed from the base rate, so that changes by other schedules on the optimizer are lost. The
    state_dict does not contain the functions.

    >>> from minidl import Tensor, optim
    >>> optimizer = optim.SGD([Tensor(0.0, requires_grad=True)], lr=1.0)
    >>> schedule = LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> rates = []
    >>> for epoch in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 0.3333, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = len(_checked(optimizer).param_groups)
        if not callable(lr_lambda) and not isinstance(lr_lambda, Sequence):
            raise TypeError(
                f"lr_lambda is a function of the epoch, such as lambda epoch: 0.9**epoch, or a list of them, not "
                f"{lr_lambda!r}"
            )
        self.lr_lambdas = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"there are {groups} parameter groups, but {len(self.lr_lambdas)} functions were given")
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: float, base_lr: float, index: int) -> float:
        if index >= len(self.lr_lambdas):
            raise ValueError(
                f"parameter group {index} was added after LambdaLR was made, with {len(self.lr_lambdas)} functions: "
                "add the group first"
            )
        factor: Any = self.lr_lambdas[index](self.last_epoch)
        try:
            return float(base_lr * factor)
        except TypeError:
            raise TypeError(
                f"LambdaLR: lr_lambda returns a number, the factor of the base rate; for epoch {self.last_epoch} it "
                f"returned {factor!r}"
            ) from None


def _plain(value: Any) -> Any:
    """A copy in Python's numbers, which JSON takes; a dict's keys, which it turns into text, are numbers again."""
    if isinstance(value, Mapping):
        return Counter({_number(key): count for key, count in value.items()})
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def _number(key: Any) -> Any:
    try:
        return json.loads(key) if isinstance(key, str) else _plain(key)
    except json.JSONDecodeError:
        return key


def _is_like(value: Any, own: Any) -> bool:
    """Whether a value from a state has the kind of a schedule's own: a number, a list of numbers, counts by number."""
    if isinstance(own, Mapping):
        return isinstance(value, Mapping) and all(_is_like(each, 0) for pair in value.items() for each in pair)
    if isinstance(own, list):
        return isinstance(value, list) and all(_is_like(each, own[0]) for each in value if own)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number or type(own) not in (int, float)


def _checked(optimizer: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"a schedule needs an Optimizer, got {type(optimizer).__name__}")
    return optimizer
