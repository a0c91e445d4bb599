ANSWERS = r"""
=== parts
few: few layers: the slowest stage is that of the best of all cuts
corners: one stage, a layer a stage, equal layers, one layer much slower than all others
many: many layers, within 6 n^2 K operations
=== right: a table in a dictionary
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
=== wrong: costs are made plain numbers :: many :: stays as it is :: raised
-    before = [0]
+    costs, before = [int(cost) for cost in costs], [0]
=== wrong: equal numbers of layers :: all :: Equal numbers of layers do not take equally long
def cut(costs, K):
    return [len(part) for part in np.array_split(np.arange(len(costs)), K)]
=== wrong: all cuts are tried :: many :: do not try all cuts :: raised
def cut(costs, K):
    from itertools import combinations, pairwise
    n = len(costs)
    cuts = ((0, *inner, n) for inner in combinations(range(1, n), K - 1))
    best = min(cuts, key=lambda ends: max(sum(costs[a:b]) for a, b in pairwise(ends)))
    return [b - a for a, b in pairwise(best)]
=== wrong: the fastest of the slowest is not searched: max of both minima :: all :: possible
-            table[k, i] = min(
+            table[k, i] = max(
=== wrong: a stage has at most three times the mean number of layers :: few :: 100 is possible
-                (max(table[k - 1, j][0], before[i] - before[j]), j) for j in range(k - 1, i)
+                (max(table[k - 1, j][0], before[i] - before[j]), j) for j in range(max(k - 1, i - 3 * n // K), i)
=== wrong: the total of both, not the slowest :: all :: possible
+                ((table[k - 1, j][0] + before[i] - before[j]), j) for j in range(k - 1, i)
=== wrong: the costs of a stage are added up again for each cut :: many :: again and again :: raised
+                (max(table[k - 1, j][0], sum(costs[j:i])), j) for j in range(k - 1, i)
=== wrong: stages without layers :: corners :: at least one layer
-    table = {(1, i): (before[i], 0) for i in range(1, n + 1)}
+    table = {(1, i): (before[i], 0) for i in range(n + 1)}
-        for i in range(k, n + 1):
+        for i in range(n + 1):
-                (max(table[k - 1, j][0], before[i] - before[j]), j) for j in range(k - 1, i)
+                (max(table[k - 1, j][0], before[i] - before[j]), j) for j in range(i + 1)
=== wrong: the places of the cuts :: all :: These are the places of the cuts
-        layers.append(i - j)
+        layers.append(j)
-    return layers[::-1]
+    return layers[-2::-1]
=== wrong: the times of the stages :: all :: expected
+        layers.append(int(before[i] - before[j]))
=== wrong: no whole numbers :: all :: expected a list of whole numbers
+        layers.append((i - j) / 1)
=== wrong: in the reverse order :: all :: possible
-    return layers[::-1]
+    return layers
=== wrong: filled up to the mean of what is left :: few, many :: possible
def cut(costs, K):
    layers, i, n = [], 0, len(costs)
    for k in range(K, 1, -1):
        mean, total, count = sum(costs[i:]) / k, 0, 0
        while i < n - (k - 1) and (count == 0 or total + costs[i] / 2 <= mean):
            total += costs[i]
            i, count = i + 1, count + 1
        layers.append(count)
    return [*layers, n - i]
=== wrong: the slowest stage is split until there are K :: few, many :: possible
def cut(costs, K):
    stages = [(0, len(costs))]
    while len(stages) < K:
        a, b = max((s for s in stages if s[1] - s[0] > 1), key=lambda s: sum(costs[s[0] : s[1]]))
        c = min(range(a + 1, b), key=lambda c: max(sum(costs[a:c]), sum(costs[c:b])))
        stages.remove((a, b))
        stages += [(a, c), (c, b)]
    return [b - a for a, b in sorted(stages)]
=== wrong: takes the costs out of the caller's list :: few :: cut changed its argument costs
-    for cost in costs:
-        before.append(before[-1] + cost)
+    while costs:
+        before.append(before[-1] + costs.pop(0))
=== right: the smallest bound for which K stages are enough
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
=== wrong: fewer stages than K :: few, corners :: split one that has several layers
-    while len(layers) < K:
+    while False:
=== wrong: the bound may be below the slowest layer, and empty stages are left out :: corners :: Only 3 stages
+    while len(layers) < K and sum(costs) != len(costs) * costs[0]:
=== wrong: one stage too few :: all :: Only
-        if len(fill(middle)) <= K:
+        if len(fill(middle)) < K:
-    while len(layers) < K:
+    while False:
=== wrong: the last layer is forgotten :: all :: in all, got
-        for cost in costs:
+        for cost in costs[:-1]:
=== right: rows of a table as arrays
def cut(costs, K):
    n, before = len(costs), np.cumsum(np.array([0, *costs], dtype=object))
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
=== right: a bound that rises to the next sum that matters
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
"""
