"""Answers to `efficiency`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

ALONE = "one node has an efficiency of 1"
PLAIN = "weak scaling, one bucket"
HIDDEN = "weak scaling, communication hidden behind backward"
STRONG = "strong scaling"

EFFICIENCY = """
def efficiency(p, batch_size, flops, flops_per_s, nbytes, alpha, beta, buckets, strong=False):
    def step(p, samples):
        computing = samples * flops / flops_per_s
        forward, backward = computing / 3, computing * 2 / 3
        reducing = 2 * (p - 1) * (alpha + nbytes / buckets / p * beta)
        return forward + max(backward + reducing, backward / buckets + buckets * reducing)

    if strong:
        return step(1, batch_size) / (p * step(p, -(-batch_size // p)))
    return step(1, batch_size) / step(p, batch_size)
"""
RING = "2 * (p - 1) * (alpha + nbytes / buckets / p * beta)"
WHOLE = "forward + max(backward + reducing, backward / buckets + buckets * reducing)"

MUTANTS = [
    Mutant(
        "efficiency",
        "(p - 1) / p is forgotten",
        changed(EFFICIENCY, RING, "2 * (p - 1) * alpha + 2 * nbytes / buckets * beta * (p > 1)"),
        loses=(PLAIN, HIDDEN, STRONG),
        says="here (p - 1)/p is missing",
    ),
    Mutant(
        "efficiency",
        "whole vectors go round",
        changed(EFFICIENCY, RING, "2 * (p - 1) * (alpha + nbytes / buckets * beta)"),
        loses=(PLAIN, HIDDEN, STRONG),
        says="has a p-th of the bucket",
    ),
    Mutant(
        "efficiency",
        "the all-gather is forgotten",
        changed(EFFICIENCY, RING, "(p - 1) * (alpha + nbytes / buckets / p * beta)"),
        loses=(PLAIN, HIDDEN, STRONG),
        says="after the reduce-scatter there is the all-gather",
    ),
    Mutant(
        "efficiency",
        "alpha counted twice, for the send and for the receive",
        changed(EFFICIENCY, RING, "2 * (p - 1) * (2 * alpha + nbytes / buckets / p * beta)"),
        loses=(PLAIN, HIDDEN, STRONG),
        says="alpha was counted twice",
    ),
    Mutant(
        "efficiency",
        "alpha is paid once",
        changed(EFFICIENCY, RING, "2 * (p - 1) / p * nbytes / buckets * beta + (alpha if p > 1 else 0)"),
        loses=(PLAIN, HIDDEN, STRONG),
        says="not once",
    ),
    Mutant(
        "efficiency",
        "the sum instead of the longer of the two",
        changed(EFFICIENCY, WHOLE, "computing + buckets * reducing"),
        loses=(HIDDEN, STRONG),
        says="not the sum of both",
    ),
    Mutant(
        "efficiency",
        "everything can be hidden",
        changed(EFFICIENCY, WHOLE, "max(computing, buckets * reducing)"),
        loses=(PLAIN, HIDDEN, STRONG),
        says="only backward hides communication",
    ),
    Mutant(
        "efficiency",
        "the last bucket is hidden, too",
        changed(EFFICIENCY, WHOLE, "forward + max(backward, buckets * reducing)"),
        loses=(PLAIN, HIDDEN, STRONG),
        says="its all-reduce cannot be hidden",
    ),
    Mutant(
        "efficiency",
        "only the last bucket counts, however slow the network is",
        changed(EFFICIENCY, WHOLE, "computing + reducing"),
        loses=(HIDDEN, STRONG),
        says="one after the other",
    ),
    Mutant(
        "efficiency",
        "the network is always the slow part",
        changed(
            EFFICIENCY, WHOLE, "(forward + backward / buckets + buckets * reducing if p > 1 else forward + backward)"
        ),
        loses=(HIDDEN, STRONG),
        says="only the last all-reduce follows it",
    ),
    Mutant(
        "efficiency",
        "forward and backward take half of the time each",
        changed(EFFICIENCY, "computing / 3, computing * 2 / 3", "computing / 2, computing / 2"),
        loses=(HIDDEN,),
        says="Backward has two thirds",
    ),
    Mutant(
        "efficiency",
        "samples in fractions",
        changed(EFFICIENCY, "-(-batch_size // p)", "batch_size / p"),
        loses=(STRONG,),
        says="Samples are whole",
    ),
    Mutant(
        "efficiency",
        "strong scaling like weak scaling",
        changed(EFFICIENCY, "if strong", "if False"),
        loses=(STRONG,),
        says="efficiency of weak scaling",
    ),
    Mutant(
        "efficiency",
        "the speed-up",
        changed(
            EFFICIENCY,
            "return step(1, batch_size) / step(p, batch_size)",
            "return p * step(1, batch_size) / step(p, batch_size)",
        ),
        loses=(PLAIN, HIDDEN),
        says="This is the speed-up",
    ),
    Mutant(
        "efficiency",
        "the inverse",
        changed(
            EFFICIENCY,
            "return step(1, batch_size) / step(p, batch_size)",
            "return step(p, batch_size) / step(1, batch_size)",
        ),
        loses=(PLAIN, HIDDEN),
        says="This is the inverse",
    ),
    Mutant(
        "efficiency",
        "p messages each time round",
        changed(EFFICIENCY, RING, "2 * p * (alpha + nbytes / buckets / p * beta)"),
        loses=(PLAIN, HIDDEN, STRONG),
        says="not 2p",
    ),
    Mutant(
        "efficiency",
        "a single node sends messages, too",
        changed(
            EFFICIENCY,
            RING,
            "2 * p * (alpha + nbytes / buckets / p * beta)",
            "step(1, batch_size)",
            "(batch_size * flops / flops_per_s)",
        ),
        loses=(ALONE, PLAIN, HIDDEN, STRONG),
        says="A single node sends nothing",
    ),
    Mutant(
        "efficiency",
        "in percent",
        changed(EFFICIENCY, "return step(1, batch_size) /", "return 100 * step(1, batch_size) /"),
        loses=(ALONE, PLAIN, HIDDEN, STRONG),
        says="not in percent",
    ),
    Mutant(
        "efficiency",
        "simulates instead",
        """
def efficiency(p, batch_size, flops, flops_per_s, nbytes, alpha, beta, buckets, strong=False):
    from minidl import cluster

    return cluster.launch(lambda comm: comm.now(), nodes=p, on="simulation").seconds
""",
        loses=(ALONE, PLAIN, HIDDEN, STRONG),
        says="may not be used in efficiency",
        status=Status.RAISED,
    ),
]

ALTERNATIVES = [
    Alternative(
        "efficiency",
        "bucket after bucket",
        """
def efficiency(p, batch_size, flops, flops_per_s, nbytes, alpha, beta, buckets, strong=False):
    samples = math.ceil(batch_size / p) if strong else batch_size
    second = flops / flops_per_s
    end = 0.0
    for i in range(1, buckets + 1):
        full = samples * second * (1 / 3 + 2 / 3 * i / buckets)
        end = max(full, end) + 2 * (p - 1) * alpha + 2 * (p - 1) / p * nbytes / buckets * beta
    speed = batch_size / end * (1 if strong else p)
    return speed / (p / second)
""".replace("    samples", "    import math\n\n    samples", 1),
    ),
    Alternative(
        "efficiency",
        "with the library's cost of an all-reduce",
        """
def efficiency(p, batch_size, flops, flops_per_s, nbytes, alpha, beta, buckets, strong=False):
    from minidl.cluster import cost

    def step(p, samples):
        ready = ended = samples * flops / flops_per_s / 3
        for _ in range(buckets):
            ready += samples * flops / flops_per_s * 2 / 3 / buckets
            ended = max(ready, ended) + cost.all_reduce("ring", p, int(nbytes / buckets), alpha, beta)
        return ended

    share = np.ceil(batch_size / p) if strong else batch_size
    return np.float64(step(1, batch_size) / step(p, share) / (p if strong else 1))
""",
    ),
]
