"""Runs of `lars_step`: the reference, known mistakes, and what the answer did to its arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.plural import counted
from course.probes.large_minibatches import peak_of_step, steps_in_place
from minidl.random import Purpose, stream

Array = NDArray[Any]
Layers = list[Array]
Settings = tuple[float, float, float]
"""(momentum, weight_decay, trust)"""

Shapes = Sequence[Sequence[int]]

MOST_ARRAYS = 4
"""Bytes of arrays made on the way, in those of the largest layer."""

ROUNDING, TO_SIX_DIGITS = 1e-12, 1e-7
"""Allowed differences."""


def ratio_of(w: Array, g: Array, decay: float, trust: float) -> float:
    """The trust ratio of a layer: 1 for one axis, and where a norm is 0."""
    w_norm, g_norm = float(np.sqrt((w**2).sum())), float(np.sqrt((g**2).sum()))
    return trust * w_norm / (g_norm + decay * w_norm) if w.ndim > 1 and w_norm and g_norm else 1.0


def reference(w: Array, g: Array, v: Array, lr: float, settings: Settings, ratio: float) -> tuple[Array, Array]:
    """One layer's step: the new weights and velocity."""
    momentum, decay, _ = settings
    v = momentum * v + lr * ratio * (g + decay * w)
    return w - v, v


Rule = Callable[[Array, Array, Array, float, Settings, float, "Step"], tuple[Array, Array]]


@dataclass(frozen=True)
class Step:
    """A step of all layers before it was made."""

    weights: Layers
    gradients: Layers
    velocities: Layers
    lr: float
    settings: Settings

    def after(self, rule: Rule | None = None) -> list[tuple[Array, Array]]:
        """Weights and velocity of each layer after the step; rule: another one than the right one."""
        _, decay, trust = self.settings
        layers = zip(self.weights, self.gradients, self.velocities, strict=True)
        made = []
        for w, g, v in layers:
            ratio = ratio_of(w, g, decay, trust)
            if rule is None:
                made.append(reference(w, g, v, self.lr, self.settings, ratio))
            else:
                with np.errstate(all="ignore"):
                    made.append(rule(w, g, v, self.lr, self.settings, ratio, self))
        return made


def norm(x: Array) -> float:
    return float(np.sqrt((x**2).sum()))


def with_ratio(of: Callable[[Array, Array, float, float, Step], float]) -> Rule:
    """The rule with another ratio for layers that have one."""

    def rule(w: Array, g: Array, v: Array, lr: float, settings: Settings, ratio: float, step: Step) -> Any:
        if w.ndim > 1 and norm(w) and norm(g):
            ratio = float(of(w, g, settings[1], settings[2], step))
        return reference(w, g, v, lr, settings, ratio)

    return rule


def everywhere(w: Array, g: Array, v: Array, lr: float, settings: Settings, ratio: float, step: Step) -> Any:
    """Biases have a ratio, too."""
    if norm(w) and norm(g):
        ratio = settings[2] * norm(w) / (norm(g) + settings[1] * norm(w))
    return reference(w, g, v, lr, settings, ratio)


def of_all(w: Array, g: Array, decay: float, trust: float, step: Step) -> float:
    """One ratio for all layers together."""
    w_norm, g_norm = (np.sqrt(sum(norm(each) ** 2 for each in arrays)) for arrays in (step.weights, step.gradients))
    return float(trust * w_norm / (g_norm + decay * w_norm))


def rate_outside(w: Array, g: Array, v: Array, lr: float, settings: Settings, ratio: float, step: Step) -> Any:
    momentum, decay, _ = settings
    v = momentum * v + ratio * (g + decay * w)
    return w - lr * v, v


def all_outside(w: Array, g: Array, v: Array, lr: float, settings: Settings, ratio: float, step: Step) -> Any:
    momentum, decay, _ = settings
    v = momentum * v + g + decay * w
    return w - lr * ratio * v, v


def without_decay(w: Array, g: Array, v: Array, lr: float, settings: Settings, ratio: float, step: Step) -> Any:
    v = settings[0] * v + lr * ratio * g
    return w - v, v


def decay_unscaled(w: Array, g: Array, v: Array, lr: float, settings: Settings, ratio: float, step: Step) -> Any:
    v = settings[0] * v + lr * (ratio * g + settings[1] * w)
    return w - v, v


def old_velocity(w: Array, g: Array, v: Array, lr: float, settings: Settings, ratio: float, step: Step) -> Any:
    return w - v, reference(w, g, v, lr, settings, ratio)[1]


