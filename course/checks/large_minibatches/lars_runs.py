"""Runs of `lars_step`: its values against the right ones, and what the answer did to its arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.checks.large_minibatches.lars_rules import Layers, Settings, Step, wrong_values
from course.judging import Answer, Wrong, expect
from course.plural import counted
from course.probes.large_minibatches import peak_of_step, steps_in_place
from minidl.random import Purpose, stream

Shapes = Sequence[Sequence[int]]

MOST_ARRAYS = 4
"""Bytes of arrays made on the way, in those of the largest layer."""

ROUNDING, TO_SIX_DIGITS = 1e-12, 1e-7
"""Allowed differences."""


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
    velocities = [0.1 * rng.normal(size=tuple(shape)) for shape in shapes]  # of earlier steps
    seen = answer.run(steps_in_place, weights, velocities, gradients, list(rates), settings)
    steps, w, v = [], list(weights), list(velocities)
    for given, lr in zip(gradients, rates, strict=True):
        steps.append(Step(w, given, v, lr, settings))
        after = steps[-1].after()
        w, v = [each for each, _ in after], [each for _, each in after]
    return Run(steps, seen, shapes, settings)


def compare(one: Run, tolerance: float = TO_SIX_DIGITS) -> None:
    """Raise Wrong unless all arrays have the right values after each step."""
    weights, velocities = one.seen["held"][-1]
    before = one.steps[0].weights + one.steps[0].velocities
    if all(map(np.array_equal, [*weights, *velocities], before)):
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
                if np.isnan(got[layer]).any():
                    raise Wrong(f"{called}: it has NaN in it.", "Is a norm 0? Then the ratio is 1.")
                slips = wrong_values(step, layer, name == "weights")
                alike = {sentence: wrong for sentence, wrong in slips.items() if are_close(got[layer], wrong)}
                expect.array(got[layer], want, called, rtol=0, atol=scale, mistakes=alike)


def are_close(got: Any, wrong: Any) -> bool:
    """Whether all numbers agree in six digits, however small they are."""
    if got.shape != wrong.shape or not np.isfinite(wrong).all():
        return False
    return bool(np.allclose(got, wrong, rtol=1e-6, atol=1e-9 * float(np.abs(wrong).max(initial=0.0))))


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
            "All layers seem to be copied: finish one layer before the next, and write into its arrays."
            if peak > layers * one
            else "",
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
