"""Answers to `best_batch`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

BEST = """
def best_batch(cluster):
    c, p = cluster, cluster.nodes
    ring = 2 * (p - 1) * (c.alpha + c.nbytes / p * c.beta)
    best = (c.b_c * p * ring / c.seconds_per_sample) ** 0.5
    each = max(1, min(int(best / p), c.most_per_node))
    def time(i):
        return (1 + c.b_c / (i * p)) * (c.seconds_per_sample * i + ring)
    return p * min(each, min(each + 1, c.most_per_node), key=time)
"""
BETWEEN = "the best minibatch lies between the limits"
LIMITS = "limits: one node, a free network, little memory, a tiny B_c, two samples a node"
BOTH = (BETWEEN, LIMITS)
ROUND = "    return p * min(each, min(each + 1, c.most_per_node), key=time)"
BY_ROOT = "best = (c.b_c * p * ring / c.seconds_per_sample) ** 0.5"


def best(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in one line."""
    return Mutant("best_batch", mistake, changed(BEST, *replacements), loses, says)


MUTANTS = [
    best("most samples a second", BOTH, "The largest minibatch", ROUND, "    return p * c.most_per_node"),
    best("fewest samples", BOTH, "The smallest minibatch", ROUND, "    return p"),
    best(
        "B_c itself",
        BOTH,
        "What steps cost on this cluster",
        ROUND,
        "    return p * max(1, min(round(c.b_c / p), c.most_per_node))",
    ),
    best("p is forgotten under the root", BOTH, "p is missing under the root", "c.b_c * p * ring", "c.b_c * ring",
         ROUND, "    return p * max(1, min(round(best / p), c.most_per_node))"),
    best("no memory limit", (LIMITS,), "A node has memory for", "int(best / p), c.most_per_node",
         "int(best / p), 10**9", "each + 1, c.most_per_node", "each + 1, 10**9"),
    best("not a multiple of p", BOTH, "Each node has the same number", ROUND,
         "    return max(p, min(int(best), p * c.most_per_node))"),
    best("rounded down", (LIMITS,), "was rounded down", ROUND, "    return p * each"),
    best("rounded up", (LIMITS,), "was rounded up", ROUND,
         "    return p * max(1, min(int(-(-best // p)), c.most_per_node))"),
    best("tries a thousand samples a node at most", (BETWEEN,), "go up to most_per_node", ROUND,
         "    return p * min(range(1, min(c.most_per_node, 1000) + 1), key=time)"),
    best("alpha is forgotten", BOTH, "alpha was left out", "(c.alpha + c.nbytes / p * c.beta)", "c.nbytes / p * c.beta",
         ROUND, "    return p * max(1, min(round(best / p), c.most_per_node))"),
    best("whole vectors go round the ring", (BETWEEN,), "has nbytes / p bytes", "c.nbytes / p", "c.nbytes",
         ROUND, "    return p * max(1, min(round(best / p), c.most_per_node))"),
    best("the samples of one node", BOTH, "The samples of one node", ROUND, changed(ROUND, "p * min", "min")),
    best("compute as long as the all-reduce", (BETWEEN,), "as long as the gradient", BY_ROOT,
         "best = p * ring / c.seconds_per_sample", ROUND,
         "    return p * max(1, min(round(best / p), c.most_per_node))"),
    Mutant("best_batch", "divides by an all-reduce that takes no time",
           changed(BEST, BY_ROOT, "best = c.b_c * p / (c.seconds_per_sample * c.b_c * p / ring) ** 0.5"), (LIMITS,),
           "ZeroDivisionError", Status.RAISED),
]  # fmt: skip

ALTERNATIVES = [
    Alternative(
        "best_batch",
        "tries all of them",
        """
def best_batch(cluster):
    p = cluster.nodes
    B = p * np.arange(1, cluster.most_per_node + 1)
    ring = 2 * (p - 1) * cluster.alpha + 2 * (1 - 1 / p) * cluster.nbytes * cluster.beta
    return B[np.argmin((B + cluster.b_c) / B * (cluster.seconds_per_sample * B / p + ring))]
""",
    ),
    Alternative(
        "best_batch",
        "walks uphill while it pays, in steps of one percent",
        """
def best_batch(cluster):
    c, p = cluster, cluster.nodes

    def time(i):
        steps = c.s_min * (1 + c.b_c / (i * p))
        return steps * (i * c.seconds_per_sample + 2 * (p - 1) * (c.alpha + c.nbytes / p * c.beta))

    i = 1
    while i < c.most_per_node and time(i + 1) < time(i):
        i = min(max(i + 1, int(1.01 * i)), c.most_per_node)
    return float(i * p)
""",
    ),
]
