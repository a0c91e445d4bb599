"""The best cuts are those of brute force, and in a run every chunk takes its counted costs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise
from math import fsum, inf

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minidl import cluster, nn, optim, parallel
from minidl.data import Dataset, Splits
from minidl.parallel import pipeline

NUMBERS = st.one_of(
    st.floats(0, 1e300, allow_subnormal=True),
    st.sampled_from([0, 1, 2, 3, 0.1, 0.2, 0.3, 1e-300, 1e16]),
    st.integers(0, 10**12),
)


def least(costs: list[float], chunks: int) -> float:
    """The smallest bottleneck of all cuts."""
    return min(
        max(fsum(costs[start:end]) for start, end in pairwise((0, *cuts, len(costs))))
        for cuts in combinations(range(1, len(costs)), chunks - 1)
    )


# ---- the best cuts ----


@given(st.lists(NUMBERS, min_size=1, max_size=10), st.integers(1, 10))
@settings(max_examples=100)
@example([0] * 9, 5)
@example([1e16, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1e16], 3)  # sums of floats would lose the ones
def test_no_other_cuts_have_a_smaller_bottleneck(costs: list[float], chunks: int):
    chunks = min(chunks, len(costs))
    cuts = pipeline.balanced_cuts(costs, chunks)
    assert pipeline.bottleneck(costs, cuts) == least(costs, chunks)
    assert len(cuts) == chunks - 1
    assert all(start < end for start, end in pairwise((0, *cuts, len(costs))))


@given(st.lists(st.integers(0, 3), min_size=3, max_size=9), st.data())
@settings(max_examples=50)
def test_of_several_best_cuts_the_last_is_latest_and_the_units_before_are_cut_alike(costs, data):
    chunks = data.draw(st.integers(2, len(costs)))
    *others, last = pipeline.balanced_cuts(costs, chunks)
    assert others == pipeline.balanced_cuts(costs[:last], chunks - 1)
    best = least(costs, chunks)
    assert all(
        max(least(costs[:later], chunks - 1), sum(costs[later:])) > best for later in range(last + 1, len(costs))
    )


EMPTY = r"bottleneck: cuts must be . rising numbers? from 1 to 3, .* leaves a chunk empty; .*balanced_cuts finds"
CHOICES = "Pipeline: cuts must be 'flops' or 'seconds', got "


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pipeline.balanced_cuts([1, 2], 3), "2 stages of the model cannot fill 3 chunks, and an empty chunk"),
        (lambda: pipeline.balanced_cuts([1, 2], 0), "balanced_cuts: chunks must be at least 1, got 0"),
        (lambda: pipeline.balanced_cuts([1, -2], 1), "balanced_cuts: costs must be at least 0, got -2"),
        (lambda: pipeline.balanced_cuts([1, inf], 1), "balanced_cuts: costs must be finite and at least 0, got inf"),
        (lambda: pipeline.bottleneck([1, 1, 1, 1], [4]), EMPTY),
        (lambda: pipeline.bottleneck([1, 1, 1, 1], [2, 2]), EMPTY),
        (lambda: parallel.Pipeline(cuts="time"), CHOICES + r"'time': or give the cuts, such as \(2, 4\)"),
        (lambda: parallel.Pipeline(cuts=3), CHOICES + "3 of type int: or give the cuts"),
    ],
)
def test_costs_and_cuts_that_do_not_fit_are_refused_with_advice(call, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        call()


# ---- of a real model ----

EVEN = [2, 4, 6]

WIDTHS = [16, 8, 64, 64, 64, 64, 8, 8, 4]
FLOPS_PER_S = 1e9


def uneven() -> nn.Module:
    return nn.models.MLP(*WIDTHS)


def samples() -> Splits:
    rng = np.random.default_rng(0)
    data = Dataset(rng.normal(size=(256, WIDTHS[0])).astype(np.float32), rng.integers(0, WIDTHS[-1], 256))
    return Splits(data, data)


JOB = parallel.Job(uneven, samples, partial(optim.SGD, lr=0.1), batch_size=128, epochs=1)
SIMULATION = cluster.Simulation(node=cluster.Node(FLOPS_PER_S, inf))
SAMPLES = 4  # of a micro-batch


def ran(
    cuts: list[int] | str, kind: str, micro_batches: int = 32, replicas: int = 1
) -> tuple[pipeline.Timeline, parallel.Pipeline]:
    """The first minibatch of a run on simulated nodes, and the strategy with its cuts."""
    strategy = parallel.Pipeline(len(EVEN) + 1, micro_batches, kind, cuts=cuts)
    job = replace(JOB, batch_size=micro_batches * SAMPLES * replicas)
    report = parallel.train(job, strategy, (len(EVEN) + 1) * replicas, on=SIMULATION)
    return pipeline.executed(report.trace, report.strategy.made_schedule()), report.strategy


def counted() -> pipeline.Costs:
    return pipeline.costs_of(uneven(), samples().train.x[:SAMPLES])


@pytest.mark.parametrize("kind", ["gpipe", "zb-h1"])
def test_in_a_run_each_action_takes_the_counted_costs_of_its_chunk(kind: str):
    """From the second micro-batch on a parameter's gradient is added to the one before: a flop for each number."""
    costs = counted()
    run, _ = ran(EVEN, kind, 8)
    for stage, (start, end) in enumerate(pairwise((0, *EVEN))):  # the last stage computes the loss, too
        rows = costs.rows[start:end]
        for m in range(8):
            bars = [bar for bar in run.of(stage) if bar.action.micro_batch == m and bar.action.kind != "U"]
            forward, *backward = [(bar.end - bar.start) * FLOPS_PER_S for bar in bars]
            assert forward == pytest.approx(sum(row.forward for row in rows))
            added = sum(row.parameters for row in rows) / 4 if m else 0
            assert sum(backward) == pytest.approx(sum(row.backward for row in rows) + added)


# ---- the setting of a strategy ----


def test_the_default_is_the_cut_by_flops():
    _, strategy = ran("flops", "1f1b", 32)
    assert parallel.Pipeline().cuts == "flops"
    assert strategy.cuts == pipeline.balanced_cuts(counted(), 4)


def test_seconds_are_measured_once_before_the_run(monkeypatch: pytest.MonkeyPatch):
    """For a micro-batch, of as many replicas as there are nodes for."""
    replicas = 2
    measured = []

    def measure(units, x, unit):
        measured.append((unit, x.shape, all(model.training for model, _ in units)))
        return pipeline.Costs(tuple(pipeline.UnitCost("", cost, 0, 0, 0, 0) for cost in (8, 1, 1, 1, 1, 1, 1, 1)), unit)

    monkeypatch.setattr("minidl.parallel.pipeline.pipeline.costs_of_units", measure)
    _, strategy = ran("seconds", "1f1b", 32 // replicas, replicas)
    assert measured == [("seconds", (SAMPLES, WIDTHS[0]), True)]
    assert strategy.cuts == pipeline.balanced_cuts([8, 1, 1, 1, 1, 1, 1, 1], 4)


def test_a_strategy_whose_cuts_are_not_chosen_yet_says_so():
    with pytest.raises(
        ValueError, match=r"cuts='flops' are chosen for a job: call prepared\(job, nodes\), as `train` does"
    ):
        parallel.Pipeline().chunks(uneven())
    assert len(parallel.Pipeline(4).prepared(JOB, 4).chunks(uneven())) == 4
