ANSWERS = r"""
=== parts
equal: equal inputs: k + ceil(n / k) of them at the peak
differ: inputs of different sizes: the smallest peak
=== base
def checkpoints(sizes):
    n = len(sizes)
    before = [0]
    for size in sizes:
        before.append(before[-1] + size)
    bounds = {before[b] - before[a] for a in range(n) for b in range(a + 1, n + 1)}
    found = []
    for bound in bounds:
        kept, last = [0], [0]
        for b in range(1, n + 1):
            choices = []
            for a in range(b):
                if before[b] - before[a] <= bound:
                    choices.append((kept[a] + sizes[a], a))
            least, a = min(choices, default=(float("inf"), 0))
            kept.append(least)
            last.append(a)
        keep, end = [], n
        while end > 0:
            end = last[end]
            keep.append(end)
        found.append((kept[n] + bound, keep[::-1]))
    return min(found)[1]
=== wrong: equal segments of sqrt(n) layers, rounded down :: differ :: Segments of equally many layers are best only
import math
def checkpoints(sizes):
    n = len(sizes)
    best = min(range(1, n + 1), key=lambda m: -(-n // m) + m)
    return list(range(0, n, best))
=== wrong: sqrt(n) rounded down without trying its neighbours, for the segments that are left over :: differ
:: Segments of equally many layers are best only
import math
def checkpoints(sizes):
    return list(range(0, len(sizes), math.isqrt(len(sizes))))
=== wrong: sqrt(n) rounded up, and segments of equal lengths but the last :: differ :: equally many layers
import math
def checkpoints(sizes):
    return list(range(0, len(sizes), math.ceil(math.sqrt(len(sizes)))))
=== wrong: half of the layers :: equal, differ :: smallest near k = sqrt(n)
def checkpoints(sizes):
    return list(range(0, len(sizes), 2))
=== wrong: as many as a square root of numbers, all at the beginning :: equal, differ
:: make the segments as equal as possible
import math
def checkpoints(sizes):
    return list(range(math.isqrt(len(sizes))))
=== wrong: all inputs :: equal, differ :: Every input is kept
def checkpoints(sizes):
    return list(range(len(sizes)))
=== wrong: only the input of the model :: equal, differ :: Only the input of the model is kept
def checkpoints(sizes):
    return [0]
=== wrong: the input of the model is not kept :: all :: Layer 0 has no layer before it
-    return min(found)[1]
+    return min(found)[1][1:]
=== wrong: the end is in the list :: all :: the end of the last layer, n, is none
+    return min(found)[1] + [n]
=== wrong: in the order in which backward needs them :: equal, differ :: in ascending order
+    return min(found)[1][::-1]
=== wrong: layers from 1 on :: all :: Layer 0 has no layer before it
+    return [i + 1 for i in min(found)[1]] if n > 1 else []
=== wrong: a set :: all :: A set has no order
+    return set(min(found)[1])
=== wrong: lengths of segments :: equal, differ :: the first of them 0
+    keep = min(found)[1] + [n]
+    return [b - a for a, b in zip(keep, keep[1:])]
=== wrong: the peak, too :: all :: expected a list of whole numbers
+    return min(found)
=== wrong: only the kept bytes count :: equal, differ :: Only the input of the model is kept
+    return min(found, key=lambda one: sum(sizes[i] for i in one[1]))[1]
=== wrong: only the largest segment counts :: equal, differ :: Every input is kept
-        found.append((kept[n] + bound, keep[::-1]))
+        found.append((bound if kept[n] < float("inf") else kept[n], keep[::-1]))
=== wrong: the number of kept inputs, not their bytes :: all :: bytes at the peak
-                    choices.append((kept[a] + sizes[a], a))
+                    choices.append((kept[a] + 1, a))
=== wrong: the kept input is not counted in its segment :: differ :: bytes at the peak
+                    choices.append((kept[a] + sizes[a], a))
-                if before[b] - before[a] <= bound:
+                if before[b] - before[a + 1] <= bound:
=== wrong: filled up from the first layer on :: differ :: Begin them at small ones
def checkpoints(sizes):
    found = []
    n = len(sizes)
    for bound in {sum(sizes[a:b]) for a in range(n) for b in range(a + 1, n + 1)}:
        if bound < max(sizes):
            continue
        keep, total = [0], 0
        for i, size in enumerate(sizes):
            if total + size > bound:
                keep.append(i)
                total = 0
            total += size
        found.append((sum(sizes[i] for i in keep) + bound, keep))
    return min(found)[1]
=== wrong: the smallest inputs are kept :: equal, differ :: bytes at the peak
import math
def checkpoints(sizes):
    k = math.isqrt(len(sizes))
    return sorted({0, *sorted(range(len(sizes)), key=sizes.__getitem__)[: k - 1]})
=== wrong: segments of about the square root of all bytes :: differ :: bytes at the peak
import math
def checkpoints(sizes):
    n, keep, total = len(sizes), [0], 0
    if len(set(sizes)) == 1:
        m = min(range(1, n + 1), key=lambda m: -(-n // m) + m)
        return list(range(0, n, m))
    target = math.sqrt(sum(sizes) * sum(sizes) / n)
    for i, size in enumerate(sizes):
        if total >= target:
            keep.append(i)
            total = 0
        total += size
    return keep
=== wrong: only bounds that are multiples of the largest input :: differ :: bytes at the peak
-    bounds = {before[b] - before[a] for a in range(n) for b in range(a + 1, n + 1)}
+    bounds = [i * max(sizes) for i in range(1, n + 1)]
-        found.append((kept[n] + bound, keep[::-1]))
+        largest = max(sum(sizes[a:b]) for a, b in zip(keep[::-1], [*keep[::-1][1:], n]))
+        found.append((kept[n] + largest, keep[::-1]))
=== wrong: greedy: checkpoints are added one at a time while the peak falls :: equal, differ :: bytes at the peak
def checkpoints(sizes):
    def peak(keep):
        keep = sorted(keep)
        return sum(sizes[i] for i in keep) + max(sum(sizes[a:b]) for a, b in zip(keep, [*keep[1:], len(sizes)]))
    keep = [0]
    while True:
        more = [sorted(keep + [i]) for i in range(len(sizes)) if i not in keep]
        best = min(more, key=peak, default=keep)
        if peak(best) >= peak(keep):
            return keep
        keep = best
=== wrong: from equal segments, two layers at a time are changed while the peak falls :: differ :: bytes at the peak
def checkpoints(sizes):
    n = len(sizes)
    def peak(keep):
        keep = sorted(keep)
        return sum(sizes[i] for i in keep) + max(sum(sizes[a:b]) for a, b in zip(keep, [*keep[1:], n]))
    keep = set(range(0, n, min(range(1, n + 1), key=lambda m: -(-n // m) + m)))
    while True:
        more = [keep ^ {i, j} for i in range(1, n) for j in range(i, n)]
        more += [keep ^ {i} for i in range(1, n)]
        best = min(more, key=peak, default=keep)
        if peak(best) >= peak(keep):
            return sorted(keep)
        keep = best
=== wrong: at most twice the square root of n checkpoints :: differ :: bytes at the peak
import math
def checkpoints(sizes):
    n, found = len(sizes), []
    for bound in {sum(sizes[a:b]) for a in range(n) for b in range(a + 1, n + 1)}:
        best = [(0, [])]
        for b in range(1, n + 1):
            before = [a for a in range(b) if best[a] and sum(sizes[a:b]) <= bound]
            before = [a for a in before if len(best[a][1]) < 2 * math.isqrt(n)]
            best.append(min([(best[a][0] + sizes[a], [*best[a][1], a]) for a in before], default=None))
        if best[n]:
            found.append((best[n][0] + bound, best[n][1]))
    return min(found)[1]
=== wrong: the sizes are sorted :: differ :: bytes at the peak
     n = len(sizes)
+    sizes = sorted(sizes)
     before = [0]
=== wrong: the caller's list is emptied :: equal :: changed its argument sizes
+    given, sizes = sizes, list(sizes)
+    given.clear()
     before = [0]
=== right: a search over lists of starts, the other way round, as an array
import numpy as np
from functools import lru_cache
def checkpoints(sizes):
    n = len(sizes)
    total = np.cumsum([0] + list(sizes))
    best = None
    for bound in np.unique(total[:, None] - total[None, :]):
        if bound < max(sizes):
            continue
        cost, following = [0.0] * (n + 1), [n] * (n + 1)
        for a in range(n - 1, -1, -1):
            cost[a], following[a] = min(
                (sizes[a] + cost[b], -b) for b in range(a + 1, n + 1) if total[b] - total[a] <= bound
            )
            following[a] = -following[a]
        if best is None or cost[0] + bound < best[0]:
            keep = [0]
            while following[keep[-1]] < n:
                keep.append(following[keep[-1]])
            best = cost[0] + bound, keep
    return np.array(best[1])
=== right: a front of pairs (kept bytes, largest segment) for each beginning
def checkpoints(sizes):
    n = len(sizes)
    fronts = [[(0, 0, ())]]
    for b in range(1, n + 1):
        pairs, segment = [], 0
        for a in range(b - 1, -1, -1):
            segment += sizes[a]
            pairs += [(kept + sizes[a], max(most, segment), (*keep, a)) for kept, most, keep in fronts[a]]
        front, least = [], float("inf")
        for kept, most, keep in sorted(pairs):
            if most < least:
                front.append((kept, most, keep))
                least = most
        fronts.append(front)
    return list(min(fronts[n], key=lambda one: one[0] + one[1])[2])
"""
