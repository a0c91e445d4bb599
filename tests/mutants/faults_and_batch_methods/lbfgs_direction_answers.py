ANSWERS = r"""
=== parts
empty: no pairs
one: one pair
several: several pairs
rejected: pairs with s·y <= 0 are left out
commands: only scalars come back, from few commands
=== base
def lbfgs_direction(shards, m):
    def dot(x, y):
        return sum(shard.dot(x, y) for shard in shards)
    def axpy(a, x, y):
        for shard in shards:
            shard.axpy(a, x, y)
    def scale(a, x):
        for shard in shards:
            shard.scale(a, x)
    for shard in shards:
        shard.copy("g", "d")
    used = []
    for i in range(m - 1, -1, -1):
        sy = dot(f"s{i}", f"y{i}")
        if sy <= 0:
            continue
        alpha = dot(f"s{i}", "d") / sy
        axpy(-alpha, f"y{i}", "d")
        used.append((i, sy, alpha))
    if used:
        i, sy, alpha = used[0]
        scale(sy / dot(f"y{i}", f"y{i}"), "d")
    for i, sy, alpha in reversed(used):
        beta = dot(f"y{i}", "d") / sy
        axpy(alpha - beta, f"s{i}", "d")
    scale(-1, "d")
=== wrong: uphill :: all :: d = -H g
-    scale(-1, "d")
+
=== wrong: d does not begin as g :: all :: d begins as a copy of g
-        shard.copy("g", "d")
+        pass
=== wrong: steepest descent :: one, several, rejected, commands :: the pairs were not used
-    for i in range(m - 1, -1, -1):
+    for i in []:
=== wrong: the oldest pair first :: several, rejected, commands :: begins with the newest pair
+    for i in range(m):
=== wrong: the last pair is forgotten :: one, several, rejected, commands :: expected
+    for i in range(m - 2, -1, -1):
=== wrong: the first pair is forgotten :: one, several, rejected, commands :: expected
+    for i in range(m - 1, 0, -1):
=== wrong: no scaling between the loops :: one, several, rejected, commands :: of the newest pair
-        scale(sy / dot(f"y{i}", f"y{i}"), "d")
+        pass
=== wrong: the scaling upside down :: one, several, rejected, commands :: not y·y / s·y
+        scale(dot(f"y{i}", f"y{i}") / sy, "d")
=== wrong: the other scaling :: one, several, rejected, commands :: not s·s / s·y
+        scale(dot(f"s{i}", f"s{i}") / sy, "d")
=== wrong: the scaling of the oldest pair :: several, rejected, commands :: not of the oldest
-        i, sy, alpha = used[0]
+        i, sy, alpha = used[-1]
=== wrong: the scaling of the newest pair, also where that is left out :: rejected, commands :: expected
-        i, sy, alpha = used[0]
-        scale(sy / dot(f"y{i}", f"y{i}"), "d")
+        scale(abs(dot(f"s{m - 1}", f"y{m - 1}")) / dot(f"y{m - 1}", f"y{m - 1}"), "d")
=== wrong: both loops in one order :: several, rejected, commands :: the second one back
-    for i, sy, alpha in reversed(used):
+    for i, sy, alpha in used:
=== wrong: alpha + beta :: one, several, rejected, commands :: d += (alpha - beta) s
-        axpy(alpha - beta, f"s{i}", "d")
+        axpy(alpha + beta, f"s{i}", "d")
=== wrong: float32 coefficients :: one, several, rejected, commands :: expected
+        axpy(np.float32(alpha - beta), f"s{i}", "d")
=== wrong: alpha s and beta s apart :: commands :: Two axpy for each pair
+        axpy(alpha, f"s{i}", "d")
+        axpy(-beta, f"s{i}", "d")
=== wrong: beta of s :: one, several, rejected, commands :: with y
-        beta = dot(f"y{i}", "d") / sy
+        beta = dot(f"s{i}", "d") / sy
=== wrong: s·y once more :: commands :: Keep each s·y of the first loop
+        beta = dot(f"y{i}", "d") / dot(f"s{i}", f"y{i}")
=== wrong: copied anew for each pair :: commands :: grow with the history
+        beta = dot(f"y{i}", "d") / sy
+        for shard in shards:
+            shard.copy("d", "before")
=== wrong: alpha of g :: several, rejected, commands :: from d as it is then, not from g
-        alpha = dot(f"s{i}", "d") / sy
+        alpha = dot(f"s{i}", "g") / sy
=== wrong: alpha is added :: one, several, rejected, commands :: expected
-        axpy(-alpha, f"y{i}", "d")
+        axpy(alpha, f"y{i}", "d")
=== wrong: s where y belongs :: one, several, rejected, commands :: expected
+        axpy(-alpha, f"s{i}", "d")
=== wrong: all pairs are used :: rejected, commands :: A pair with s·y <= 0 is left out
-        if sy <= 0:
+        if sy == 0:
=== wrong: s·y of zero is used :: rejected, commands :: division by zero :: raised
+        if sy < 0:
=== wrong: a pair is left out if one shard's elements say so :: one, several, rejected, commands :: expected
+        if min(shard.dot(f"s{i}", f"y{i}") for shard in shards) <= 0:
=== wrong: all older pairs are left out, too :: rejected, commands :: not all older ones
-            continue
+            break
=== wrong: the curvature's magnitude :: rejected, commands :: expected
-        sy = dot(f"s{i}", f"y{i}")
+        sy = abs(dot(f"s{i}", f"y{i}"))
=== wrong: the dot product of the first shard :: one, several, rejected, commands :: expected
-        return sum(shard.dot(x, y) for shard in shards)
+        return shards[0].dot(x, y) or 1.0
=== wrong: each shard for itself :: one, several, rejected, commands :: expected
-def lbfgs_direction(shards, m):
+def lbfgs_direction(every, m):
+    for shard in every:
+        of_shard([shard], m)
+def of_shard(shards, m):
=== wrong: the gradient is changed :: all :: expected
-        shard.copy("g", "d")
-    used = []
+        shard.scale(-1, "g")
+        shard.copy("g", "d")
+    used = []
=== wrong: g is the place for work :: commands :: g was changed
+        shard.copy("g", "d")
+        shard.scale(0.0, "g")
+    used = []
-    scale(-1, "d")
+    for shard in shards:
+        shard.scale(-1, "d")
=== wrong: the vectors are gathered :: commands :: get sent a vector
def lbfgs_direction(shards, m):
    def whole(x):
        return np.concatenate([shard.get(x) for shard in shards])
    d, used = whole("g"), []
    for i in reversed(range(m)):
        s, y = whole(f"s{i}"), whole(f"y{i}")
        if s @ y > 0:
            used.append((s, y, s @ d / (s @ y)))
            d = d - used[-1][2] * y
    if used:
        s, y, _ = used[0]
        d = d * (s @ y) / (y @ y)
    for s, y, alpha in reversed(used):
        d = d + (alpha - y @ d / (s @ y)) * s
    start = 0
    for shard in shards:
        size = len(shard.get("d"))
        shard.put("d", -d[start : start + size])
        start += size
=== wrong: the direction is returned :: all :: expected
def lbfgs_direction(shards, m):
    return np.zeros(sum(shard.dot("g", "g") > 0 for shard in shards))
=== right: minus from the start, a vector for work, numpy's numbers
def lbfgs_direction(shards, m):
    def everywhere(name, *arguments):
        return np.sum([getattr(shard, name)(*arguments) or 0.0 for shard in shards])
    everywhere("copy", "g", "work")
    curvatures = {i: everywhere("dot", f"s{i}", f"y{i}") for i in range(m)}
    used = [i for i in range(m) if curvatures[i] > 0]
    alphas = {}
    for i in used[::-1]:
        alphas[i] = everywhere("dot", "work", f"s{i}") / curvatures[i]
        everywhere("axpy", -alphas[i], f"y{i}", "work")
    y = f"y{used[-1]}" if used else ""
    everywhere("scale", -curvatures[used[-1]] / everywhere("dot", y, y) if used else -1.0, "work")
    for i in used:
        everywhere("axpy", -alphas[i] - everywhere("dot", "work", f"y{i}") / curvatures[i], f"s{i}", "work")
    everywhere("copy", "work", "d")
=== right: recursion, sums of the shards in another order
import math
def lbfgs_direction(shards, m):
    def dot(x, y):
        return math.fsum(shard.dot(x, y) for shard in reversed(shards))
    def send(name, *arguments):
        [getattr(shard, name)(*arguments) for shard in shards]
    def below(i, is_newest):
        if i < 0:
            return
        s, y = f"s{i}", f"y{i}"
        sy = dot(s, y)
        if not sy > 0:
            return below(i - 1, is_newest)
        alpha = dot(s, "q") / sy
        send("axpy", -alpha, y, "q")
        if is_newest:
            gamma.append(sy / dot(y, y))
        below(i - 1, False)
        if not scaled:
            scaled.append(True)
            send("scale", gamma[0], "q")
        send("axpy", alpha - dot("q", y) / sy, s, "q")
    gamma, scaled = [], []
    send("copy", "g", "q")
    below(m - 1, True)
    send("scale", -1, "q")
    send("copy", "q", "d")
"""
