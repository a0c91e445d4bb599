"""Answers to `cut`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

FEW = "few layers: the slowest stage is that of the best of all cuts"
CORNERS = "one stage, a layer a stage, equal layers, one layer much slower than all others"
MANY = "many layers, within 6 n^2 K operations"
ALL = (FEW, CORNERS, MANY)

TABLE = """
def cut(costs, K):
    n = len(costs)
    before = [0]
    for cost in costs:
        before.append(before[-1] + cost)
    table = {(1, i): (before[i], 0) for i in range(1, n + 1)}
    for k in range(2, K + 1):
        for i in range(k, n + 1):
            table[k, i] = min(
                (max(table[k - 1, j][0], before[i] - before[j]), j) for j in range(k - 1, i)
            )
    layers, i = [], n
    for k in range(K, 0, -1):
        j = table[k, i][1]
        layers.append(i - j)
        i = j
    return layers[::-1]
"""

BOUND = """
def cut(costs, K):
    def fill(bound):
        layers, total = [0], 0
        for cost in costs:
            if layers[-1] and total + cost > bound:
                layers.append(0)
                total = 0
            layers[-1] += 1
            total = total + cost
        return layers
    low, high = max(costs), sum(costs)
    while low < high:
        middle = (low + high) // 2
        if len(fill(middle)) <= K:
            high = middle
        else:
            low = middle + 1
    layers = fill(low)
    while len(layers) < K:
        i = layers.index(max(layers))
        layers[i : i + 1] = [1, layers[i] - 1]
    return layers
"""


def wrong(
    mistake: str, loses: tuple[str, ...], says: str, *replacements: str, of: str = TABLE, status: Status = Status.WRONG
) -> Mutant:
    return Mutant("cut", mistake, changed(of, *replacements), loses, says, status)


MUTANTS = [
    Mutant(
        "cut",
        "equal numbers of layers",
        """
def cut(costs, K):
    return [len(part) for part in np.array_split(np.arange(len(costs)), K)]
""",
        ALL,
        "Equal numbers of layers do not take equally long",
    ),
    Mutant(
        "cut",
        "all cuts are tried",
        """
def cut(costs, K):
    from itertools import combinations, pairwise
    n = len(costs)
    cuts = ((0, *inner, n) for inner in combinations(range(1, n), K - 1))
    best = min(cuts, key=lambda ends: max(sum(costs[a:b]) for a, b in pairwise(ends)))
    return [b - a for a, b in pairwise(best)]
""",
        (MANY,),
        "do not try all cuts",
        Status.RAISED,
    ),
    Mutant(
        "cut",
        "filled up to the mean",
        """
def cut(costs, K):
    mean = sum(costs) / K
    layers, total = [0], 0
    for i, cost in enumerate(costs):
        left = len(costs) - i
        full = layers[-1] and total + cost > mean and len(layers) < K
        if full or (layers[-1] and left <= K - len(layers)):
            layers.append(0)
            total = 0
        layers[-1] += 1
        total = total + cost
    return layers
""",
        (FEW, MANY),
        "filled up to the mean",
    ),
    wrong("the fastest of the slowest is not searched: max of both minima", ALL, "possible", "min(\n", "max(\n"),
    wrong(
        "the total of both, not the slowest",
        ALL,
        "possible",
        "max(table[k - 1, j][0], before[i] - before[j])",
        "(table[k - 1, j][0] + before[i] - before[j])",
    ),
    wrong(
        "stages without layers",
        (CORNERS,),
        "at least one layer",
        "range(1, n + 1)}",
        "range(n + 1)}",
        "range(k, n + 1)",
        "range(n + 1)",
        "in range(k - 1, i)",
        "in range(i + 1)",
    ),
    wrong(
        "the places of the cuts",
        ALL,
        "These are the places of the cuts",
        "layers.append(i - j)",
        "layers.append(j)",
        "return layers[::-1]",
        "return layers[-2::-1]",
    ),
    wrong(
        "the times of the stages", ALL, "expected", "layers.append(i - j)", "layers.append(int(before[i] - before[j]))"
    ),
    wrong("in the reverse order", ALL, "possible", "layers[::-1]", "layers"),
    wrong(
        "fewer stages than K",
        (FEW, CORNERS),
        "split one that has several layers",
        "while len(layers) < K",
        "while False",
        of=BOUND,
    ),
    wrong(
        "one stage too few",
        ALL,
        "Only",
        "len(fill(middle)) <= K",
        "len(fill(middle)) < K",
        "while len(layers) < K:",
        "while False:",
        of=BOUND,
    ),
    wrong(
        "the layers themselves",
        ALL,
        "not the layers",
        "layers.append(i - j)",
        "layers.append(list(range(j, i)))",
    ),
    wrong(
        "the costs of a stage are added up again for each cut",
        (MANY,),
        "again and again",
        "before[i] - before[j]",
        "sum(costs[j:i])",
        status=Status.RAISED,
    ),
    Mutant(
        "cut",
        "filled up to the mean of what is left",
        """
