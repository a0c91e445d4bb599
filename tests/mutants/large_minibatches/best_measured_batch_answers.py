"""Answers to `best_measured_batch`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

HALVED = """
def best_measured_batch(seconds_per_step, b_c, p, most_per_node):
    def time(i):
        return (1 + b_c / (i * p)) * seconds_per_step(i * p)

    low, high = 1, most_per_node
    while low < high:
        middle = (low + high) // 2
        if time(middle) < time(middle + 1):
            high = middle
        else:
            low = middle + 1
    return low * p
"""
REGRET = "the target takes at most 2 % longer than with the best minibatch"
CALLS = "at most 50 measurements, for at most 1.5 times the best time"


def halved(
    mistake: str, loses: tuple[str, ...], says: str, *replacements: str, status: Status = Status.WRONG
) -> Mutant:
    """A mistake in one line."""
    return Mutant("best_measured_batch", mistake, changed(HALVED, *replacements), loses, says, status)


def whole(mistake: str, loses: tuple[str, ...], says: str, body: str, status: Status = Status.WRONG) -> Mutant:
    """Another way, after the definition of time(i)."""
    start = HALVED[: HALVED.index("    low, high")]
    return Mutant("best_measured_batch", mistake, start + body, loses, says, status)


MUTANTS = [
    whole(
        "measures every minibatch",
        (REGRET, CALLS),
        "more than 1,000 times",
        "    return p * min(range(1, most_per_node + 1), key=time)\n",
        Status.RAISED,
    ),
    whole(
        "ternary search over all numbers",
        (CALLS,),
        "expected at most 50",
        "    low, high = 1, most_per_node\n"
        "    while high - low > 2:\n"
        "        a, b = low + (high - low) // 3, high - (high - low) // 3\n"
        "        if time(a) < time(b):\n"
        "            high = b - 1\n"
        "        else:\n"
        "            low = a + 1\n"
        "    return p * min(range(low, high + 1), key=time)\n",
    ),
    whole("B_c itself", (REGRET, CALLS), "B_c alone", "    return p * max(1, min(round(b_c / p), most_per_node))\n"),
    whole("the largest minibatch", (REGRET, CALLS), "The largest minibatch may have", "    return p * most_per_node\n"),
    whole("the smallest minibatch", (REGRET, CALLS), "the smallest minibatch", "    return p\n"),
    whole(
        "the root, from two measurements",
        (REGRET,),
        "times as long to the target",
        "    one, many = seconds_per_step(p), seconds_per_step(p * most_per_node)\n"
        "    slope = max(many - one, 1e-12) / max(most_per_node - 1, 1) / p\n"
        "    best = (b_c * max(one - slope * p, 0) / slope) ** 0.5\n"
        "    return p * max(1, min(round(best / p), most_per_node))\n",
    ),
    halved(
        "the seconds of a step alone",
        (REGRET, CALLS),
        "the smallest minibatch",
        "(1 + b_c / (i * p)) * seconds_per_step(i * p)",
        "seconds_per_step(i * p)",
    ),
    halved(
        "the most samples a second",
        (REGRET, CALLS),
        "most samples a second",
        "(1 + b_c / (i * p)) * seconds_per_step(i * p)",
        "seconds_per_step(i * p) / i",
    ),
    halved("the samples of one node", (REGRET, CALLS), "The samples of one node", "return low * p", "return low"),
    halved("asks for minibatches that are no multiples of p", (REGRET, CALLS), "ValueError",
           "seconds_per_step(i * p)", "seconds_per_step(i)", status=Status.RAISED),
    halved("asks beyond the memory", (REGRET, CALLS), "ValueError", "high = 1, most_per_node",
           "high = 1, 2 * most_per_node", status=Status.RAISED),
    whole(
        "powers of two only",
        (REGRET,),
        "times as long to the target",
        "    powers = [2**e for e in range(20) if 2**e <= most_per_node] + [most_per_node]\n"
        "    return p * min(powers, key=time)\n",
    ),
]  # fmt: skip

ALTERNATIVES = [
    Alternative(
        "best_measured_batch",
        "golden section, each time kept",
        """
from functools import lru_cache

def best_measured_batch(seconds_per_step, b_c, p, most_per_node):
    @lru_cache(None)
    def time(i):
        return (1 + b_c / (i * p)) * seconds_per_step(i * p)

    fib = [1, 2]
    while fib[-1] <= most_per_node:
        fib.append(fib[-1] + fib[-2])
    left, k = 0, len(fib) - 1  # the best one is between left and left + fib[k]

    def at(i):
        return time(i) if i <= most_per_node else float("inf")

    while k > 1:
        if at(left + fib[k - 2]) <= at(left + fib[k - 1]) and left + fib[k - 1] > left + fib[k - 2]:
            k -= 1
        else:
            left, k = left + fib[k - 2], k - 2 if k == 2 else k - 1
    near = [i for i in range(max(left - 1, 1), left + 4) if i <= most_per_node]
    return p * min(near, key=time)
""",
    ),
    Alternative(
        "best_measured_batch",
        "a grid of ratios, twice refined",
        """
def best_measured_batch(seconds_per_step, b_c, p, most_per_node):
    known = {}

    def time(i):
        if i not in known:
            known[i] = (1 + b_c / (i * p)) * seconds_per_step(i * p)
        return known[i]

    low, high = 1, most_per_node
    for _ in range(3):
        grid = sorted({int(round(i)) for i in np.geomspace(low, high, 16)})
        place = min(range(len(grid)), key=lambda j: time(grid[j]))
        low, high = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
    return int(p * min(known, key=known.get))
""",
    ),
]
