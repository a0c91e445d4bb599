ANSWERS = r"""
=== parts
edges: one rank; no plan at all
roomy: enough memory: each kind of plan is the best one on some cluster
tight: little memory, too: the fastest of the plans that fit
=== base
def best_plan(model, cluster, batch, seconds):
    L, h, s, p = model.layers, model.width, model.context, cluster.ranks
    found = []
    for pp in range(1, p + 1):
        for tp in range(1, p + 1):
            if p % (pp * tp) or L % pp or model.heads % tp:
                continue
            dp = p // (pp * tp)
            for b in range(1, batch + 1):
                if batch % (dp * b):
                    continue
                m = batch // (dp * b)
                state = 16 * (L // pp) * 12 * h * h // tp
                kept = 34 * (L // pp) * b * s * h // tp
                if state + min(pp, m) * kept <= cluster.memory:
                    found.append((seconds(dp, pp, tp, b), (dp, pp, tp, b)))
    return min(found)[1] if found else None
=== wrong: memory is not looked at :: edges, tight :: Where no plan fits
-                if state + min(pp, m) * kept <= cluster.memory:
+                if True:
=== wrong: weights only :: edges, tight :: Where no plan fits
+                if state <= cluster.memory:
=== wrong: activations only :: edges, tight :: Where no plan fits
+                if min(pp, m) * kept <= cluster.memory:
=== wrong: the activations of one micro-batch :: tight :: of min(pp, m) micro-batches, not of one
+                if state + kept <= cluster.memory:
=== wrong: the activations of all micro-batches :: tight :: not of all m: this is 1F1B
+                if state + m * kept <= cluster.memory:
=== wrong: the activations of pp micro-batches :: tight :: there may be fewer than pp
+                if state + pp * kept <= cluster.memory:
=== wrong: state divided among the replicas :: tight :: dp does not divide it
+                if state // dp + min(pp, m) * kept <= cluster.memory:
=== wrong: the state of the whole model :: tight :: its stage and its shard only
+                if state * pp * tp + min(pp, m) * kept <= cluster.memory:
=== wrong: activations are not divided :: tight :: divided over tp, too
+                if state + min(pp, m) * kept * tp <= cluster.memory:
=== wrong: 4 bytes a weight :: edges, tight :: needs
+                if state // 4 + min(pp, m) * kept <= cluster.memory:
=== wrong: all of the memory is too much :: edges :: A plan that needs all of the memory fits
+                if state + min(pp, m) * kept < cluster.memory:
=== wrong: no more stages than micro-batches :: roomy, tight :: with fewer micro-batches than stages
+                if pp <= m and state + min(pp, m) * kept <= cluster.memory:
=== wrong: micro-batches of one sample :: roomy, tight :: Only micro-batches of one sample
-            for b in range(1, batch + 1):
+            for b in (1,):
=== wrong: one micro-batch :: roomy, tight :: all samples of a replica, was tried
+            for b in [batch // dp] if batch % dp == 0 else []:
=== wrong: powers of two :: roomy, tight :: Only extents that are powers of two
-            if p % (pp * tp) or L % pp or model.heads % tp:
+            if p % (pp * tp) or L % pp or model.heads % tp or any(q & (q - 1) for q in (pp, tp, p // (pp * tp))):
=== wrong: no shards beyond the node :: roomy, tight :: may leave the node
+            if p % (pp * tp) or L % pp or model.heads % tp or cluster.per_node % tp:
=== wrong: one axis only :: roomy, tight :: along several axes were not tried
+            if p % (pp * tp) or L % pp or model.heads % tp or sum(q > 1 for q in (pp, tp, p // (pp * tp))) > 1:
=== wrong: layers are not divided equally :: all :: there is no such plan :: raised
+            if p % (pp * tp) or model.heads % tp:
=== wrong: heads are not divided equally :: all :: there is no such plan :: raised
+            if p % (pp * tp) or L % pp:
=== wrong: fewer ranks than there are :: all :: there is no such plan :: raised
+            if pp * tp > p or L % pp or model.heads % tp:
=== wrong: samples are left over :: all :: there is no such plan :: raised
-                if batch % (dp * b):
+                if batch < dp * b:
=== wrong: most replicas :: roomy, tight :: As many replicas as fit
-    return min(found)[1] if found else None
+    return max(found, key=lambda each: (each[1][0], -each[0]))[1] if found else None
=== wrong: the slowest :: roomy, tight :: The slowest plan was chosen
+    return max(found)[1] if found else None
=== wrong: the first that fits :: roomy, tight :: with
+    return found[0][1] if found else None
=== wrong: an error where nothing fits :: edges :: min() :: raised
+    return min(found)[1]
=== wrong: an empty plan where nothing fits :: edges :: expected (dp, pp, tp, b) or None
+    return min(found)[1] if found else ()
=== wrong: any plan where nothing fits :: edges :: is no plan
+    return min(found)[1] if found else (p, 1, 1, 1)
=== wrong: the seconds, too :: all :: expected (dp, pp, tp, b) or None
+    return min(found) if found else None
=== wrong: without the micro-batch :: all :: expected (dp, pp, tp, b) or None
+    return min(found)[1][:3] if found else None
=== wrong: never any plan :: all :: got None
+    return None
=== wrong: another order of the axes :: roomy, tight :: is no plan
+    return tuple(min(found)[1][i] for i in (2, 1, 0, 3)) if found else None
=== wrong: floats :: all :: whole numbers
+    return tuple(map(float, min(found)[1])) if found else None
=== right: a generator, the slowest of equally fast ones, numpy's numbers
from itertools import product
def best_plan(model, cluster, batch, seconds):
    def needs(pp, tp, b, m):
        a_layer = 192 * model.width**2 + 34 * min(pp, m) * b * model.context * model.width
        return a_layer * model.layers // (pp * tp)
    everything = (
        (dp, pp, tp, b)
        for dp, pp, tp in product(range(1, cluster.ranks + 1), repeat=3)
        if dp * pp * tp == cluster.ranks and not (batch % dp or model.layers % pp or model.heads % tp)
        for b in range(batch // dp, 0, -1)
        if batch // dp % b == 0 and needs(pp, tp, b, batch // dp // b) <= cluster.memory
    )
    best = min(everything, key=lambda plan: seconds(*plan), default=None)
    return best if best is None else np.array(best)
=== right: asks for all, and lets the error say what is no plan
def best_plan(model, cluster, batch, seconds):
    p, times = cluster.ranks, {}
    for pp in range(1, p + 1):
        for tp in range(1, p // pp + 1):
            dp = p // (pp * tp)
            for b in [b for b in range(1, batch + 1) if batch % b == 0]:
                try:
                    times[dp, pp, tp, b] = seconds(dp, pp, tp, b)
                except ValueError:
                    continue
    for dp, pp, tp, b in sorted(times, key=times.get):
        numbers = model.layers // pp * model.width // tp
        in_flight = min(pp, batch // dp // b)
        if numbers * (192 * model.width + 34 * b * model.context * in_flight) <= cluster.memory:
            return [dp, pp, tp, b]
"""
