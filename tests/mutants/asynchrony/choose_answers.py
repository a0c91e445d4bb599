"""Answers to `choose`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

MODEL = """
def choose(cluster):
    p, q, f, slowest = cluster.workers, cluster.slow_share, cluster.slow_factor, cluster.slowest
    ring = 2 * (p - 1) * (cluster.alpha + cluster.nbytes / p * cluster.beta)
    x = 2 * (cluster.alpha + cluster.nbytes * cluster.beta)
    mean = cluster.seconds * (1 + q * (f - 1))
    longest = cluster.seconds * max(slowest, 1 + (1 - (1 - q) ** p) * (f - 1))
    rate = (p - 1) / (mean + x) + 1 / (mean * slowest + x)
    rate = min(rate, 1 / x)
    penalty = 1 + cluster.penalty * (p - 1)
    return "synchronous" if (longest + ring) / p < penalty / rate else "asynchronous"
"""
NETWORK = "slow networks: the server, and the all-reduce"
STRAGGLERS = "stragglers: random ones, and a persistent one"
STALE = "stale gradients: more of them are needed"
ALL = (NETWORK, STRAGGLERS, STALE)


def model(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in the formulas."""
    return Mutant("choose", mistake, changed(MODEL, *replacements), loses, says)


MUTANTS = [
    Mutant("choose", "always synchronous", "def choose(cluster):\n    return 'synchronous'", ALL, "always synchronous"),
    Mutant(
        "choose", "always asynchronous", "def choose(cluster):\n    return 'asynchronous'", ALL, "always asynchronous"
    ),
    model(
        "the staleness penalty is forgotten",
        (STRAGGLERS, STALE),
        "The staleness penalty is left out",
        "penalty = 1 + cluster.penalty * (p - 1)",
        "penalty = 1",
    ),
    model(
        "no straggler at all",
        ALL,
        "The regret is more than 10%",
        "slowest = cluster.workers, cluster.slow_share, cluster.slow_factor, cluster.slowest",
        "slowest = cluster.workers, 0.0, 1.0, 1.0",
    ),
    model(
        "no persistent straggler",
        ALL,
        "The persistent straggler is left out",
        "cluster.slow_factor, cluster.slowest",
        "cluster.slow_factor, 1.0",
    ),
    model(
        "no random stragglers",
        (STRAGGLERS,),
        "The random stragglers are left out",
        "cluster.slow_share, cluster.slow_factor",
        "0.0, 1.0",
    ),
    model(
        "the queue at the server is forgotten",
        (NETWORK,),
        "The server serves one worker at a time",
        "    rate = min(rate, 1 / x)\n",
        "",
    ),
    model(
        "the network is forgotten",
        (NETWORK,),
        "The network's time is left out",
        "(longest + ring) / p",
        "longest / p",
        "    rate = min(rate, 1 / x)\n",
        "",
        "+ x)",
        ")",
    ),
    model(
        "a synchronous step takes the mean of the workers' times",
        ALL,
        "as long as the slowest of its gradients",
        "longest = cluster.seconds * max(slowest, 1 + (1 - (1 - q) ** p) * (f - 1))",
        "longest = mean * (p - 1 + slowest) / p",
    ),
    model(
        "whole vectors go round the ring",
        (NETWORK,),
        "a chunk of nbytes / p bytes",
        "cluster.nbytes / p * cluster.beta",
        "cluster.nbytes * cluster.beta",
    ),
    model("the other way round", ALL, "the other choice each time", "< penalty / rate", "> penalty / rate"),
    Mutant(
        "choose",
        "another word",
        changed(MODEL, '"asynchronous"', '"async"'),
        ALL,
        "expected 'synchronous' or 'asynchronous', got 'async'",
    ),
    Mutant(
        "choose",
        "prints",
        changed(MODEL, "return ", "print(", '"asynchronous"', '"asynchronous")'),
        ALL,
        "without a `return`",
    ),
    Mutant(
        "choose",
        "an attribute that is not there",
        changed(MODEL, "cluster.penalty", "cluster.staleness"),
        ALL,
        "AttributeError",
        Status.RAISED,
    ),
    model(
        "the all-reduce is forgotten",
        (NETWORK,),
        "The all-reduce is left out",
        "(longest + ring) / p",
        "longest / p",
    ),
    model(
        "alpha is forgotten in the ring",
        (NETWORK,),
        "takes alpha seconds",
        "2 * (p - 1) * (cluster.alpha + cluster.nbytes / p * cluster.beta)",
        "2 * (p - 1) * cluster.nbytes / p * cluster.beta",
    ),
    model(
        "random delays do not touch asynchronous workers",
        (STRAGGLERS,),
        "Delays hold up asynchronous workers",
        "mean = cluster.seconds * (1 + q * (f - 1))",
        "mean = cluster.seconds",
    ),
    model(
        "some worker is delayed in every synchronous step",
        (STRAGGLERS,),
        "only if at least one of its p gradients is",
        "1 + (1 - (1 - q) ** p) * (f - 1)",
        "f",
    ),
    model(
        "the seconds of workers and of the server add up",
        ALL,
        "the longer of the two times counts",
        "rate = min(rate, 1 / x)",
        "rate = 1 / (mean / p + x)",
    ),
]

ALTERNATIVES = [
    Alternative(
        "choose",
        "plays both, step by step",
        """
import heapq

def choose(cluster):
    rng = np.random.default_rng(1)
    p, steps = cluster.workers, 400
    times = cluster.seconds * np.where(rng.random((steps, p)) < cluster.slow_share, cluster.slow_factor, 1.0)
    times[:, 0] *= cluster.slowest
    ring = 2 * (p - 1) * (cluster.alpha + cluster.nbytes / p * cluster.beta)
    together = (times.max(axis=1) + ring).sum() / (steps * p)
    exchange = 2 * (cluster.alpha + cluster.nbytes * cluster.beta)
    ready, free, count = [(times[0, i], i) for i in range(p)], 0.0, 0
    heapq.heapify(ready)
    while count < steps * p:
        at, worker = heapq.heappop(ready)
        free = max(free, at) + exchange
        count += 1
        heapq.heappush(ready, (free + times[rng.integers(steps), worker], worker))
    alone = free / count * (1 + cluster.penalty * (p - 1))
    return "synchronous" if together < alone else "asynchronous"
""",
    ),
    Alternative(
        "choose",
        "learning per second, with the harmonic mean of the workers",
        """
def choose(cluster):
    p, c = cluster.workers, cluster
    seconds = c.seconds * np.array([c.slowest] + [1.0] * (p - 1))
    slow = 1 + c.slow_share * (c.slow_factor - 1)
    nobody = (1 - c.slow_share) ** p
    step = nobody * seconds.max() + (1 - nobody) * max(seconds.max(), c.seconds * c.slow_factor)
    step += (2 - 2 / p) * c.nbytes * c.beta + 2 * (p - 1) * c.alpha
    server = 1 / (2 * c.alpha + 2 * c.nbytes * c.beta)
    workers = np.sum(1 / (slow * seconds + 1 / server))
    learning = {"synchronous": p / step, "asynchronous": min(server, workers) / (1 + c.penalty * (p - 1))}
    return max(learning, key=learning.get)
""",
    ),
]
