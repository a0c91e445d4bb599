"""Answers to `scheduled_rate`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RATE = """
def scheduled_rate(step, base_lr, base_batch, batch, samples, warm_up, drops):
    steps = -(-samples // batch)
    k, W = batch / base_batch, warm_up * steps
    if step < W:
        return base_lr * (1 + (k - 1) * step / W)
    return base_lr * k * 0.1 ** sum(step >= e * steps for e in drops)
"""
SCALED = "k times the rate without warm-up"
WARMED = "the warm-up: its first step, its last one, and equal increments"
DROPPED = "warm-up and drops in the right steps, the last minibatch of an epoch is smaller"
ALL = (SCALED, WARMED, DROPPED)
IN_WARM_UP = "base_lr * (1 + (k - 1) * step / W)"


def rate(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in one line."""
    return Mutant("scheduled_rate", mistake, changed(RATE, *replacements), loses, says)


MUTANTS = [
    rate(
        "k squared: sums of gradients, and a scaled rate",
        ALL,
        "multiplied by k squared",
        "k, W = batch / base_batch",
        "k, W = (batch / base_batch) ** 2",
    ),
    rate(
        "square root scaling", ALL, "by the root of k",
        "k, W = batch / base_batch", "k, W = (batch / base_batch) ** 0.5"
    ),
    rate("the rate is not scaled", ALL, "was not scaled by k", "k, W = batch / base_batch", "k, W = 1"),
    rate(
        "constant warm-up", (WARMED, DROPPED), "This is a constant warm-up", f"return {IN_WARM_UP}", "return base_lr"
    ),
    rate(
        "warm-up from 0",
        (WARMED, DROPPED),
        "begins with rate 0",
        f"return {IN_WARM_UP}",
        "return base_lr * k * step / W",
    ),
    rate(
        "warm-up from base_lr / k",
        (WARMED, DROPPED),
        "begins with base_lr / k",
        IN_WARM_UP,
        "base_lr * (1 / k + (k - 1 / k) * step / W)",
    ),
    rate(
        "the full rate in step W - 1",
        (WARMED, DROPPED),
        "comes one step too early",
        "* step / W",
        "* step / (W - 1)",
    ),
    rate(
        "an increment in step 0 already",
        (WARMED, DROPPED),
        "The first step has an increment already",
        "* step / W",
        "* (step + 1) / W",
    ),
    rate(
        "raised once an epoch",
        (WARMED, DROPPED),
        "raised once an epoch",
        "* step / W",
        "* (step // steps) / warm_up",
    ),
    rate("no warm-up", (WARMED, DROPPED), "There is no warm-up", "if step < W:", "if False:"),
    rate(
        "drops counted from the end of the warm-up",
        (DROPPED,),
        "counted from the end of the warm-up",
        "step >= e * steps",
        "step - W >= e * steps",
    ),
    rate(
        "epochs of one node's samples",
        (WARMED, DROPPED),
        "counted in steps of base_batch samples",
        "-(-samples // batch)",
        "-(-samples // base_batch)",
    ),
    rate(
        "the smaller last minibatch is forgotten",
        (DROPPED,),
        "its last minibatch is a step, too",
        "-(-samples // batch)",
        "samples // batch",
    ),
    rate(
        "always one step more than whole minibatches",
        (WARMED,),
        "one step too many where nothing is left over",
        "-(-samples // batch)",
        "samples // batch + 1",
    ),
    rate(
        "epochs counted in samples", (DROPPED,), "Epochs were counted in samples", "-(-samples // batch)",
        "samples / batch"
    ),
    rate(
        "a geometric warm-up", (WARMED, DROPPED), "by the same factor in each step", IN_WARM_UP,
        "base_lr * k ** (step / W)"
    ),
    rate("drops one step late", (DROPPED,), "one step late", "step >= e * steps", "step > e * steps"),
    rate("one drop only", (DROPPED,), "Only one of the drops", "sum(step >= e", "any(step >= e"),
    rate("k rounded down", (SCALED, WARMED), "it was rounded down", "batch / base_batch", "batch // base_batch"),
    Mutant(
        "scheduled_rate",
        "divides by the length of a warm-up that there is not",
        changed(
            RATE, "    if step < W:\n        return", "    warm =",
            "    return base_lr * k", "    return warm if step < W else base_lr * k",
        ),
        (SCALED, DROPPED),
        "ZeroDivisionError",
        Status.RAISED,
    ),
]  # fmt: skip

ALTERNATIVES = [
    Alternative(
        "scheduled_rate",
        "interpolates",
        """
def scheduled_rate(step, base_lr, base_batch, batch, samples, warm_up, drops):
    epoch = int(np.ceil(samples / batch))
    top = base_lr * batch / base_batch
    rate = np.interp(step, [0, warm_up * epoch], [base_lr, top]) if warm_up else top
    for drop in drops:
        if step // epoch >= drop:
            rate = rate / 10
    return rate
""",
    ),
    Alternative(
        "scheduled_rate",
        "goes through the run step by step",
        """
def scheduled_rate(step, base_lr, base_batch, batch, samples, warm_up, drops):
    left, steps = samples, 0
    while left > 0:
        left, steps = left - batch, steps + 1
    peak = base_lr * (batch / base_batch)
    rate = base_lr if warm_up else peak
    for now in range(1, step + 1):
        if now < warm_up * steps:
            rate += (peak - base_lr) / (warm_up * steps)
        elif now == warm_up * steps:
            rate = peak
        if now % steps == 0 and now // steps in drops:
            rate *= 0.1
    return np.float64(rate)
""",
    ),
]
