"""What a run did, read from its trace, is what its schedule says."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from minidl import cluster, nn, optim, parallel
from minidl.data import Dataset, Splits
from minidl.parallel import pipeline

WIDTH, DEPTH = 32, 8  # every chunk of up to eight computes the same
FORWARD = 2 * WIDTH**2 * 4  # flops of a micro-batch of 4 samples through one layer
MILLISECOND = 1e-3
NODE = cluster.Node(flops_per_s=FORWARD / MILLISECOND, bytes_per_s=1e18)


def layers() -> nn.Module:
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(DEPTH)])


def samples() -> Splits:
    rng = np.random.default_rng(0)
    data = Dataset(rng.normal(size=(64, WIDTH)).astype(np.float32), rng.integers(0, WIDTH, 64))
    return Splits(data, data)


JOB = parallel.Job(layers, samples, partial(optim.SGD, lr=0.01), batch_size=32, epochs=1)
SYNCHRONOUS = [kind for kind in pipeline.SCHEDULES if kind != "pipedream"]


def ran(kind: str, on: object, replicas: int = 1) -> parallel.Report:
    strategy = parallel.Pipeline(4, 8 // replicas, kind, replicas)
    engine = cluster.Simulation(node=NODE) if on == "simulation" else on
    return parallel.train(JOB, strategy, nodes=4 * replicas, on=engine)


def order(timeline: pipeline.Timeline) -> list[list[str]]:
    """The actions of each stage but for updates."""
    return [[str(bar.action) for bar in timeline.of(stage) if bar.action.kind != "U"] for stage in range(4)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "on"), [*((kind, "simulation") for kind in SYNCHRONOUS), ("zb-h1", "processes")])
def test_the_executed_order_is_the_simulated_one(kind: str, on: str):
    report = ran(kind, on)
    made = report.strategy.made_schedule()
    assert order(pipeline.executed(report.trace, made, minibatch=1)) == order(pipeline.simulate(made))


@pytest.mark.parametrize("kind", ["1f1b", "interleaved"])
def test_in_a_simulated_run_an_action_begins_when_its_stage_is_free_and_its_input_is_there(kind: str):
    run = pipeline.executed((report := ran(kind, "simulation")).trace, report.strategy.made_schedule())
    ends = {bar.action: bar.end for bar in run.bars}
    for stage in range(4):
        free = 0.0
        for bar in run.of(stage):
            kind, m, chunk = bar.action.kind, bar.action.micro_batch, bar.action.chunk
            needed = pipeline.Action(kind, m, chunk - 1 if kind == "F" else chunk + 1)
            assert bar.start == pytest.approx(max(free, ends.get(needed, 0.0)), abs=1e-9 * MILLISECOND)
            free = bar.end


@pytest.mark.timeout(300)
def test_stages_that_several_ranks_compute_are_told_apart():
    model = partial(nn.models.MLP, WIDTH, WIDTH, WIDTH, WIDTH, WIDTH)
    for on in (cluster.Simulation(node=NODE), "processes"):
        strategy = parallel.Hybrid(dp=1 if on == "processes" else 2, pp=2, tp=2, micro_batches=3, schedule="zb-h1")
        report = parallel.train(replace(JOB, model=model), strategy, nodes=4 * strategy.dp, on=on)
        made = report.strategy.made_schedule()
        timeline = pipeline.executed(report.trace, made, minibatch=1, replica=strategy.dp - 1)
        for stage in range(2):
            done = [bar.action for bar in timeline.of(stage)]
            assert done == [action for action in made.actions(stage) if action.kind != "U"]


def test_the_second_replica_has_a_timeline_of_its_own_and_minibatches_that_were_not_made_have_none():
    report = ran("1f1b", "simulation", replicas=2)
    made = report.strategy.made_schedule()
    assert order(pipeline.executed(report.trace, made, replica=1)) == order(pipeline.simulate(made))
    with pytest.raises(ValueError, match="rank 0 has done 2 minibatches of a pipeline, asked for number 2, from 0"):
        pipeline.executed(report.trace, made, minibatch=2)
