"""Which way to train wins the capstone, after an equal search for each: `python -m benchmarks.capstone_search`.

For each way and each kind of links, 12 recipes are drawn and raced on one cluster. The best four are raced on two more
clusters, then the best two on another two. The recipe with the lower geometric mean of five scores represents its way.
The recipes of the four ways are compared on eight fresh clusters, which had no part in the choice.

Prints what 16b shows, `capstone_search.csv`: for each way its score on the fresh clusters (geometric mean), the spread
over the drawn recipes on the first cluster and over the fresh clusters (standard deviations of the logarithm), and the
ratio to the best way with its 95 % interval. A race ends at half of the budget, which counts as one budget. It takes
about three minutes of CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from course.probes import capstone

WAYS = ("synchronous", "compressed", "local steps", "asynchronous")
TRIALS, BETTER, BEST, FRESH = 12, 4, 2, 8
LEFT_OUT = ("nobody", "slow", "slow and doomed")


def main() -> None:
    print("kind,way,score,over_recipes,over_clusters,ratio,low,high,recipe")
    with ProcessPoolExecutor(2) as pool:
        for kind in capstone.KINDS:
            found = {way: search(pool, kind, way) for way in WAYS}
            best = min((scores for _, scores, _ in found.values()), key=np.mean)
            for way, (chosen, own, over_recipes) in found.items():
                half = 2.36 * (own - best).std(ddof=1) / FRESH**0.5  # Student's t for 8 clusters
                low, ratio, high = np.exp((own - best).mean() + half * np.array([-1, 0, 1]))
                inside = chosen["strategy"].get("compressor", chosen["strategy"])
                settings = chosen["optimizer"] | inside | {"batch size": chosen["batch_size"]}
                named = [f"{key} {value:g}" for key, value in settings.items() if key not in ("name", "algorithm")]
                in_short = "; ".join([*named, f"without: {chosen['left_out']}"]).replace("_", " ")
                numbers = [f"{number:.2f}" for number in (over_recipes, own.std(ddof=1), ratio, low, high)]
                print(kind, way, f"{np.exp(own.mean()):.3f}", *numbers, in_short, sep=",", flush=True)


def search(pool: Executor, kind: str, way: str) -> tuple[dict[str, Any], np.ndarray, float]:
    """The best recipe of a way, its log scores on the fresh clusters, and their spread over the drawn recipes."""
    recipes, raced = [recipe(way, number) for number in range(TRIALS)], np.empty((TRIALS, 0))
    for clusters, survivors in (([0], BETTER), ([1, 2], BEST), ([3, 4], 1)):
        raced = np.hstack([raced, races(pool, kind, recipes, clusters)])
        if clusters == [0]:
            over_recipes = raced.std(ddof=1)
        kept = np.argsort(raced.mean(1), kind="stable")[:survivors]
        recipes, raced = [recipes[at] for at in kept], raced[kept]
    return recipes[0], races(pool, kind, recipes, range(5, 5 + FRESH))[0], over_recipes


def races(pool: Executor, kind: str, recipes: Sequence[dict[str, Any]], clusters: Sequence[int]) -> np.ndarray:
    """The log scores: a row for each recipe, a column for each cluster."""
    cases = [(kind, each, number) for each in recipes for number in clusters]
    return np.reshape([*pool.map(log_score, cases)], (len(recipes), len(clusters)))


def recipe(way: str, number: int) -> dict[str, Any]:
    """Draw a recipe; "left_out" says which machines it leaves out."""
    rng = np.random.default_rng([WAYS.index(way), number])
    momentum, size, left_out = float(rng.choice([0, 0.9])), int(rng.choice([32, 64, 128])), rng.choice(LEFT_OUT)
    total = float(np.exp(rng.uniform(np.log(0.3), np.log(8))))  # lr / (1 - momentum)
    if way == "asynchronous":  # a minibatch and a rate of one gradient, which is late
        total, size = total / 6, size // 2
    density, period, servers = float(rng.choice([0.001, 0.01, 0.05])), int(2 ** rng.integers(1, 6)), rng.integers(1, 3)
    strategy = {
        "synchronous": {"name": "Synchronous", "algorithm": "ring"},
        "compressed": {"name": "Synchronous", "compressor": {"name": "DGC", "density": density, "momentum": momentum}},
        "local steps": {"name": "LocalSGD", "period": period},
        "asynchronous": {"name": "Downpour", "servers": int(servers), "fetch_every": period // 2,
                         "push_every": period // 2},
    }[way]  # fmt: skip
    sgd = {"name": "SGD", "lr": float(f"{total * (1 - momentum):.2g}"), "momentum": momentum * (way != "compressed")}
    return {"strategy": strategy, "optimizer": sgd, "batch_size": size, "epochs": 8, "left_out": str(left_out)}


def log_score(case: tuple[str, dict[str, Any], int]) -> float:
    """The logarithm of the score on a cluster of this kind and number."""
    kind, drawn, number = case
    cluster = capstone.clusters((number, 48))[kind]
    out = (cluster.slow[0], cluster.death[0])[: LEFT_OUT.index(drawn["left_out"])]
    ranks = [machine for machine in range(cluster.workers) if machine not in out]
    ranks.sort(key=lambda machine: machine != cluster.death[0])  # who dies comes first, servers are last
    given = {key: value for key, value in drawn.items() if key != "left_out"} | {"ranks": ranks}
    return float(np.log(capstone.run(replace(cluster, budget=cluster.budget / 2), given, seed=number).score / 2))


if __name__ == "__main__":
    main()