def upward(w: Array, g: Array, v: Array, lr: float, settings: Settings, ratio: float, step: Step) -> Any:
    new = reference(w, g, v, lr, settings, ratio)[1]
    return w + new, new


def no_decay_for_biases(w: Array, g: Array, v: Array, lr: float, settings: Settings, ratio: float, step: Step) -> Any:
    momentum, decay, trust = settings
    return reference(w, g, v, lr, (momentum, decay if w.ndim > 1 else 0.0, trust), ratio)


def without_exception(w: Array, g: Array, v: Array, lr: float, settings: Settings, ratio: float, step: Step) -> Any:
    """A norm of 0 is no exception."""
    if w.ndim > 1:
        ratio = float(np.float64(settings[2] * norm(w)) / (norm(g) + settings[1] * norm(w)))
    return reference(w, g, v, lr, settings, ratio)


RULES: dict[str, Rule] = {
    "Biases are to have weight decay as well: only their ratio is 1.": no_decay_for_biases,
    "A matrix of zeros would never move, and without a gradient the ratio would be trust / decay: where a norm is 0, "
    "the ratio is 1.": without_exception,
    "One ratio was taken for all layers: each layer has its own norms.": with_ratio(of_all),
    "The weight decay is missing in the denominator: |g| + decay |w|.": with_ratio(
        lambda w, g, decay, trust, step: trust * norm(w) / norm(g)
    ),
    "The denominator is |g| + decay |w|, not the norm of the sum g + decay w.": with_ratio(
        lambda w, g, decay, trust, step: trust * norm(w) / norm(g + decay * w)
    ),
    "The ratio is upside down: trust |w| stands above.": with_ratio(
        lambda w, g, decay, trust, step: trust * (norm(g) + decay * norm(w)) / norm(w)
    ),
    "The norms were squared in the ratio.": with_ratio(
        lambda w, g, decay, trust, step: trust * norm(w) ** 2 / (norm(g) ** 2 + decay * norm(w) ** 2)
    ),
    "The denominator is |g| + decay |w|: this has no gradient in it.": with_ratio(
        lambda w, g, decay, trust, step: trust * norm(w) / (decay * norm(w)) if decay else 1.0
    ),
    "There is no ratio: this is SGD.": with_ratio(lambda w, g, decay, trust, step: 1.0),
    "The ratio lacks the factor trust.": with_ratio(
        lambda w, g, decay, trust, step: norm(w) / (norm(g) + decay * norm(w))
    ),
    "Arrays with one axis have the ratio 1.": everywhere,
    "The ratio was multiplied by g alone; the weight decay is to be in the step, too.": without_decay,
    "The ratio was multiplied by g alone: it is a factor of g + decay * w.": decay_unscaled,
    "The learning rate belongs into the velocity, with the ratio: v = m v + lr ratio (g + decay w).": rate_outside,
    "The rate and the ratio belong into the velocity: v = m v + lr ratio (g + decay w).": all_outside,
    "The weights were moved by the old velocity: v is updated first.": old_velocity,
    "The step goes up: w - v.": upward,
}


@dataclass(frozen=True)
class Run:
    """A run of several steps, and what the probe saw."""

    steps: list[Step]
    seen: dict[str, Any]
    shapes: Shapes
    settings: Settings

    def called(self, number: int = 0) -> str:
        momentum, decay, trust = self.settings
        rate = self.steps[number].lr
        return (
            f"lars_step, layers of shapes {', '.join(str(tuple(shape)) for shape in self.shapes)}, lr={rate:.4g}, "
            f"momentum={momentum:g}, weight_decay={decay:g}, trust={trust:g}, step {number}"
        )


def run(
    answer: Answer,
    shapes: Shapes,
    rates: Sequence[float],
    settings: Settings,
    seed: int,
    change: Callable[[Layers, list[Layers]], None] | None = None,
) -> Run:
    """Let the answer make a step for each rate. change: of the weights and the gradients beforehand."""
    rng = stream(Purpose.MANUAL, seed, "layers", len(shapes), len(rates))
    weights = [rng.normal(size=tuple(shape)) * 2.0**i for i, shape in enumerate(shapes)]
    gradients = [[rng.normal(size=tuple(shape)) * 3.0**-i for i, shape in enumerate(shapes)] for _ in rates]
    if change is not None:
        change(weights, gradients)
    seen = answer.run(steps_in_place, weights, gradients, list(rates), settings)
    steps, w, v = [], list(weights), [np.zeros_like(each) for each in weights]
    for given, lr in zip(gradients, rates, strict=True):
        steps.append(Step(w, given, v, lr, settings))
        after = steps[-1].after()
        w, v = [each for each, _ in after], [each for _, each in after]
    return Run(steps, seen, shapes, settings)


