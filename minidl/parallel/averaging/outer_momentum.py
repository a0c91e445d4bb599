"""Outer momentum: each round of local SGD ends with an outer SGD step along the change of the mean model."""

from __future__ import annotations

from collections.abc import Sequence

from minidl import optim
from minidl.nn import Parameter
from minidl.optim.optimizer import Group

OUTER_FORMS = ("u", "v")


class OuterMomentum:
    """Makes the outer step after each round of local SGD; every node computes it, with the same bits.

        x0   = weights at the start of the round, the same on all nodes
        mean = mean of the nodes' weights at its end

        form="u" (SlowMo)                        form="v" (DiLoCo)
        u = momentum u + (x0 - mean) / gamma     u = momentum u + (x0 - mean)
        x = x0 - lr gamma u                      x = x0 - lr u

    gamma is the mean of the inner learning rates of the round's steps, for each group of parameters. With nesterov,
    momentum u + (x0 - mean) / gamma takes the place of u in the last line, as in `optim.SGD`, which does the step.
    Memory: x0 and u, two arrays for each parameter.

    Parameters
        groups     the inner optimizer's `param_groups`; other parameters are unchanged
        lr         learning rate of the outer step
        momentum   momentum of the outer step, at least 0 and below 1
        nesterov   True: Nesterov's form of this momentum
        form       "u" or "v"
    """

    def __init__(self, groups: Sequence[Group], lr: float, momentum: float, nesterov: bool, form: str) -> None:
        self.groups, self.lr, self.form = groups, lr, form
        self._starts = [[Parameter(parameter.data.copy()) for parameter in group["params"]] for group in groups]
        self._outer = optim.SGD([{"params": starts} for starts in self._starts], lr, momentum, nesterov=nesterov)
        self._rates: list[list[float]] = [[] for _ in groups]  # of the round's steps so far

    def begin_round(self) -> None:
        """Begin a round: keep a copy of the present weights."""
        for group, starts in zip(self.groups, self._starts, strict=True):
            for parameter, start in zip(group["params"], starts, strict=True):
                start.copy_(parameter.numpy())
        self._rates = [[] for _ in self.groups]

    def begin_local_step(self) -> None:
        """Note the learning rates of the local step that follows."""
        for group, rates in zip(self.groups, self._rates, strict=True):
            rates.append(group["lr"])

    def step(self) -> None:
        """Make the outer step: the parameters hold the nodes' mean before it, and the new weights after it."""
        rates = [sum(rates) / len(rates) if self.form == "u" else 1.0 for rates in self._rates]
        for group, outer, gamma in zip(self.groups, self._outer.param_groups, rates, strict=True):
            outer["lr"] = self.lr * gamma
            for parameter, start in zip(group["params"], outer["params"], strict=True):
                moved = start.data - parameter.data
                start.grad = moved / gamma if gamma else moved * 0
        self._outer.step()
        for group, starts in zip(self.groups, self._starts, strict=True):
            for parameter, start in zip(group["params"], starts, strict=True):
                parameter.copy_(start.numpy())
