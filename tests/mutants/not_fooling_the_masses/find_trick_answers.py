ANSWERS = r"""
=== parts
hardware: hardware: found, and no false alarm
options: options: found, and no false alarm
training: training: found, and no false alarm
best: best: found, and no false alarm
left out: left out: found, and no false alarm
worse: worse: found, and no false alarm
minibatch: minibatch: found, and no false alarm
peak: peak: found, and no false alarm
sizes: sizes: found, and no false alarm
extrapolated: extrapolated: found, and no false alarm
=== base
def find_trick(claim, rows):
    ours = [row for row in rows if row["method"] == "ours"]
    baseline = [row for row in rows if row["method"] == "baseline"]
    def values(some, key):
        return {row[key] for row in some}
    if claim["nodes"] not in values(ours, "nodes"):
        return "extrapolated"
    if values(ours, "hardware") != values(baseline, "hardware"):
        return "hardware"
    fast = [row for row in ours if row["seconds"] is not None]
    good = [row for row in ours if row["accuracy"] is not None]
    if values(fast, "precision") != values(good, "precision"):
        return "options"
    if len(values(ours, "seed")) < len(values(baseline, "seed")):
        return "left out"
    if values(baseline, "nodes") - values(ours, "nodes"):
        return "sizes"
    for row in fast:
        if row["samples_per_second"] > 1.05 * row["samples"] / row["seconds"]:
            return "peak"
    here = [row for row in good if row["nodes"] == claim["nodes"]]
    there = [row for row in baseline if row["nodes"] == claim["nodes"]]
    if claim["scaling"] == "strong" and values(here, "batch_size") != values(there, "batch_size"):
        return "minibatch"
    mine = [row["accuracy"] for row in here]
    theirs = [row["accuracy"] for row in there]
    if isclose(claim["accuracy"], max(mine), rel_tol=1e-9):
        return "best"
    if isclose(claim["accuracy"], mean(row["training_accuracy"] for row in here), rel_tol=1e-9):
        return "training"
    error = sqrt(variance(mine) / len(mine) + variance(theirs) / len(theirs))
    if mean(theirs) - mean(mine) > 2 * error:
        return "worse"
    return "clean"
=== wrong: everything is clean :: all :: A miss
def find_trick(claim, rows):
    return "clean"
=== wrong: everything is suspicious :: all :: Another trick
def find_trick(claim, rows):
    return "no trick of this name"
=== wrong: nothing is returned :: all :: without a `return`
def find_trick(claim, rows):
    pass
=== wrong: hardware that is not an A100 :: hardware :: in this report
-    if values(ours, "hardware") != values(baseline, "hardware"):
+    if values(ours, "hardware") != {"A100"}:
=== wrong: seconds and accuracy in rows of their own are a trick :: options :: A false alarm: in this report seconds and
-    if values(fast, "precision") != values(good, "precision"):
+    if len(fast) < len(ours):
=== wrong: skipped numbers are seeds left out :: left out :: both have the same seeds
-    if len(values(ours, "seed")) < len(values(baseline, "seed")):
+    if len(values(ours, "seed")) <= max(values(baseline, "seed")):
=== wrong: any lower accuracy is worse :: worse :: by less than two standard errors
-    if mean(theirs) - mean(mine) > 2 * error:
+    if mean(theirs) > mean(mine):
=== wrong: the best of the baseline is the limit :: worse :: A miss
+    if max(mine) < min(theirs) - 1:
=== wrong: the kind of scaling is ignored :: minibatch :: the scaling is called weak
-    if claim["scaling"] == "strong" and values(here, "batch_size") != values(there, "batch_size"):
+    if values(here, "batch_size") != values(there, "batch_size"):
=== wrong: the mean is not compared :: best :: the best seed of ours
-    if isclose(claim["accuracy"], max(mine), rel_tol=1e-9):
+    if claim["accuracy"] > max(mine) + 1:
=== wrong: a training accuracy above the test accuracy is a trick :: all :: A false alarm
-    if isclose(claim["accuracy"], mean(row["training_accuracy"] for row in here), rel_tol=1e-9):
+    if mean(row["training_accuracy"] for row in here) > mean(mine):
=== wrong: the claim of the most nodes is a trick :: sizes, extrapolated :: Another trick
-    if claim["nodes"] not in values(ours, "nodes"):
+    if claim["nodes"] >= max(values(ours, "nodes")):
=== wrong: sizes are counted over both :: sizes :: A miss
-    if values(baseline, "nodes") - values(ours, "nodes"):
+    if values(baseline, "nodes") - values(rows, "nodes"):
=== wrong: rates of the baseline :: peak :: A miss
-    for row in fast:
+    for row in baseline:
=== right: sets of pairs, and numbers of numpy
def find_trick(claim, rows):
    import numpy as np
    def column(method, key, nodes=None):
        return np.array([row[key] for row in rows if row["method"] == method and row[key] is not None
                         and nodes in (None, row["nodes"])])
    def differs(key, nodes=None):
        return set(column("ours", key, nodes)) != set(column("baseline", key, nodes))
    precise = {(row["precision"], row["seconds"] is None, row["accuracy"] is None) for row in rows
               if row["method"] == "ours"}
    n = claim["nodes"]
    if n not in column("ours", "nodes"):
        return "extrapolated"
    mine, theirs, trained = (column("ours", "accuracy", n), column("baseline", "accuracy", n),
                             column("ours", "training_accuracy", n))
    spread = np.sqrt(mine.var(ddof=1) / len(mine) + theirs.var(ddof=1) / len(theirs))
    rate = np.array([row["samples_per_second"] * row["seconds"] / row["samples"] for row in rows
                     if row["method"] == "ours" and row["seconds"] is not None])
    found = {
        "hardware": differs("hardware"),
        "options": len({name for name, _, _ in precise}) > 1,
        "left out": differs("seed"),
        "sizes": differs("nodes"),
        "peak": (rate > 1.05).any(),
        "minibatch": claim["scaling"] == "strong" and differs("batch_size", n),
        "best": abs(claim["accuracy"] - mine.max()) < 1e-9,
        "training": abs(claim["accuracy"] - trained.mean()) < 1e-9,
        "worse": theirs.mean() - mine.mean() > 2 * spread,
    }
    return next((name for name, is_there in found.items() if is_there), "clean")
"""
