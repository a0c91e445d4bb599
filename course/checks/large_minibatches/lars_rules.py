"""A step of LARS: the right one, and those of known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Layers = list[Array]
Settings = tuple[float, float, float]
"""(momentum, weight_decay, trust)"""


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
        lambda w, g, decay, trust, step: trust * norm(w) / (decay * norm(w)) if decay else np.inf
    ),
    "There is no ratio, or it was limited to 1: this is SGD.": with_ratio(lambda w, g, decay, trust, step: 1.0),
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


def wrong_values(step: Step, layer: int, is_weights: bool) -> dict[str, Array]:
    """What known mistakes make of an array, of those that differ from what is right."""
    right = step.after()[layer][0 if is_weights else 1]
    made = {sentence: step.after(rule)[layer][0 if is_weights else 1] for sentence, rule in RULES.items()}
    return {sentence: value for sentence, value in made.items() if not np.allclose(value, right, rtol=1e-10, atol=0)}
