"""The choices of a run, each a plain value by its name, and how they are drawn."""

from __future__ import annotations

from typing import Any

from minidl.cli import components
from minidl.cli.strategies import STRATEGIES
from minidl.cluster.algorithm import NAMED
from minidl.cluster.faults import OPERATIONS
from minidl.parallel.job import PRECISIONS, SHARDS
from minidl.parallel.pipeline.schedules import SCHEDULES
from minidl.random import Purpose, stream

Choices = dict[str, Any]
"""The choices of a run that are not the simplest ones."""

OPTIMIZERS = """
sgd sgd:momentum=0.9,nesterov=true sgd:momentum=0.7,momentum_form=v sgd:momentum=0.9,dampening=0.3 adam:eps=0.01
adamw:eps=0.01 lamb:eps=0.01 lars:momentum=0.9 adagrad:eps=0.01
rmsprop:eps=0.1,momentum=0.5 rmsprop:eps=0.1,centered=true
"""
OF_RUN: dict[str, list[Any]] = {
    "strategy": ["serial", *sorted(STRATEGIES, key="synchronous".__ne__)],
    "model": ["mlp", "uneven", "convolutions", "lenet", "gpt", "experts"],
    "width": [4, 1, 3, 6, 33, 90, 91, 130],  # 90 x 90 numbers are a message below the eager size, 91 x 91 above it
    "depth": [1, 0, 2, 3, 6], "dropout": [0.0, 0.31], "samples": [24, 1, 2, 7, 13, 29, 50],
    "batch_size": [8, 1, 3, 5, 7, 13, 37, 100], "epochs": [1, 2, 3], "growing": [False, True], "shards": [*SHARDS],
    "loss": ["cross entropy", "padded", "class weights", "smoothed", "squared error", "linear"],
    "optimizer": OPTIMIZERS.split(), "lr": [0.0137, 0.0625, 0.29, 1e30], "weight_decay": [0.0, 0.0123],
    "groups": [False, True], "schedule": ["constant", "steps", "cosine", "warm-up"], "clip_norm": [None, 0.037, 1.1],
    "precision": [None, *PRECISIONS], "seed": [0, 1, 2**40 + 3],
    "workers": [2, 1, 3, 4, 5, 7, 33],  # from 32 ranks on, collectives are simulated at once
    "network": [None, "10gbe", "slow", "reducing", "racks", "torus"],
    "flops_per_s": [None, 1e9, 3.7e6], "jitter": [0.0, 0.41], "slow": [None, (0, 1.7), (1, 23.0), (5, 3.3)],
    "memory": [None, 1e9, 3000.0], "on_failure": ["raise", "continue"], "elastic": [False, True, "rejoin"],
    "again": ["same", "at once", "by message"], "resume on": [None, "the same", 1, 2, 3],
}  # fmt: skip
"""The values of each choice of a run, the simplest one first."""

COMPRESSORS = """
top_k(0.1) top_k(0.37,all_reduce=split) random_k(0.23) random_k(0.6,unbiased=true) half(bf16) threshold(0.011) one_bit
sign qsgd(3) qsgd(127,bucket=7) power_sgd(1) power_sgd(2) quantized_all_reduce(qsgd(7)) lossless(qsgd(5))
coding_time(top_k(0.1),0.001) half(fp16) tern_grad tern_grad(2.5) signum dgc(0.1) dgc(0.1,warmup=(),momentum=0.5)
""".split()  # noqa: SIM905
SETTINGS = f"""
algorithm: {" ".join(NAMED)}
schedule: {" ".join(SCHEDULES)}
compressor: {" ".join(COMPRESSORS)} {" ".join(f"error_feedback({one})" for one in COMPRESSORS)}
replica: hybrid(pp=2) hybrid(tp=2) hybrid(pp=2,micro_batches=3) pipeline(3)
offload: offload(optimizer) offload(all) offload(optimizer,delayed=true)
overlap abandon asynchronous locked hybrid sequence sample_slices: true
fetch_every push_every servers pp tp accumulate stage: 2 3
period shard: 1 2 3
micro_batches: 1 2 3 5
stages: 1 3 4
ep chunks_per_stage: 2
axes: [tp,dp,pp] [pp,dp,tp]
spatial: 2 3 1x2 2x2
recompute: full selective
data: shard
batch_norm: synchronized
coordinator: false
variant: synchronous round_robin
topology: torus full random exponential none
weight_versions: vertical_sync latest
bucket_mb: 0.000001 0.0003 0.07
quorum: solo 1 2
post_local_after backups: 0 2
staleness: 0 1 3
warm_start: 3 10
alpha: 0.13 1.0
momentum outer_lr: 0.43
outer_momentum: 0.0 0.61
"""
SPLIT = [line.partition(": ") for line in SETTINGS.strip().splitlines()]
OF_STRATEGY = {name: values.split() for names, _, values in SPLIT for name in names.split()}
"""Values other than the default of each setting of the strategies, as typed on the command line."""


def drawn(seed: int, run: int) -> Choices:
    """The choices of run number `run`."""
    rng = stream(Purpose.SWARM, seed, run)

    def one_of(values: Any) -> Any:
        return values[rng.integers(len(values))]

    unusual = one_of([0.1, 0.25, 0.5])  # the probability that a choice is not the simplest one
    common = ["synchronous", "pipeline", "hybrid", "hybrid", "sharded"]  # they have most settings
    choices = {"strategy": one_of(common if rng.random() < 0.5 else OF_RUN["strategy"])}
    strategy: Any = STRATEGIES[choices["strategy"]]
    often = {"epochs": 0.7, "resume on": 0.7, "compressor": 0.5, "elastic": 0.5 if strategy.resumes_from else 0.1}
    for name, values in OF_RUN.items():
        if rng.random() < often.get(name, unusual) and (name != "memory" or strategy.counts_device):
            choices.setdefault(name, one_of(values))
    for name in components.settings(strategy):
        if name in OF_STRATEGY and rng.random() < often.get(name, unusual / 1.5):
            choices[f"strategy.{name}"] = one_of(OF_STRATEGY[name])
    for number in range(rng.choice(3, p=[0.5, 0.35, 0.15])):
        at = int(rng.integers(1, 45)) if rng.random() < 0.7 else (one_of(OPERATIONS), int(rng.integers(1, 9)))
        is_death = choices.get("elastic") and rng.random() < 0.8
        kind = "kill" if is_death else one_of(["kill", "stop", "drop", "corrupt"])
        choices["on_failure"] = "raise" if choices.get("elastic") else one_of(OF_RUN["on_failure"])
        choices[f"fault {number}"] = (kind, int(rng.integers(12)), at)
    return {name: value for name, value in choices.items() if value != OF_RUN.get(name, [None])[0]}
