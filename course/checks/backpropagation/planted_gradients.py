"""Twelve functions with a gradient each, some right and some with a planted bug, for the check of `check_gradient`.

A sound gradient is right to rounding. A planted bug makes at least one element wrong by at least 1 % of the largest, or
not a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from course.judging import Wrong, expect


@dataclass(frozen=True)
class TanhNetwork:
    """f(x) = height * sum(tanh(W x / scale) ** 2) for a fixed random W.

    Of the last `idle` inputs every other one has no influence, and the others so little that rounding hides it.
    """

    inputs: int
    seed: int
    scale: float = 1.0
    height: float = 1.0
    idle: int = 0

    def matrix(self) -> np.ndarray:
        weights = np.random.default_rng(self.seed).standard_normal((4, self.inputs)) / np.sqrt(self.inputs)
        weights[:, self.inputs - self.idle :] *= 1e-10
        weights[:, self.inputs - self.idle :: 2] = 0.0
        return weights

    def __call__(self, x: np.ndarray) -> float:
        return float(self.height * np.sum(np.tanh(self.matrix() @ (x / self.scale)) ** 2))


@dataclass(frozen=True)
class TanhNetworkGradient:
    """The gradient of a TanhNetwork; `bug`: "", "factor", "outer", "zero", "one element", "bent element" or "NaN"."""

    network: TanhNetwork
    bug: str = ""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        net, weights = self.network, self.network.matrix()
        t = np.tanh(weights @ (x / net.scale))
        inner = np.ones_like(t) if self.bug == "outer" else 1 - t * t
        gradient = net.height * (weights.T @ (2 * t * inner)) / net.scale
        if self.bug == "factor":
            return gradient / 2
        if self.bug == "zero":
            return np.zeros_like(gradient)
        if self.bug == "one element":
            gradient[2 * len(gradient) // 3] -= 0.0102 * np.abs(gradient).max()
        if self.bug == "bent element":
            gradient[self.bent(x)] -= 0.0102 * np.abs(gradient).max()
        if self.bug == "NaN":
            gradient[len(gradient) - max(net.idle, 1)] = np.nan  # where it is 0: nobody may take it for a 0
        return gradient

    def bent(self, x: np.ndarray) -> int:
        """The axis along which f bends most: there the slopes to the left and the right differ most."""
        f, steps = self.network, 0.05 * np.abs(x).max() * np.eye(len(x))
        return int(np.argmax([abs(f(x + step) - 2 * f(x) + f(x - step)) for step in steps]))


@dataclass(frozen=True)
class Hinges:
    """f(x) = sum(slopes * max(x, 0)), with a kink wherever an element of x is 0."""

    slopes: tuple[float, ...]

    def __call__(self, x: np.ndarray) -> float:
        return float(np.sum(np.array(self.slopes) * np.maximum(x, 0)))


@dataclass(frozen=True)
class HingesGradient:
    """Its gradient; at the kinks, in their order, it is at_kinks * slope, which is right from 0 to 1."""

    hinges: Hinges
    at_kinks: tuple[float, ...]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        active = (x > 0).astype(float)
        active[x == 0] = self.at_kinks
        return np.array(self.hinges.slopes) * active


@dataclass(frozen=True)
class GradientCase:
    """A call of check_gradient: f, gradient and x, whether the gradient is sound, and the part of the check.

    description: the case in words. cause: why an answer may be wrong here.
    """

    title: str
    description: str
    f: TanhNetwork | Hinges
    gradient: TanhNetworkGradient | HingesGradient
    x: np.ndarray
    sound: bool
    cause: str

    def lent_f(self, x: Any) -> float:
        """f as it is lent to the answer."""
        return self.f(self.of_same_shape(x, "f"))

    def lent_gradient(self, x: Any) -> np.ndarray:
        """The gradient as it is lent to the answer."""
        return self.gradient(self.of_same_shape(x, "gradient"))

    def of_same_shape(self, x: Any, name: str) -> Any:
        """x, if it has the shape of the case's: in any other, two megabytes could take up all memory of the check."""
        if np.shape(x) != self.x.shape:
            raise ValueError(f"{name}: x has shape {self.x.shape}, got {expect.shown(x)}")
        return x


