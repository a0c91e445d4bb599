"""Answers to `corrected_run`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RUN = """
def corrected_run(w, gradient, rates, momentum):
    v, before = np.zeros_like(w), rates[0]
    for step, lr in enumerate(rates):
        v = momentum * (lr / before) * v - lr * gradient(w, step)
        w = w + v
        before = lr
    return w, v
"""
CONSTANT = "a constant rate"
RISING = "the rate rises in the warm-up"
FALLING = "the rate drops"
CALLS = "one gradient for each step, in order"
PATHS = (CONSTANT, RISING, FALLING)


def run(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in one line."""
    return Mutant("corrected_run", mistake, changed(RUN, *replacements), loses, says)


MUTANTS = [
    run("no correction", (RISING, FALLING), "The correction is missing", "(lr / before) * ", ""),
    run("the factor upside down", (RISING, FALLING), "upside down", "lr / before", "before / lr"),
    run(
        "the new gradient is corrected, too",
        (RISING, FALLING),
        "The new gradient was corrected, too",
        "momentum * (lr / before) * v - lr * gradient(w, step)",
        "(lr / before) * (momentum * v - lr * gradient(w, step))",
    ),
    run(
        "corrected only where the rate rises",
        (FALLING,),
        "missing where the rate is falling",
        "lr / before",
        "max(lr / before, 1)",
    ),
    run(
        "corrected only where the rate falls",
        (RISING,),
        "missing where the rate is rising",
        "lr / before",
        "min(lr / before, 1)",
    ),
    run(
        "corrected by the first rate, each time",
        (RISING, FALLING),
        "corrected by the rate of the step before",
        "        before = lr\n",
        "",
    ),
    run(
        "the sum u is returned",
        PATHS,
        "This is the sum u",
        "return w, v",
        "return w, -v / lr",
    ),
    run(
        "divides by the momentum",
        (CONSTANT,),
        "expected",
        "momentum * (lr / before) * v - lr * gradient(w, step)",
        "momentum * (lr / before) * (v - before / np.float64(momentum) * gradient(w, step))",
    ),
    run(
        "writes into the initial weights", (CONSTANT,), "changed its argument w", "w = w + v", "w += v"
    ),
    run(
        "two gradients a step",
        (CALLS,),
        "compute it once a step",
        "        w = w + v\n",
        "        gradient(w, step)\n        w = w + v\n",
    ),
    run(
        "all gradients at the initial weights",
        (*PATHS, CALLS),
        "expected",
        "v, before = np.zeros_like(w), rates[0]",
        "v, before = np.zeros_like(w), rates[0]\n    start = w",
        "gradient(w, step)",
        "gradient(start, step)",
    ),
    run("writes into the caller's weights", (CONSTANT,), "changed its argument", "w = w + v", "w += v"),
    run("only w is returned", PATHS, "expected (w, v)", "return w, v", "return w"),
    run("up the slope", PATHS, "up the slope", "v - lr * gradient", "v + lr * gradient"),
    run(
        "an average of gradients", PATHS, "that is an average", "- lr * gradient", "- (1 - momentum) * lr * gradient"
    ),
]  # fmt: skip

ALTERNATIVES = [
    Alternative(
        "corrected_run",
        "the rate outside, and v computed from u at the end",
        """
def corrected_run(w, gradient, rates, momentum):
    u = 0 * w
    for step in range(len(rates)):
        u = momentum * u + gradient(w, step)
        w = w - rates[step] * u
    return w, -rates[-1] * u
""",
    ),
    Alternative(
        "corrected_run",
        "the velocity is taken from the last two weights",
        """
def corrected_run(w, gradient, rates, momentum):
    old, new = w, w - rates[0] * gradient(w, 0)
    for step in range(1, len(rates)):
        ratio = rates[step] / rates[step - 1]
        old, new = new, new + momentum * ratio * (new - old) - rates[step] * gradient(new, step)
    return [new, new - old]
""",
    ),
]