def compare(one: Run, tolerance: float = TO_SIX_DIGITS) -> None:
    """Raise Wrong unless all arrays have the right values after each step."""
    weights, velocities = one.seen["held"][-1]
    if all(map(np.array_equal, weights, one.steps[0].weights)) and not any(map(np.any, velocities)):
        raise Wrong(
            f"{one.called()}: the weights and the velocities are as they were.",
            "The new values are to be written into the arrays of the lists; w = w - v makes a new array, w -= v writes "
            "into the old one.",
        )
    for number, (step, (weights, velocities)) in enumerate(zip(one.steps, one.seen["held"], strict=True)):
        for layer, (w, v) in enumerate(step.after()):
            for name, got, want in (("velocity", velocities, v), ("weights", weights, w)):
                called = f"{one.called(number)}: {name} of layer {layer}"
                if layer >= len(got):
                    raise Wrong(f"{called}: the list has {counted(len(got), 'array')} now.")
                scale = tolerance * (1 + float(np.abs(want).max(initial=0.0)))
                slips = wrong_values(step, layer, name == "weights")
                if np.isnan(got[layer]).any():
                    raise Wrong(f"{called}: it has NaN in it.", "Is a norm 0? Then the ratio is 1.")
                expect.array(got[layer], want, called, rtol=0, atol=scale, mistakes=slips)


def wrong_values(step: Step, layer: int, is_weights: bool) -> dict[str, Array]:
    """What known mistakes make of an array, of those that differ from what is right."""
    right = step.after()[layer][0 if is_weights else 1]
    made = {sentence: step.after(rule)[layer][0 if is_weights else 1] for sentence, rule in RULES.items()}
    return {sentence: value for sentence, value in made.items() if not np.allclose(value, right, rtol=1e-10, atol=0)}


def compare_place(one: Run) -> None:
    """Raise Wrong unless the lists have the same array objects, and the gradients are as they were."""
    if one.seen["is_gradient_changed"]:
        raise Wrong(f"{one.called()}: the gradients were changed.", "g += weight_decay * w writes into the gradient.")
    if one.seen["is_replaced"]:
        raise Wrong(
            f"{one.called()}: a list has another array object than before.",
            "weights[i] = weights[i] - v makes a new array; w -= v or w[...] = w - v writes into the old one.",
        )
    compare(one)


def compare_memory(answer: Answer, layers: int, width: int, settings: Settings, seed: int) -> None:
    """Raise Wrong if more memory is taken than for a few arrays of one layer."""
    rng = stream(Purpose.MANUAL, seed, "memory of a step")
    weights = [rng.normal(size=(width, width)) for _ in range(layers)]
    gradients = [rng.normal(size=(width, width)) for _ in range(layers)]
    peak, have_changed = answer.run(peak_of_step, weights, gradients, (0.1, *settings))
    called, one = f"lars_step, {layers} layers of shape ({width}, {width})", weights[0].nbytes
    expect.true(have_changed, f"{called}: the weights are as they were, or no numbers.")
    limit = MOST_ARRAYS * one + one // 2  # and what Python itself takes
    if peak > limit:
        raise Wrong(
            f"{called}: the arrays made on the way have {peak:,} bytes at one time; expected at most {MOST_ARRAYS} "
            f"times the {one:,} bytes of a layer.",
            "All layers seem to be copied: finish one layer before the next, and write into its arrays.",
        )


def no_weights(weights: Layers, gradients: list[Layers]) -> None:
    """The first matrix begins at zero, as some layers do."""
    weights[0][...] = 0.0


def no_gradient(weights: Layers, gradients: list[Layers]) -> None:
    """The first matrix has no gradient in some steps, and the last layer in the first step."""
    for given in gradients[1:3]:
        given[0][...] = 0.0
    gradients[0][-1][...] = 0.0


def nothing(weights: Layers, gradients: list[Layers]) -> None:
    """The first matrix has neither weights nor a gradient in the first step."""
    weights[0][...] = 0.0
    gradients[0][0][...] = 0.0


ZEROS = (no_weights, no_gradient, nothing)


def in_other_units(weights: Layers, gradients: list[Layers]) -> None:
    """Small and large gradients: an epsilon beside the norm would count for one of them."""
    for given in gradients:
        for layer, g in enumerate(given):
            if g.ndim > 1:
                g *= 1e-9 if layer % 2 == 0 else 1e6
