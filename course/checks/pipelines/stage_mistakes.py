"""The gradients of one node for a model of stages, and the weights that known mistakes of `run_stage` give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.checks.pipelines.order_clock import Lines, play
from course.probes.pipelines import Backward, Forward

Array = NDArray[Any]


def passed(weights: Sequence[Array], x: Array) -> list[Array]:
    """The input of every stage, for the input x of the model."""
    inputs = [x]
    for w in weights[:-1]:
        inputs.append(Forward(is_last=False)(w, inputs[-1]))
    return inputs


def back(weights: Sequence[Array], inputs: Sequence[Array], g: Any = 1.0) -> list[Array]:
    """The gradient of each stage's weights, of a loss whose own gradient is g, for the inputs of the stages."""
    found: list[Array] = []
    for s in reversed(range(len(weights))):
        g, gw = Backward(is_last=s == len(weights) - 1)(weights[s], inputs[s], g)
        found.append(gw)
    return found[::-1]


def gradients(weights: Sequence[Array], batches: Sequence[Array]) -> list[list[Array]]:
    """The oracle: for each micro-batch the gradients of its loss with respect to the weights of each stage."""
    return [back(weights, passed(weights, x)) for x in batches]


def with_inputs(
    weights: Sequence[Array], batches: Sequence[Array], lines: Lines, choose: Callable[[dict[str, Array], str], Array]
) -> list[Array]:
    """The gradients of all stages if every backward has the input that `choose(kept, m)` picks from those kept."""
    ends = play(lines).ends
    sums, last = [np.zeros_like(w) for w in weights], len(weights) - 1
    kept: list[dict[str, Array]] = [{} for _ in weights]
    outputs: dict[tuple[int, str], Array] = {}
    for s, action in sorted(ends, key=lambda source: ends[source]):  # U, which takes no time, is left out
        kind, m = action[0], action[1:]
        if kind == "F":
            kept[s][m] = outputs[s - 1, action] if s else batches[int(m)]
            outputs[s, action] = Forward(s == last)(weights[s], kept[s][m])
        elif kind == "B":
            g = 1 / len(batches) if s == last else outputs[s + 1, action]
            outputs[s, action], gw = Backward(s == last)(weights[s], choose(kept[s], m), g)
            sums[s] += gw
    return sums


def weights_by_mistake(
    weights: Sequence[Array], batches: Sequence[Array], lines: Lines, s: int, lr: float
) -> dict[str, Array]:
    """For each known mistake, a sentence and the weights of stage s that it gives."""
    each = [found[s] for found in gradients(weights, batches)]
    w, total, M = weights[s], np.sum(each, axis=0), len(batches)
    newest = with_inputs(weights, batches, lines, lambda kept, m: kept[max(kept, key=int)])[s]
    oldest = with_inputs(weights, batches, lines, lambda kept, m: kept["0"])[s]
    latest = with_inputs(weights, batches, lines, lambda kept, m: kept.pop(max(kept, key=int)))[s]
    by = {
        "The loss is the mean of the micro-batches' losses: on the last stage g is 1 / M.": total,
        "This was divided by M twice: g = 1 / M on the last stage is enough, all other gradients follow.": total / M**2,
        "Only the last micro-batch's gradient is in it: add up all of them.": each[-1] / M,
        "Only the first micro-batch's gradient is in it: the update comes after the last backward.": each[0] / M,
        "The backward of the last micro-batch is not in it.": (total - each[-1]) / M,
        "The gradient went the wrong way: it is subtracted.": -total / M,
        "The learning rate is missing.": total / M / lr,
        "Every backward has the newest input: keep the input of each micro-batch for its backward.": newest,
        "Every backward has the input of micro-batch 0: keep the input of each micro-batch.": oldest,
        "Every backward has the newest input that is left: it needs that of its own micro-batch.": latest,
        "These are the weights from before the update.": np.zeros_like(w),
        "This is the gradient, not the weights after the update.": (w - total / M) / lr,
    }
    return {sentence: w - lr * gradient for sentence, gradient in by.items()}
