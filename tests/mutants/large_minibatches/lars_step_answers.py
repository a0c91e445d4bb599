"""Answers to `lars_step`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

LARS = """
def lars_step(weights, gradients, velocities, lr, momentum, weight_decay, trust):
    for i, (w, g, v) in enumerate(zip(weights, gradients, velocities)):
        ratio, a, b = 1.0, np.linalg.norm(w), np.linalg.norm(g)
        if w.ndim > 1 and a > 0 and b > 0:
            ratio = trust * a / (b + weight_decay * a)
        v *= momentum
        v += lr * ratio * (g + weight_decay * w)
        w -= v
"""
FIRST = "a first step: the ratio of each matrix, and 1 for biases"
MANY = "many steps with momentum, while the rate changes"
ZERO = "norms of 0 have ratio 1"
UNIT = "another unit of a gradient makes the same step"
PLACE = "in place: the same array objects, and the gradients as they were"
MEMORY = "memory for a few arrays of one layer"
VALUES = (FIRST, MANY, ZERO, UNIT, PLACE)
RATIO = "trust * a / (b + weight_decay * a)"


def lars(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in one line."""
    return Mutant("lars_step", mistake, changed(LARS, *replacements), loses, says)


MUTANTS = [
    lars(
        "one ratio for all layers",
        VALUES,
        "One ratio was taken for all layers",
        "    for i,",
        "    A, B = (np.sqrt(sum((x**2).sum() for x in xs)) for xs in (weights, gradients))\n    for i,",
        RATIO,
        "trust * A / (B + weight_decay * A)",
    ),
    lars(
        "no weight decay in the denominator",
        (FIRST, MANY, ZERO, PLACE),
        "missing in the denominator",
        RATIO,
        "trust * a / b",
    ),
    lars(
        "the norm of the sum in the denominator",
        (FIRST, MANY, ZERO, PLACE),
        "not the norm of the sum",
        RATIO,
        "trust * a / np.linalg.norm(g + weight_decay * w)",
    ),
    lars("the ratio upside down", VALUES, "The ratio is upside down", RATIO, "trust * (b + weight_decay * a) / a"),
    lars(
        "squared norms", VALUES, "The norms were squared", RATIO, "trust * a**2 / (b**2 + weight_decay * a**2)"
    ),
    lars(
        "the weight decay without the ratio",
        (FIRST, MANY, ZERO, PLACE),
        "it is a factor of g + decay * w",
        "lr * ratio * (g + weight_decay * w)",
        "lr * (ratio * g + weight_decay * w)",
    ),
    lars(
        "the weight decay only in the ratio",
        (FIRST, MANY, ZERO, PLACE),
        "the weight decay is to be in the step, too",
        "(g + weight_decay * w)",
        "g",
    ),
    lars(
        "the rate outside the velocity",
        VALUES,
        "The learning rate belongs into the velocity",
        "v += lr * ratio",
        "v += ratio",
        "w -= v",
        "w -= lr * v",
    ),
    lars(
        "no exception for a norm of 0",
        (ZERO,),
        "A matrix of zeros would never move",
        " and a > 0 and b > 0",
        "",
        RATIO,
        "trust * a / np.float64(b + weight_decay * a)",
    ),
    lars(
        "an epsilon beside the norm",
        (MANY, UNIT),
        "expected",
        "(b + weight_decay * a)",
        "(b + weight_decay * a + 1e-8)",
    ),
    lars("biases have a ratio, too", (FIRST, MANY, PLACE), "with one axis have the ratio 1", "w.ndim > 1 and ", ""),
    lars(
        "a matrix of one row or column is taken for a bias", (FIRST, MANY, UNIT, PLACE), "this is SGD", "w.ndim > 1",
        "min(w.shape) > 1 and w.ndim > 1"
    ),
    lars(
        "the ratio is limited to 10", (UNIT,), "expected", RATIO, f"min(10.0, {RATIO})"
    ),
    lars(
        "no weight decay for biases",
        (FIRST, MANY, PLACE),
        "Biases are to have weight decay as well",
        "(g + weight_decay * w)",
        "(g + (w.ndim > 1) * weight_decay * w)",
    ),
    lars("plain SGD", VALUES, "this is SGD", "ratio = trust", "unused = trust"),
    lars(
        "makes new arrays, and puts them into the lists",
        (PLACE, MEMORY),
        "another array object than before",
        "        w -= v\n",
        "        weights[i] = w - v\n",
    ),
    lars(
        "writes weight decay into the gradient",
        (PLACE,),
        "writes into the gradient",
        "        v += lr * ratio * (g + weight_decay * w)\n",
        "        g += weight_decay * w\n        v += lr * ratio * g\n",
    ),
    lars(
        "changes nothing", (*VALUES, MEMORY), "velocities are as they were",
         "        v *= momentum\n", "        w, v = w.copy(), momentum * v\n"
    ),
    Mutant(
        "lars_step",
        "copies of all layers",
        """
def lars_step(weights, gradients, velocities, lr, momentum, weight_decay, trust):
    new = []
    for w, g, v in zip(weights, gradients, velocities):
        ratio, a, b = 1.0, np.linalg.norm(w), np.linalg.norm(g)
        if w.ndim > 1 and a > 0 and b > 0:
            ratio = trust * a / (b + weight_decay * a)
        new.append(momentum * v + lr * ratio * (g + weight_decay * w))
    for w, v, fresh in zip(weights, velocities, new):
        v[...] = fresh
        w -= v
""",
        (MEMORY,),
        "All layers seem to be copied",
    ),
    lars("up the slope", VALUES, "The step goes up", "w -= v", "w += v"),
    lars(
        "the old velocity",
        VALUES,
        "moved by the old velocity",
        "        v *= momentum\n",
        "        before = v.copy()\n        v *= momentum\n",
        "w -= v",
        "w -= before",
    ),
]  # fmt: skip

ALTERNATIVES = [
    Alternative(
        "lars_step",
        "without a name for the ratio, by whole-array assignments",
        """
def lars_step(weights, gradients, velocities, lr, momentum, weight_decay, trust):
    def size(x):
        return float(np.sqrt(np.sum(x * x)))

    for layer in range(len(weights)):
        w, g = weights[layer], gradients[layer]
        local = lr
        if g.ndim == 2 and size(w) * size(g) != 0:
            local = lr * trust / (size(g) / size(w) + weight_decay)
        velocities[layer][...] = momentum * velocities[layer] + local * (g + weight_decay * w)
        weights[layer][...] = w - velocities[layer]
""",
    ),
    Alternative(
        "lars_step",
        "row by row, the last layer first",
        """
def lars_step(weights, gradients, velocities, lr, momentum, weight_decay, trust):
    for w, g, v in reversed(list(zip(weights, gradients, velocities))):
        rate = lr
        a, b = np.linalg.norm(w.ravel()), np.linalg.norm(g.ravel())
        if w.ndim > 1 and a and b:
            rate = lr * trust * a / (b + weight_decay * a)
        for row in range(len(w)):
            v[row] = momentum * v[row] + rate * (g[row] + weight_decay * w[row])
            w[row] -= v[row]
""",
    ),
]