def cut(costs, K):
    layers, i, n = [], 0, len(costs)
    for k in range(K, 1, -1):
        mean, total, count = sum(costs[i:]) / k, 0, 0
        while i < n - (k - 1) and (count == 0 or total + costs[i] / 2 <= mean):
            total += costs[i]
            i, count = i + 1, count + 1
        layers.append(count)
    return [*layers, n - i]
""",
        (FEW, MANY),
        "possible",
    ),
    Mutant(
        "cut",
        "the slowest stage is split until there are K",
        """
def cut(costs, K):
    stages = [(0, len(costs))]
    while len(stages) < K:
        a, b = max((s for s in stages if s[1] - s[0] > 1), key=lambda s: sum(costs[s[0] : s[1]]))
        c = min(range(a + 1, b), key=lambda c: max(sum(costs[a:c]), sum(costs[c:b])))
        stages.remove((a, b))
        stages += [(a, c), (c, b)]
    return [b - a for a, b in sorted(stages)]
""",
        (FEW, MANY),
        "possible",
    ),
    wrong(
        "takes the costs out of the caller's list",
        (FEW,),
        "cut changed what it was given",
        "    for cost in costs:\n        before.append(before[-1] + cost)",
        "    while costs:\n        before.append(before[-1] + costs.pop(0))",
    ),
    wrong(
        "the bound may be below the slowest layer, and empty stages are left out",
        (CORNERS,),
        "Only 3 stages",
        "while len(layers) < K",
        "while len(layers) < K and sum(costs) != len(costs) * costs[0]",
        of=BOUND,
    ),
    wrong(
        "the last layer is forgotten",
        ALL,
        "in all, got",
        "for cost in costs:\n            if",
        "for cost in costs[:-1]:\n            if",
        of=BOUND,
    ),
    wrong(
        "no whole numbers",
        ALL,
        "expected a list of whole numbers",
        "layers.append(i - j)",
        "layers.append((i - j) / 1)",
    ),
]

ALTERNATIVES = [
    Alternative("cut", "the smallest bound for which K stages are enough", BOUND),
    Alternative("cut", "a table in a dictionary", TABLE),
    Alternative(
        "cut",
        "recursion with a memory, on arrays",
        """
def cut(costs, K):
    from functools import lru_cache
    before = np.concatenate([[0], np.cumsum(costs)])
    n = len(costs)
    @lru_cache(None)
    def best(start, stages):
        if stages == 1:
            return int(before[n] - before[start]), (n - start,)
        found = None
        for end in range(start + 1, n - stages + 2):
            first = int(before[end] - before[start])
            if found is not None and first >= found[0]:
                break
            rest, layers = best(end, stages - 1)
            if found is None or max(first, rest) < found[0]:
                found = max(first, rest), (end - start, *layers)
        return found
    return list(best(0, K)[1])
""",
    ),
    Alternative(
        "cut",
        "rows of a table as arrays",
        """
def cut(costs, K):
    n, before = len(costs), np.concatenate([[0], np.cumsum(costs)])
    slowest, starts = before.copy(), []
    for k in range(1, K):
        of_last = before[None, :] - before[:, None]  # [j, i]: layers j to i - 1
        both = np.maximum(slowest[:, None], of_last)
        j, i = np.ogrid[: n + 1, : n + 1]
        both[(j >= i) | (j < k)] = before[-1] + 1
        starts.append(both.argmin(axis=0))
        slowest = both.min(axis=0)
    ends = [n]
    for start in reversed(starts):
        ends.append(start[ends[-1]])
    return np.diff([0, *ends[::-1]])
""",
    ),
    Alternative(
        "cut",
        "the last stage grows layer by layer",
        """
def cut(costs, K):
    n, never = len(costs), float("inf")
    best = [[never] * (n + 1) for _ in range(K + 1)]
    last = [[0] * (n + 1) for _ in range(K + 1)]
    best[0][0] = 0
    for k in range(1, K + 1):
        for i in range(k, n + 1):
            total = 0
            for j in range(i - 1, k - 2, -1):
                total += costs[j]
                if max(best[k - 1][j], total) < best[k][i]:
                    best[k][i], last[k][i] = max(best[k - 1][j], total), i - j
    layers = []
    for k in range(K, 0, -1):
        layers.insert(0, last[k][n])
        n -= layers[0]
    return layers
""",
    ),
    Alternative(
        "cut",
        "a bound that rises to the next sum that matters",
        """
import heapq
def cut(costs, K):
    bound = max(costs)
    while True:
        layers, total, larger = [0], 0, []
        for cost in costs:
            if layers[-1] and total + cost > bound:
                heapq.heappush(larger, total + cost)
                layers.append(0)
                total = 0
            layers[-1] += 1
            total += cost
        if len(layers) <= K:
            break
        bound = heapq.heappop(larger)
    while len(layers) < K:
        i = next(i for i, count in enumerate(layers) if count > 1)
        layers[i : i + 1] = [layers[i] // 2, layers[i] - layers[i] // 2]
    return tuple(layers)
""",
    ),
]
