ANSWERS = r"""
=== parts
single: slots for one choice of each token
several: slots for several choices: first choices before second ones
ties: equal scores: the expert of the lower number first
gates: gates
loss: the load-balancing loss
=== base
def route(scores, k, capacity):
    T, E = scores.shape
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    choices = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    taken, slots = np.zeros(E, int), np.full((T, k), -1)
    for j in range(k):
        for t in range(T):
            e = choices[t, j]
            if taken[e] < capacity:
                slots[t, j] = e * capacity + taken[e]
                taken[e] += 1
    gates = np.take_along_axis(p, choices, axis=1)
    if k > 1:
        gates = gates / gates.sum(axis=1, keepdims=True)
    gates = np.where(slots >= 0, gates, 0.0)
    f = np.bincount(choices[:, 0], minlength=E) / T
    P = p.mean(axis=0)
    return slots, gates, E * float(f @ P)
=== wrong: second choices of a token before first choices of the next one :: several, ties, gates
:: All first choices get their slots before any second choice
-    for j in range(k):
-        for t in range(T):
+    for t in range(T):
+        for j in range(k):
=== wrong: one slot too many :: single, several, ties, gates :: not
-            if taken[e] < capacity:
+            if taken[e] <= capacity:
=== wrong: one slot too few :: single, several, ties, gates :: expected
+            if taken[e] < capacity - 1:
=== wrong: no capacity :: single, several, ties, gates :: Nothing is dropped here
+            if True:
=== wrong: at most one choice of a token has a slot :: several, ties, gates :: expected
+            if taken[e] < capacity and slots[t].max() < 0:
=== wrong: what is dropped goes to the next expert :: single, several, ties, gates :: expected
+            e = next((i % E for i in range(e, e + E) if taken[i % E] < capacity), e)
+            if taken[e] < capacity:
=== wrong: every choice begins at slot 0 :: several, ties, gates :: Second choices do not begin at slot 0 again
-    for j in range(k):
+    for j in range(k):
+        taken[:] = 0
=== wrong: the last tokens first :: single, several, ties, gates :: The last tokens are dropped, not the first ones
-        for t in range(T):
+        for t in reversed(range(T)):
=== wrong: the surest tokens first :: single, several, ties, gates
:: in the order of their numbers, not of their scores
+        for t in np.argsort(-p[np.arange(T), choices[:, j]], kind="stable"):
=== wrong: places with the expert, not slots :: single, several, ties :: This is the place with the expert
-                slots[t, j] = e * capacity + taken[e]
+                slots[t, j] = taken[e]
=== wrong: experts, not slots :: single, several, ties :: These are the experts
+                slots[t, j] = e
=== wrong: slots counted from the other side :: single, several, ties :: expected
+                slots[t, j] = taken[e] * E + e
=== wrong: dropped choices have the slot behind the last one :: single, several, ties :: has the slot -1
-    return slots, gates, E * float(f @ P)
+    return np.where(slots < 0, E * capacity, slots), gates, E * float(f @ P)
=== wrong: the loss without the number of experts :: loss :: multiplied by the number of experts
+    return slots, gates, float(f @ P)
=== wrong: the mean over the experts :: loss :: not divided by their number
+    return slots, gates, float(np.mean(f * P))
=== wrong: the loss of probabilities alone :: loss :: the product has both
+    return slots, gates, E * float(P @ P)
=== wrong: the loss of fractions alone :: loss :: here f_i is squared
+    return slots, gates, E * float(f @ f)
=== wrong: without the loss :: all :: expected (slots, gates, loss)
+    return slots, gates
=== wrong: among equal scores the higher number :: ties :: the expert of the lower number comes first
-    choices = np.argsort(-scores, axis=1, kind="stable")[:, :k]
+    choices = np.argsort(scores, axis=1, kind="stable")[:, ::-1][:, :k]
=== wrong: the lowest scores :: all :: The highest scores are chosen, not the lowest
+    choices = np.argsort(scores, axis=1, kind="stable")[:, :k]
=== wrong: the chosen ones in ascending order :: several, ties, gates, loss :: The likeliest expert is the first choice
+    choices = np.argsort(-scores, axis=1, kind="stable")[:, :k][:, ::-1]
=== wrong: the chosen ones in the order of their numbers :: several, ties, gates, loss :: expected
+    choices = np.sort(np.argsort(-scores, axis=1, kind="stable")[:, :k], axis=1)
=== wrong: gates of dropped choices :: gates :: The gate of a dropped choice is 0
-    gates = np.where(slots >= 0, gates, 0.0)
+
=== wrong: gates not divided by their sum :: gates :: divided by the sum over its k choices
-    if k > 1:
-        gates = gates / gates.sum(axis=1, keepdims=True)
+
=== wrong: divided also with one choice :: gates :: the gate is the probability itself
+    gates = gates / gates.sum(axis=1, keepdims=True)
=== wrong: dropped choices are not in the sum :: gates :: Dropped choices count in the sum, too
-    if k > 1:
-        gates = gates / gates.sum(axis=1, keepdims=True)
-    gates = np.where(slots >= 0, gates, 0.0)
+    gates = np.where(slots >= 0, gates, 0.0)
+    if k > 1:
+        gates = gates / np.maximum(gates.sum(axis=1, keepdims=True), 1e-300)
=== wrong: scores as gates :: gates :: These are scores, not probabilities
-    gates = np.take_along_axis(p, choices, axis=1)
-    if k > 1:
-        gates = gates / gates.sum(axis=1, keepdims=True)
+    gates = np.take_along_axis(scores, choices, axis=1)
=== wrong: a softmax that overflows :: gates :: expected
-    p = np.exp(scores - scores.max(axis=1, keepdims=True))
+    with np.errstate(all="ignore"):
+        p = np.exp(scores)
-    p /= p.sum(axis=1, keepdims=True)
+    with np.errstate(all="ignore"):
+        p /= p.sum(axis=1, keepdims=True)
=== wrong: the loss counts all choices :: loss :: f_i counts first choices only
-    f = np.bincount(choices[:, 0], minlength=E) / T
+    f = np.bincount(choices.ravel(), minlength=E) / (T * k)
=== wrong: the loss counts all choices, of T tokens :: loss :: expected
+    f = np.bincount(choices.ravel(), minlength=E) / T
=== wrong: the loss counts tokens that have a slot :: loss :: f_i counts dropped tokens, too
+    f = np.bincount(choices[slots[:, 0] >= 0, 0], minlength=E) / T
=== wrong: the loss of numbers of tokens :: loss :: not a number of tokens
+    f = np.bincount(choices[:, 0], minlength=E)
=== wrong: the mean probability of those that chose the expert :: loss :: not over those that chose expert i
-    P = p.mean(axis=0)
+    P = np.bincount(choices[:, 0], p[np.arange(T), choices[:, 0]], minlength=E) / T
=== wrong: the mean of the losses of both halves of the tokens :: loss :: expected
-    f = np.bincount(choices[:, 0], minlength=E) / T
-    P = p.mean(axis=0)
-    return slots, gates, E * float(f @ P)
+    losses = []
+    for half in (slice(0, T, 2), slice(1, T, 2)):
+        if p[half].size:
+            f = np.bincount(choices[half, 0], minlength=E) / len(p[half])
+            losses.append(E * float(f @ p[half].mean(axis=0)))
+    return slots, gates, sum(losses) / len(losses)
=== right: places by a running sum over one-hot rows, as GShard does
def route(scores, k, capacity):
    T, E = scores.shape
    shifted = np.exp(scores - np.max(scores, axis=1)[:, None])
    p = shifted / shifted.sum(axis=1)[:, None]
    left, offset, slots, gates = scores.copy(), np.zeros(E, int), [], []
    for j in range(k):
        e = left.argmax(axis=1)
        one_hot = np.eye(E, dtype=int)[e]
        place = ((np.cumsum(one_hot, axis=0) - 1 + offset) * one_hot).sum(axis=1)
        slots.append(np.where(place < capacity, e * capacity + place, -1))
        gates.append(p[np.arange(T), e])
        if j == 0:
            density = one_hot.mean(axis=0)
        offset = offset + one_hot.sum(axis=0)
        left[np.arange(T), e] = -np.inf
    slots, gates = np.stack(slots, axis=1), np.stack(gates, axis=1)
    gates = gates / (gates.sum(axis=1, keepdims=True) if k > 1 else 1)
    return slots, gates * (slots != -1), (density * p.mean(axis=0)).mean() * E**2
=== right: plain Python, lists
import math
def route(scores, k, capacity):
    free = [list(range(e * capacity, (e + 1) * capacity)) for e in range(scores.shape[1])]
    rows = [[math.exp(s - max(row)) for s in row] for row in scores.tolist()]
    rows = [[s / sum(row) for s in row] for row in rows]
    order = [sorted(range(len(row)), key=lambda e: (-row[e], e))[:k] for row in scores.tolist()]
    slots = [[-1] * k for _ in rows]
    for j in range(k):
        for t, mine in enumerate(order):
            if free[mine[j]]:
                slots[t][j] = free[mine[j]].pop(0)
    gates = []
    for t, mine in enumerate(order):
        total = sum(rows[t][e] for e in mine) if k > 1 else 1
        gates.append([rows[t][e] / total if slots[t][j] >= 0 else 0 for j, e in enumerate(mine)])
    loss = 0
    for e in range(len(free)):
        share = sum(mine[0] == e for mine in order) / len(rows)
        loss += share * sum(row[e] for row in rows) / len(rows)
    return [slots, gates, len(free) * loss]
"""
