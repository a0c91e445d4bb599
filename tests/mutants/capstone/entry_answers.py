"""Known answers to `entry`: slow ones, ones that do not run, and attempts to win without training."""

ANSWERS = r"""
=== parts
slow: slow links: the target within the budget
middle: faster links: the target within the budget
fast: fastest links: the target within the budget
good: as fast as the reference good
ours: as fast as ours
=== base
def entry(cluster):
    ranks = [machine for machine in range(cluster.workers) if machine != cluster.slow[0]]
    recipe = {"ranks": ranks, "batch_size": 64, "epochs": 8}
    sgd = {"name": "SGD", "momentum": 0.9, "lr": 0.3}
    strategy = {"name": "LocalSGD", "period": 16}
    return recipe | {"strategy": strategy, "optimizer": sgd}
=== wrong: too few epochs :: all :: time for more epochs
-    return recipe | {"strategy": strategy, "optimizer": sgd}
+    return recipe | {"strategy": strategy, "optimizer": sgd, "epochs": 1}
=== wrong: nobody goes on after the death :: all :: Which strategies go on
+    return recipe | {"strategy": {"name": "Rounds"}, "optimizer": sgd, "ranks": [cluster.death[0]]}
=== wrong: diverges :: all :: ended early
+    return recipe | {"strategy": strategy, "optimizer": {"name": "SGD", "lr": 1e30}}
=== wrong: shared memory :: all :: name must be
+    return recipe | {"strategy": {"name": "Hogwild"}, "optimizer": sgd}
=== wrong: a strategy instead of its name :: all :: is plain data
+    from minidl import parallel
+    return recipe | {"strategy": parallel.Synchronous(), "optimizer": sgd}
=== wrong: a trained model :: all :: a key of the recipe
+    return recipe | {"strategy": strategy, "optimizer": sgd, "weights": [0.1] * 4810}
=== wrong: more machines than there are :: all :: each of ranks must be
+    return recipe | {"strategy": strategy, "optimizer": sgd, "ranks": [*range(64)]}
=== wrong: rates below zero :: all :: at least 0
+    return recipe | {"strategy": strategy, "optimizer": sgd, "rates": [-1.0]}
=== wrong: gradients without end :: all :: from 1 to 40
+    return recipe | {"strategy": strategy, "optimizer": sgd, "batch_size": 8, "epochs": 10**9}
=== wrong: all machines, minibatches of 64 :: good, ours :: of the reference
def entry(cluster):
    sgd = {"name": "SGD", "momentum": 0.9, "lr": 0.1}
    return {"strategy": {"name": "Synchronous"}, "optimizer": sgd, "epochs": 15}
=== wrong: a clock that stands still :: good, ours :: of the reference
def entry(cluster):
    object.__setattr__(cluster, "sample_seconds", 0.0)
    object.__setattr__(cluster, "budget", 1e9)
    cluster.__class__.seconds = property(lambda self: 0.0)
    capstone.run = lambda *_: None
    sgd = {"name": "SGD", "momentum": 0.9, "lr": 0.1}
    return {"strategy": {"name": "Synchronous"}, "optimizer": sgd, "epochs": 15}
=== right: numbers of numpy
import numpy as np

def entry(cluster):
    healthy = np.delete(np.arange(cluster.workers), cluster.slow[0])
    optimizer = {"name": "SGD", "momentum": np.float64(0.9), "lr": 0.3}
    return {"optimizer": optimizer, "strategy": {"name": "LocalSGD", "period": np.int64(16)}, "ranks": healthy,
            "rates": (1.0,), "batch_size": np.int64(64), "epochs": 8}
"""