def cases(inputs: tuple[int, int], scale: float, seed: int) -> list[GradientCase]:
    """The twelve cases. inputs: of the small and of the large functions. scale: of the x that is far from 1."""
    random = np.random.default_rng(seed)
    few, many = inputs
    drawn: list[GradientCase] = []

    def network(title: str, description: str, bug: str, cause: str, net: TanhNetwork) -> None:
        x = net.scale * random.standard_normal(net.inputs)
        if net.scale != 1.0:
            if net.scale > 1.0:
                x = -np.abs(x)  # no step can be taken from the largest element, which is 0
            x[-1] = 0.0  # nor from the size of this one
        drawn.append(GradientCase(title, description, net, TanhNetworkGradient(net, bug), x, not bug, cause))

    title, small = "smooth functions", TanhNetwork(few, seed)
    network(
        title, f"the sound gradient of a smooth function of {few} inputs", "", "Is h small, and not too small?", small
    )
    network(title, "a gradient with a factor of 2 missing", "factor", "Does the tolerance exceed the error?", small)
    network(title, "a gradient in which the inner derivative is missing", "outer", "Are all elements compared?", small)

    title = "any scale of x and of f"
    step = (
        "The step h has to fit the size of x: a fixed one is swallowed by rounding if x is large, and leaps if x is "
        "small. Scale it with max|x|; one element of x alone may be 0, and none need be positive."
    )
    network(title, f"a sound gradient where x is about {scale:g}", "", step, TanhNetwork(few, seed + 1, scale=scale))
    network(
        title, f"a sound gradient where x is about {1 / scale:g}", "", step, TanhNetwork(few, seed + 2, scale=1 / scale)
    )
    tiny = TanhNetwork(few, seed + 3, height=1e-30)
    absolute = "The values of f are about 1e-30, less than an absolute tolerance: compare with the gradient's own size."
    network(title, "a gradient of zeros for a function that is small but not constant", "zero", absolute, tiny)

    title, wide = "one wrong element among many", TanhNetwork(many, seed + 4, idle=many // 4)
    zero = (
        "Some inputs have no influence, or next to none: their elements of the gradient are rightly 0 or lost in "
        "rounding. Divide by the largest element, not by each."
    )
    mean = (
        "One element is wrong by 1.02 % of the largest: look at the largest difference, not at a mean or a norm, and "
        "keep the tolerance below 1 %."
    )
    network(title, f"a sound gradient of {many} elements", "", zero, wide)
    network(title, f"a gradient of {many} elements of which one is wrong", "one element", mean, wide)
    unordered = (
        "A comparison with NaN is False: neither `difference > tolerance` nor max() notices it. Ask whether every "
        "`difference <= tolerance` is True."
    )
    network(title, f"a gradient of {many} elements of which one is NaN", "NaN", unordered, wide)

    title = "kinks"
    at_kink = "At a kink any slope between the left and the right one is right; either may be the larger one."
    beyond = "A kink does not excuse everything: only what lies between the left and the right slope is right."
    slopes = random.uniform(0.5, 2.0, few) * random.choice([-1, 1], few)
    x, kinks = random.standard_normal(few), [0, few // 2]
    x[kinks] = 0.0
    slopes[kinks] = np.abs(slopes[kinks]) * [1, -1]  # the larger slope is once the right one, once the left one
    hinges = Hinges(tuple(float(slope) for slope in slopes))
    for description, at, cause in (
        ("sum(c * max(x, 0)) with two zeros in x, where the gradient is c / 4 and 0", (0.25, 0.0), at_kink),
        ("sum(c * max(x, 0)) with two zeros in x, where the gradient is 1.5 c and 0", (1.5, 0.0), beyond),
    ):
        drawn.append(GradientCase(title, description, hinges, HingesGradient(hinges, at), x, max(at) <= 1, cause))

    coarse = (
        "One element is wrong by 1.02 % of the largest. Is h small? With a large one the slopes to the left and to the "
        "right lie far apart, and much lies between them. Is the tolerance below 1 %?"
    )
    network("smooth functions", f"a gradient of {few} elements of which one is wrong", "bent element", coarse, small)
    return drawn


def compare_verdict(got: Any, case: GradientCase) -> None:
    """Raise Wrong unless `got` is the right verdict: True, False, 1 or 0, of Python or numpy."""
    called = f"check_gradient(f, gradient, x) for {case.description}"
    if isinstance(got, np.ndarray) and got.ndim:
        message = f"{called}: expected {case.sound}, got an array of shape {got.shape}."
        raise Wrong(message, "One verdict is wanted, not one for each element: np.all makes one of them.")
    got = bool(got) if isinstance(got, (int, float)) and got in (0, 1) else got
    verdict = "A false alarm. " if case.sound else "A planted bug was missed. "
    expect.same(got, case.sound, called, mistakes={verdict + case.cause: not case.sound})
