"""Pipelines and divided layers of the core against the workshop's."""

from functools import partial
from itertools import product

import numpy as np
import pytest

from minidl import parallel
from minidl.mini import model_parallel as core
from minidl.mini import nn as mini_nn
from minidl.mini.cluster import simulate
from minidl.mini.tensor import Tensor
from minidl.parallel import pipeline
from tests.mini.jobs import ALPHA, BETA, by_the_core, by_the_workshop, job, messages, trained_messages, weights_of
from tests.tiers import exhaustively

SCHEDULES = {"gpipe": (core.gpipe, pipeline.GPipe), "1f1b": (core.one_f_one_b, pipeline.OneFOneB)}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_the_workshops_action_by_action(name):
    ours, theirs = SCHEDULES[name]
    for stages, micro_batches in product((1, 2, 3, 4, 8), (1, 2, 5, 8, 13)):
        for stage in range(stages):
            expected = [action.short for action in theirs(stages, micro_batches).actions(stage) if action.kind != "U"]
            assert [f"{kind}{m}" for kind, m in ours(stage, stages, micro_batches)] == expected


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 3), (2, 1), (3, 7), (4, 8), (8, 5)])
def test_the_picture_shows_every_action_where_the_workshops_timeline_has_it(name, stages, micro_batches):
    ours, theirs = SCHEDULES[name]
    timeline = pipeline.simulate(theirs(stages, micro_batches))
    rows = [["  "] * int(timeline.seconds) for _ in range(stages)]
    for bar in timeline.bars:
        if bar.action.kind != "U":
            rows[bar.stage][int(bar.start) : int(bar.end)] = [bar.action.short.ljust(2)] * int(bar.end - bar.start)
    expected = [f"stage {stage}  {' '.join(row)}".rstrip() for stage, row in enumerate(rows)]
    assert core.picture(ours, stages, micro_batches).splitlines() == expected


def test_the_picture_of_1f1b_of_3_stages():
    assert core.picture(core.one_f_one_b, 3, 3).splitlines() == [
        "stage 0  F0 F1 F2             B0 B0    B1 B1    B2 B2",
        "stage 1     F0 F1       B0 B0 F2 B1 B1    B2 B2",
        "stage 2        F0 B0 B0 F1 B1 B1 F2 B2 B2",
    ]


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("stages", [1, 3, *exhaustively(2, 4)])
def test_a_pipeline_trains_with_the_workshops_weights_messages_bytes_and_seconds(name, stages):
    cuts = {3: (2, 3)}.get(stages, "flops")  # as the core cuts seven layers
    report = by_the_workshop(job(), parallel.Pipeline(stages=stages, micro_batches=5, schedule=name, cuts=cuts), stages)
    run = by_the_core(job(), partial(core.pipeline, schedule=SCHEDULES[name][0], micro_batches=5), stages)
    np.testing.assert_allclose(np.concatenate(run.results), weights_of(report), atol=1e-6, rtol=0)
    events = [event for event in report.trace.events if event.kind == "send" and event.operation == "isend"]
    formats = [event.nbytes for event in events if event.nbytes < 200]  # the workshop says once what passes a boundary
    assert len(formats) == stages - 1
    sent, nbytes = messages(run)
    assert trained_messages(report, "isend") == (sent + len(formats), nbytes + sum(formats))
    assert sent == 23 * 5 * 2 * (stages - 1)
    if stages <= 2:  # with more, part of the formats' time is hidden
        seconds = run.seconds + sum(ALPHA + size * BETA for size in formats)
        assert report.history[-1]["seconds"] == pytest.approx(seconds, abs=1e-9)


def test_1f1b_keeps_no_more_micro_batches_than_stages_follow_and_gpipe_keeps_all():
    def most_kept(schedule, stage):
        kept = np.cumsum([1 if kind == "F" else -1 for kind, _ in schedule(stage, 4, 8)])
        return kept.max()

    assert [most_kept(core.one_f_one_b, stage) for stage in range(4)] == [4, 3, 2, 1]
    assert [most_kept(core.gpipe, stage) for stage in range(4)] == [8, 8, 8, 8]


@pytest.mark.parametrize("nodes", [1, 3, *exhaustively(2, 4, 8)])
def test_divided_layers_train_as_the_workshops_do_with_as_many_all_reduces(nodes):
    report = by_the_workshop(job(), parallel.Hybrid(tp=nodes, pp=1, micro_batches=1), nodes)
    run = by_the_core(job(), core.tensor_parallel, nodes)
    for weights in run.results:
        np.testing.assert_allclose(weights[-10:], weights_of(report)[-10:], atol=1e-6, rtol=0)
    all_reduces = 23 * 3  # a step: two pairs forward, one backward
    assert len(run.messages) == all_reduces * 2 * (nodes - 1) * nodes
    calls = {event.call for event in report.trace.events if event.label in ("F0", "B0") and event.kind == "receive"}
    assert nodes == 1 or len(calls) == all_reduces


@pytest.mark.parametrize("nodes", [2, 3])
def test_a_divided_pair_has_the_values_and_gradients_of_the_whole(nodes):
    rng = np.random.default_rng(9)
    whole, x, g = mini_nn.mlp(7, 11, 5, rng=rng), rng.normal(size=(4, 7)), rng.normal(size=(4, 5))
    whole.set_weights(whole.weights().astype(np.float64))
    inputs = Tensor(x)
    result = whole(inputs * 1.0)
    result.backward(g)

    def program(comm):
        mine = Tensor(x)
        pair = core.CutPair(comm, whole.layers[0], whole.layers[2])
        pair.set_weights(pair.weights())
        shared = pair(mine * 1.0)
        shared.backward(g)
        return shared.data, mine.grad, [parameter.grad for parameter in pair.parameters()]

    results = simulate(program, nodes, ALPHA, BETA).results
    first, first_bias, second, second_bias = (parameter.grad for parameter in whole.parameters())
    for value, gradient, (*_, bias) in results:
        np.testing.assert_allclose(value, result.data, rtol=1e-12)
        np.testing.assert_allclose(gradient, inputs.grad, rtol=1e-12)
        np.testing.assert_allclose(bias, second_bias, rtol=1e-12)
    shards = zip(*(gradients for _, _, gradients in results), strict=True)
    for shard, expected, axis in zip(shards, (first, first_bias, second), (0, 0, 1), strict=False):
        np.testing.assert_allclose(np.concatenate(shard, axis), expected, rtol=1e-12)
