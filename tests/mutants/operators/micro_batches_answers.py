ANSWERS = r"""
=== parts
small: small batches: the least time of all micro-batches within the limit
corners: no sample, nothing possible, a limit that is just reached
large: large batches, within 6 B n operations
=== right: the plans themselves in a table
def micro_batches(B, measured, limit):
    plans = {0: (0, [])}
    for b in range(1, B + 1):
        for size, algorithm, time, nbytes in measured:
            if nbytes <= limit and b - size in plans:
                before, plan = plans[b - size]
                if b not in plans or before + time < plans[b][0]:
                    plans[b] = (before + time, plan + [(size, algorithm)])
    return plans[B][1] if B in plans else None
=== wrong: the limit is not looked at :: all :: needs more than
-            if nbytes <= limit and b - size in plans:
+            if b - size in plans:
=== wrong: a workspace equal to the limit is refused :: all :: A row whose workspace is the limit may be used
+            if nbytes < limit and b - size in plans:
=== wrong: the workspaces of all micro-batches are added up :: all :: possible
-    plans = {0: (0, [])}
+    plans = {0: (0, [])}
+    spent = {0: 0}
-            if nbytes <= limit and b - size in plans:
+            if b - size in plans and nbytes + spent[b - size] <= limit:
-                    plans[b] = (before + time, plan + [(size, algorithm)])
+                    plans[b] = (before + time, plan + [(size, algorithm)])
+                    spent[b] = spent[b - size] + nbytes
=== wrong: sorts the caller's table :: small :: changed its argument measured
+    plans = {0: (0, [])}
+    measured.sort()
=== wrong: the first way is kept :: all :: possible
-                if b not in plans or before + time < plans[b][0]:
+                if b not in plans:
=== wrong: the last way is kept :: all :: possible
+                if True:
=== wrong: the fewest micro-batches :: small, large :: possible
+                if b not in plans or len(plan) + 1 < len(plans[b][1]):
=== wrong: the slowest :: all :: possible
+                if b not in plans or before + time > plans[b][0]:
=== wrong: each row is used once only :: all :: expected a list of micro-batches, got None
+                if (size, algorithm) not in plan and (b not in plans or before + time < plans[b][0]):
=== wrong: at most forty micro-batches :: large :: expected
+                if len(plan) < 40 and (b not in plans or before + time < plans[b][0]):
=== wrong: the least workspace :: small, large :: possible
-        for size, algorithm, time, nbytes in measured:
-            if nbytes <= limit and b - size in plans:
+        for size, algorithm, nbytes, time in [(s, a, t, n) for s, a, t, n in sorted(measured, key=lambda r: r[3])]:
+            if time <= limit and b - size in plans:
=== wrong: None for a batch without samples :: corners :: A batch of 0 samples has no micro-batch
-    return plans[B][1] if B in plans else None
+    return plans[B][1] or None if B in plans else None
=== wrong: an empty list where nothing is possible :: corners
:: The sizes of the rows within the limit cannot add up to B
+    return plans[B][1] if B in plans else []
=== wrong: an error where nothing is possible :: corners :: KeyError :: raised
+    return plans[B][1]
=== wrong: the largest batch that is possible :: corners :: The sizes of the rows
+    return plans[max(plans)][1]
=== wrong: whole rows :: all :: its size and its algorithm alone
-                    plans[b] = (before + time, plan + [(size, algorithm)])
+                    plans[b] = (before + time, plan + [(size, algorithm, 0, nbytes)])
=== wrong: the time, too :: all :: expected a list of pairs
+                    plans[b] = (before + time, plan + [(size, algorithm)])
-    return plans[B][1] if B in plans else None
+    return {name: size for size, name in plans[B][1]} if B in plans else None
=== wrong: the largest size first :: small, large :: Taking the largest possible size each time
def micro_batches(B, measured, limit):
    plan, rows = [], [row for row in measured if row[3] <= limit]
    while B:
        size = max((row[0] for row in rows if row[0] <= B), default=0)
        if not size:
            return None
        plan.append(min((row for row in rows if row[0] == size), key=lambda row: row[2])[:2])
        B -= size
    return plan
=== wrong: the best time for a sample first :: small, large :: shortest time for a sample each time
def micro_batches(B, measured, limit):
    plan, rows = [], [row for row in measured if row[3] <= limit]
    while B:
        fits = [row for row in rows if row[0] <= B]
        if not fits:
            return None
        best = min(fits, key=lambda row: row[2] / row[0])
        plan.append(best[:2])
        B -= best[0]
    return plan
=== wrong: the fastest row of each size, and the limit afterwards :: small, large :: a slower one may fit
def micro_batches(B, measured, limit):
    fastest = {}
    for row in measured:
        if row[0] not in fastest or row[2] < fastest[row[0]][2]:
            fastest[row[0]] = row
    best = {0: (0, [])}
    for b in range(1, B + 1):
        for size, algorithm, time, nbytes in fastest.values():
            if nbytes <= limit and b - size in best:
                before, plan = best[b - size]
                if b not in best or before + time < best[b][0]:
                    best[b] = (before + time, plan + [(size, algorithm)])
    return best[B][1] if B in best else None
=== wrong: equal micro-batches :: all :: possible
def micro_batches(B, measured, limit):
    fits = [row for row in measured if row[3] <= limit and B % row[0] == 0]
    if not fits or not B:
        return None if B else []
    size, algorithm, _, _ = min(fits, key=lambda row: row[2] * (B // row[0]))
    return [(size, algorithm)] * (B // size)
=== wrong: one algorithm for all :: all :: possible
def micro_batches(B, measured, limit):
    best = None
    for name in {row[1] for row in measured}:
        plans = {0: (0, [])}
        for b in range(1, B + 1):
            for size, algorithm, time, nbytes in measured:
                if algorithm == name and nbytes <= limit and b - size in plans:
                    before, plan = plans[b - size]
                    if b not in plans or before + time < plans[b][0]:
                        plans[b] = (before + time, plan + [(size, algorithm)])
        if B in plans and (best is None or plans[B][0] < best[0]):
            best = plans[B]
    return [] if not B else best and best[1]
=== wrong: one micro-batch, or two :: small, large :: possible
def micro_batches(B, measured, limit):
    rows = [row for row in measured if row[3] <= limit]
    ways = [[row] for row in rows if row[0] == B] + [[a, b] for a in rows for b in rows if a[0] + b[0] == B]
    loops = [row for row in rows if B % row[0] == 0]
    ways += [[row] * (B // row[0]) for row in loops]
    if not ways:
        return None if B else []
    return [row[:2] for row in min(ways, key=lambda way: sum(row[2] for row in way))]
=== wrong: two rows at most :: small, large :: expected
def micro_batches(B, measured, limit):
    rows = [row for row in measured if row[3] <= limit]
    ways = [(i, a, (B - i * a[0]) // b[0], b) for a in rows for b in rows for i in range(B // a[0] + 1)
            if (B - i * a[0]) % b[0] == 0]
    if not ways or not B:
        return None if B else []
    i, a, j, b = min(ways, key=lambda way: way[0] * way[1][2] + way[2] * way[3][2])
    return [a[:2]] * i + [b[:2]] * j
=== wrong: the best rate until few samples are left :: large :: possible
def micro_batches(B, measured, limit):
    rows, plan = [row for row in measured if row[3] <= limit], []
    while rows and B > 40:
        plan.append(min(rows, key=lambda row: row[2] / row[0])[:2])
        B -= plan[-1][0]
    plans = {0: (0, plan)}
    for b in range(1, B + 1):
        for size, name, time, _ in rows:
            if b - size in plans and (b not in plans or plans[b - size][0] + time < plans[b][0]):
                plans[b] = plans[b - size][0] + time, plans[b - size][1] + [(size, name)]
    return plans[B][1] if B in plans else None
=== wrong: the four best rates only :: small, large :: expected a list of micro-batches, got None
def micro_batches(B, measured, limit):
    rows = sorted((row for row in measured if row[3] <= limit), key=lambda row: row[2] / row[0])[:4]
    plans = {0: (0, [])}
    for b in range(1, B + 1):
        for size, name, time, _ in rows:
            if b - size in plans and (b not in plans or plans[b - size][0] + time < plans[b][0]):
                plans[b] = plans[b - size][0] + time, plans[b - size][1] + [(size, name)]
    return plans[B][1] if B in plans else None
=== wrong: all lists are tried :: large :: more than 6 B n operations :: raised
def micro_batches(B, measured, limit):
    rows = [row for row in measured if row[3] <= limit]
    def least(b):
        if b == 0:
            return 0, []
        ways = []
        for size, algorithm, time, _ in rows:
            rest = least(b - size) if size <= b else None
            if rest:
                ways.append((rest[0] + time, [(size, algorithm)] + rest[1]))
        return min(ways, key=lambda way: way[0], default=None)
    found = least(B)
    return found and found[1]
=== wrong: times are made plain numbers :: large :: a cost of the check stays as it is :: raised
def micro_batches(B, measured, limit):
    sizes, times = np.array([row[0] for row in measured], int), np.array([row[2] for row in measured], float)
    fits = np.array([row[3] <= limit for row in measured], bool)
    best, last = [0.0], [None]
    for b in range(1, B + 1):
        ways = [best[b - s] + t if f and s <= b else np.inf for s, t, f in zip(sizes, times, fits)]
        i = int(np.argmin(ways)) if ways else None
        best.append(ways[i] if ways else np.inf)
        last.append(i)
    if np.isinf(best[B]):
        return None
    plan = []
    while B:
        plan.append(measured[last[B]][:2])
        B -= measured[last[B]][0]
    return plan
=== right: from the whole batch down, remembered
from functools import cache
def micro_batches(B, measured, limit):
    fastest = {}
    for size, name, time, nbytes in measured:
        if nbytes <= limit and (size not in fastest or time < fastest[size][0]):
            fastest[size] = time, name
    @cache
    def least(b):
        best = (0, ()) if b == 0 else None
        for size, (time, name) in fastest.items():
            rest = least(b - size) if size <= b else None
            if rest is not None and (best is None or rest[0] + time < best[0]):
                best = rest[0] + time, ((size, name), rest[1])
        return best
    found, plan = least(B), []
    if found is None:
        return None
    rest = found[1]
    while rest:
        pair, rest = rest
        plan.append(list(pair))
    return tuple(plan)
=== right: every number of samples passes its time on
def micro_batches(B, measured, limit):
    reached = [None] * (B + 1)
    reached[0] = (0, None, None)
    for b in range(B):
        if reached[b] is None:
            continue
        for row in measured:
            if row[3] <= limit and b + row[0] <= B:
                total, there = reached[b][0] + row[2], reached[b + row[0]]
                if there is None or there[0] > total:
                    reached[b + row[0]] = total, b, row[:2]
    if reached[-1] is None:
        return None
    pairs = []
    while B:
        _, B, pair = reached[B]
        pairs.append(pair)
    return pairs[::-1]
"""
