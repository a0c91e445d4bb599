ANSWERS = r"""
=== parts
tp: the groups that divide layers
others: the groups of stages and of replicas
=== right: three loops
def mesh_groups(dp, pp, tp):
    D, S, T = range(dp), range(pp), range(tp)
    return {
        "dp": [sorted((d * pp + s) * tp + t for d in D) for s in S for t in T],
        "pp": [sorted((d * pp + s) * tp + t for s in S) for d in D for t in T],
        "tp": [sorted((d * pp + s) * tp + t for t in T) for d in D for s in S],
    }
=== wrong: the stage first :: all :: the tensor coordinate changes first
-        "dp": [sorted((d * pp + s) * tp + t for d in D) for s in S for t in T],
-        "pp": [sorted((d * pp + s) * tp + t for s in S) for d in D for t in T],
-        "tp": [sorted((d * pp + s) * tp + t for t in T) for d in D for s in S],
+        "dp": [sorted((d * tp + t) * pp + s for d in D) for s in S for t in T],
+        "pp": [sorted((d * tp + t) * pp + s for s in S) for d in D for t in T],
+        "tp": [sorted((d * tp + t) * pp + s for t in T) for d in D for s in S],
=== wrong: the replica before the stage :: others :: the stage changes after the replica
+        "dp": [sorted((s * dp + d) * tp + t for d in D) for s in S for t in T],
+        "pp": [sorted((s * dp + d) * tp + t for s in S) for d in D for t in T],
+        "tp": [sorted((s * dp + d) * tp + t for t in T) for d in D for s in S],
=== wrong: the stage outermost, the replica first :: all :: the tensor coordinate changes first
+        "dp": [sorted((s * tp + t) * dp + d for d in D) for s in S for t in T],
+        "pp": [sorted((s * tp + t) * dp + d for s in S) for d in D for t in T],
+        "tp": [sorted((s * tp + t) * dp + d for t in T) for d in D for s in S],
=== wrong: ranks from 1 on :: all ::
+        "dp": [sorted((d * pp + s) * tp + t + 1 for d in D) for s in S for t in T],
+        "pp": [sorted((d * pp + s) * tp + t + 1 for s in S) for d in D for t in T],
+        "tp": [sorted((d * pp + s) * tp + t + 1 for t in T) for d in D for s in S],
=== wrong: names interchanged :: all ::
-        "dp": [sorted((d * pp + s) * tp + t for d in D) for s in S for t in T],
+        "tp": [sorted((d * pp + s) * tp + t for d in D) for s in S for t in T],
-        "tp": [sorted((d * pp + s) * tp + t for t in T) for d in D for s in S],
+        "dp": [sorted((d * pp + s) * tp + t for t in T) for d in D for s in S],
=== wrong: groups of the ranks that share a coordinate :: all :: only one coordinate differs
def mesh_groups(dp, pp, tp):
    ranks = np.arange(dp * pp * tp).reshape(dp, pp, tp)
    return {
        "dp": [sorted(ranks[d].ravel().tolist()) for d in range(dp)],
        "pp": [sorted(ranks[:, s].ravel().tolist()) for s in range(pp)],
        "tp": [sorted(ranks[:, :, t].ravel().tolist()) for t in range(tp)],
    }
=== wrong: only the groups of the first ranks :: all :: also if it is alone in it
def mesh_groups(dp, pp, tp):
    return {
        "dp": [list(range(0, dp * pp * tp, pp * tp))],
        "pp": [list(range(0, pp * tp, tp))],
        "tp": [list(range(tp))],
    }
=== wrong: groups of one rank are left out :: all :: also if it is alone in it
-    return {
+    found = {
     }
+    return {name: [g for g in groups if len(g) > 1] for name, groups in found.items()}
=== right: by coordinates of each rank
def mesh_groups(dp, pp, tp):
    found = {"tp": {}, "pp": {}, "dp": {}}
    for rank in range(dp * pp * tp):
        rest, t = divmod(rank, tp)
        d, s = divmod(rest, pp)
        found["tp"].setdefault((d, s), []).append(rank)
        found["pp"].setdefault((d, t), []).append(rank)
        found["dp"].setdefault((s, t), []).append(rank)
    return {name: [tuple(group) for group in groups.values()] for name, groups in found.items()}
"""
