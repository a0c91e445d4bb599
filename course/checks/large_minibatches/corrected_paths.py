"""A run along a schedule of rates: the path with the rate outside the velocity, and those of known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.plural import counted
from minidl.random import Purpose, stream

Array = NDArray[Any]

Case = tuple[int, int, float]
"""(n, steps, momentum)"""

Factor = Callable[[float, float], float]
"""What the velocity is multiplied by besides momentum, of the rate and the rate before."""

ROUNDING = 1e-12


@dataclass
class Run:
    """A run of the answer: the problem, the schedule, what gradient was asked for, and what came back."""

    start: Array
    kind: str
    curvatures: Array
    targets: Array
    rates: list[float]
    momentum: float
    steps: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)
    returned: Any = None

    @property
    def called(self) -> str:
        return (
            f"corrected_run(w, gradient, rates, momentum={self.momentum:g}), {counted(len(self.start), 'weight')}, "
            f"rates {', '.join(f'{rate:.4g}' for rate in self.rates[:6])}{', …' if len(self.rates) > 6 else ''}"
        )

    def gradient(self, w: Array, step: int) -> Array:
        return np.asarray(self.curvatures * (w - self.targets[step]))

    def asked(self, w: Any, step: Any) -> Array:
        """The gradient as the answer gets it; notes what it was asked for."""
        if not isinstance(step, int | np.integer) or not 0 <= step < len(self.rates):
            raise ValueError(f"gradient: the steps are 0 to {len(self.rates) - 1}, got {step!r}")
        if not isinstance(w, np.ndarray) or w.shape != self.start.shape or w.dtype.kind not in "fiu":
            raise ValueError(f"gradient: the weights are {self.start.size} numbers, got {expect.shown(w)}")
        self.steps.append(int(step))
        self.weights.append(np.array(w, dtype=float))
        return self.gradient(self.weights[-1], int(step))

    def path(self, factor: Factor = lambda lr, before: lr / before, new: Factor = lambda lr, before: 1.0) -> Array:
        """The weights before each step and after the last one, in the form with the rate inside the velocity.

        factor: of the old velocity; new: of the new gradient.
        """
        w, v, before = self.start, np.zeros_like(self.start), self.rates[0]
        path = [w]
        for step, lr in enumerate(self.rates):
            v = self.momentum * factor(lr, before) * v + lr * new(lr, before) * self.gradient(w, step)
            w, before = w - v, lr
            path.append(w)
        return np.array(path)

    def right_path(self) -> Array:
        """The same with the rate outside."""
        w, u = self.start, np.zeros_like(self.start)
        path = [w]
        for step, lr in enumerate(self.rates):
            u = self.momentum * u + self.gradient(w, step)
            w = w - lr * u
            path.append(w)
        return np.array(path)


def run(answer: Answer, case: Case, kind: str, seed: int) -> Run:
    """Let the answer run along a schedule: "constant", "rising" (a warm-up) or "falling" (drops)."""
    n, steps, momentum = case
    rng = stream(Purpose.MANUAL, seed, "corrected run", n, steps)
    rate = float(np.round(rng.uniform(0.05, 0.1), 3))
    rates = {
        "constant": [rate] * steps,
        "rising": [rate * (1 + step / max(steps - 2, 1)) for step in range(steps - 2)] + [24 * rate] * 2,
        "falling": [3 * rate * 0.2 ** (3 * step // steps) for step in range(steps)],
    }[kind]
    one = Run(rng.normal(size=n), kind, rng.uniform(0.5, 2.0, n), rng.normal(0.0, 2.0, (steps, n)), rates, momentum)
    one.returned = answer(one.start.copy(), answer.offered(one.asked, "gradient"), list(rates), momentum)
    return one


def compare_path(one: Run) -> None:
    """Raise Wrong unless the weights are those of the form with the rate outside, and v the last change."""
    w, v = returned(one)
    want = one.right_path()
    last = expect.number_array(w, f"{one.called}: w", f"an array of shape {one.start.shape}")
    if one.steps == list(range(len(one.rates))) and last.shape == one.start.shape:  # the whole path was seen
        got = np.array([*one.weights, last])
        expect.array(
            got, want, f"{one.called}: row t of the weights before each step, and after the last one", rtol=0,
            atol=ROUNDING * (1 + float(np.abs(want).max())), mistakes=wrong_paths(one),
        )  # fmt: skip
    scale = ROUNDING * (1 + float(np.abs(want).max()))
    ends = {sentence: path[-1] for sentence, path in wrong_paths(one).items()}
    expect.array(w, want[-1], f"{one.called}: w", rtol=0, atol=scale, mistakes=ends)
    last, lr = want[-2] - want[-1], one.rates[-1]
    slips = {
        "This is the sum u: the velocity has the rate inside, v = lr * u.": last / lr,
        "The sign of v is wrong: w <- w - v.": -last,
        "The velocity is the one before the last step.": want[max(len(want) - 3, 0)] - want[-2],
    }
    expect.array(v, last, f"{one.called}: v", rtol=0, atol=scale, mistakes=slips)


def wrong_paths(one: Run) -> dict[str, Array]:
    """The paths of known mistakes, of those that differ from the right one."""
    found = {
        f"The correction is missing where the rate is {one.kind}: the old velocity keeps its old rate.": one.path(
            lambda lr, before: 1.0
        ),
        "The factor is upside down: it is lr / lr_before.": one.path(lambda lr, before: before / lr),
        "The new gradient was corrected, too; it is multiplied by lr already.": one.path(
            new=lambda lr, before: lr / before
        ),
        "The correction is lr / rates[0]: each step is to be corrected by the rate of the step before.": one.path(
            lambda lr, before: lr / one.rates[0]
        ),
        "The old velocity was multiplied by lr itself: divide by the rate of the step before.": one.path(
            lambda lr, before: lr
        ),
        "The gradient was multiplied by 1 - momentum: that is an average.": one.path(
            new=lambda lr, before: 1 - one.momentum
        ),
        "The steps go up the slope.": one.path(new=lambda lr, before: -1.0),
    }
    right = one.right_path()
    return {sentence: path for sentence, path in found.items() if not np.allclose(path, right, rtol=1e-9)}


def compare_calls(one: Run) -> None:
    """Raise Wrong unless each step's gradient was computed once, in order, at the weights of that step."""
    count, steps = len(one.steps), len(one.rates)
    if one.steps != list(range(steps)):
        raise Wrong(
            f"{one.called}: expected {counted(steps, 'call')} of gradient, for steps 0 to {steps - 1} in order, got "
            f"{counted(count, 'call')}, for steps {', '.join(map(str, one.steps[:8])) or 'none'}"
            f"{', …' if count > 8 else ''}.",
            "A gradient is what takes the time: compute it once a step." if count > steps else "",
        )
    if steps > 1 and all(np.array_equal(w, one.weights[0]) for w in one.weights):
        raise Wrong(
            f"{one.called}: all gradients were computed at the same weights.",
            "Each gradient belongs to the weights that the step before it has left.",
        )


def returned(one: Run) -> tuple[Any, Any]:
    """w and v; Wrong if that is not what was returned."""
    w, v = expect.listed(one.returned, one.called, "(w, v)", 2)
    return w, v


def runs(answer: Answer, cases: Sequence[Case], kind: str, seed: int) -> list[Run]:
    return [run(answer, case, kind, seed) for case in cases]
