"""The fault record of a run: nodes keep their numbers through restarts, and time that was lost counts."""

from functools import partial

import numpy as np
import pytest

from minidl.cluster import FaultPlan
from minidl.parallel import (
    BackupWorkers,
    Elastic,
    ElasticAveraging,
    Gossip,
    ParameterServer,
    Pipeline,
    Synchronous,
    train,
)
from minidl.parallel.run.elastic_restart import Restart
from minidl.parallel.run.fault_record import launches_of
from tests.parallel.jobs import small_job, weights, wide

STEPS = 4  # in an epoch of small_job


def test_nodes_keep_their_numbers_when_ranks_are_numbered_anew():
    first = Restart(1, 0, 0.1, {1: "killed", 3: "killed"}, 0, 3, "step", 0)
    then, last = Restart(2, 0, 0.2, {}, 2, 5, "step", 0), Restart(2, 3, 0.3, {1: "killed"}, 0, 4, "step", 0)
    assert launches_of(4, 0, [first, then, last], replaces=False) == [
        [0, 1, 2, 3, 4], [0, 2, 4], [0, 2, 4, 5, 6], [0, 4, 5, 6],
    ]  # fmt: skip
    replaced = Restart(1, 0, 0.1, {1: "killed"}, 1, 3, "checkpoint", 2)
    assert launches_of(3, 0, [replaced, replaced], replaces=True) == [[0, 1, 2], [0, 3, 2], [0, 4, 2]]
    assert launches_of(2, 1, [], replaces=False) == [[0, 1, 2]]


def test_a_straggler_keeps_its_blame_when_others_die_and_pictures_mark_both():
    plan = FaultPlan().kill(0, at=("all_reduce", 4)).kill(1, at=("all_reduce", 5)).slow(2, 9.5)
    settings = {"nodes": 4, "on": "simulation", "network": "1gbe", "faults": plan}
    report = train(small_job(model=partial(wide, 64)), Synchronous(), elastic=Elastic(rejoin=True), **settings)
    assert [death.node for death in report.deaths] == [0, 1]
    assert [death.seconds for death in report.deaths] == [r.seconds for r in report.restarts if r.died]
    assert max(report.waited_for, key=report.waited_for.get) == 2
    assert set(report.waited_for) == {*range(4), *range(4, 4 + sum(r.joined for r in report.restarts))}
    _, against_seconds, bars, *_ = report.curves().axes
    lines = {line.get_xdata()[0] for line in against_seconds.get_lines() if len(set(line.get_xdata())) == 1}
    assert lines == {death.seconds for death in report.deaths}
    assert bars.get_yticklabels()[-1].get_text() == "node 2"


@pytest.mark.parametrize("has_folder", [True, False])
def test_the_time_of_steps_that_are_done_again_counts_and_the_death_says_how_many(has_folder, tmp_path):
    job, strategy = small_job(model=partial(wide, 64)), Pipeline(stages=2, micro_batches=3)
    settings = {"nodes": 2, "on": "simulation", "network": "1gbe"}
    truth = train(job, strategy, **settings)
    receives = truth.trace.ledger()[1]["recv"].calls
    plan = FaultPlan().kill(1, at=("recv", 7 * receives // 12))  # within the second epoch
    folder = tmp_path if has_folder else None
    report = train(job, strategy, faults=plan, elastic=True, folder=folder, **settings)
    [death] = report.deaths
    assert death.node == 1
    assert 1 <= death.steps_lost - (0 if has_folder else STEPS) <= STEPS - 1
    assert set(report.waited_for) == {0, 1, 2}
    kept = truth.history[0]["seconds"] if has_folder else 0.0
    lost, step = death.seconds - kept, truth.history[-1]["seconds"] / (3 * STEPS)
    assert lost > 0.9 * death.steps_lost * step
    more = report.history[-1]["seconds"] - truth.history[-1]["seconds"] - lost
    assert -1e-9 < more < 0.5 * step  # to fill the pipeline
    assert np.array_equal(weights(report), weights(truth))


@pytest.mark.parametrize(
    ("strategy", "nodes"),
    [
        (ParameterServer(), 3),
        (BackupWorkers(backups=1), 3),
        (ElasticAveraging(variant="asynchronous"), 3),
        (Gossip(asynchronous=True), 4),
    ],
    ids=repr,
)
def test_strategies_whose_workers_need_no_other_finish_without_one_and_say_when_it_died(strategy, nodes):
    settings = {"nodes": nodes, "on": "simulation", "network": "1gbe", "on_failure": "continue"}
    plan = FaultPlan().kill(2, at=3)
    report = train(small_job(model=partial(wide, 64)), strategy, faults=plan, **settings)
    [death] = report.deaths
    [fault] = report.trace.faults
    assert (death.node, death.seconds) == (fault.rank, pytest.approx(fault.end))
    assert 0 < death.seconds < report.seconds
    assert [row["epoch"] for row in report.history] == [1, 2, 3]
    assert report.name(nodes) == (f"server {0}" if strategy.servers else f"node {nodes}")
