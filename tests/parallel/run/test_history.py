"""The rows of a history: one dict per epoch, the same columns wherever they were made."""

from __future__ import annotations

import csv
import itertools
import json
import math
import threading
from dataclasses import replace
from functools import partial

import pytest

from minidl import cluster, data, nn, parallel
from minidl.parallel.run import session
from minidl.parallel.run.history import HistoryRow
from tests.parallel.jobs import blobs, small_job
from tests.tiers import exhaustively

COLUMNS = list(HistoryRow.__annotations__)


@pytest.mark.parametrize(
    "strategy", [parallel.Synchronous(), *exhaustively(parallel.LocalSGD(2), parallel.ParameterServer())]
)
def test_rows_are_dicts_with_the_columns_of_history_row_in_report_progress_checkpoint_and_csv(strategy, tmp_path):
    reported: list[parallel.Progress] = []
    report = parallel.train(small_job(epochs=2), strategy, 2, on="simulation", progress=reported.append)
    assert [list(row) for row in report.history] == [COLUMNS, COLUMNS]
    assert all(type(row) is dict for row in report.history)
    assert [one.row for one in reported if one.row is not None] == report.history == report.checkpoint.history
    assert json.loads(json.dumps(report.history)) == report.history
    report.save(tmp_path)
    with (tmp_path / "metrics.csv").open(newline="") as file:
        assert [list(row) for row in csv.DictReader(file)] == [COLUMNS, COLUMNS]
    assert parallel.Checkpoint.load(tmp_path / "checkpoint.npz").history == report.history


@pytest.mark.parametrize("strategy", [parallel.OneShotAveraging(), parallel.ParameterServer(), parallel.Ensemble()])
def test_progress_estimates_the_rate_of_all_nodes_where_each_has_its_own_minibatches(strategy, monkeypatch):
    monkeypatch.setattr(session, "PROGRESS_SECONDS", 0.0)
    reported: list[parallel.Progress] = []
    slow = cluster.Simulation("infiniband", node=cluster.Node(flops_per_s=1e4, bytes_per_s=1e10))
    report = parallel.train(small_job(epochs=1), strategy, 3, slow, progress=reported.append)
    rates = [one.samples_per_second for one in reported if one.row is None]
    assert rates == pytest.approx([report.history[-1]["samples_per_second"]] * len(rates), rel=0.3)
    assert rates


@pytest.mark.parametrize("strategy", [parallel.Synchronous(), parallel.ParameterServer()])
def test_steps_are_reported_by_real_time_also_where_the_clock_of_the_run_stands_still(strategy, monkeypatch):
    """A simulation without costs; by real time, each step takes 0.06 seconds, and a message is due every 0.1."""
    monkeypatch.setattr(session, "monotonic", itertools.count(10.0, 0.06).__next__)
    reported: list[parallel.Progress] = []
    parallel.train(small_job(epochs=2), strategy, 1, on="simulation", progress=reported.append)
    steps = [(one.epoch, one.step) for one in reported if one.row is None]
    assert {epoch for epoch, _ in steps} == {1, 2}
    assert len(steps) == 4  # of 8
    assert all(0 < one.step <= one.steps for one in reported)


@pytest.mark.parametrize("strategy", [parallel.Synchronous(), parallel.ParameterServer()])
def test_an_empty_test_set_has_the_loss_and_accuracy_nan(strategy):
    splits = blobs()
    untested = replace(splits, test=data.Dataset(splits.test.x[:0], splits.test.y[:0]))
    report = parallel.train(small_job(data=untested, epochs=1), strategy, 2, on="simulation")
    assert math.isnan(report.history[0]["test_loss"])
    assert math.isnan(report.history[0]["accuracy"])
    assert report.history[0]["loss"] > 0


def test_a_row_that_is_made_after_the_run_is_reported_before_the_next_epoch_is_evaluated(tmp_path):
    passes = tmp_path / "passes"
    passes.touch()

    class Noted(nn.Linear):  # of which ranks have copies
        def forward(self, x):
            with passes.open("a") as file:
                file.write("x" * (not self.training))
            return super().forward(x)

    counts: list[int] = []
    job = small_job(model=lambda: nn.Sequential(Noted(5, 3)), data=partial(blobs, dtype="float32"), epochs=3)
    count = lambda now: counts.extend([passes.stat().st_size] * (now.row is not None))  # noqa: E731
    parallel.train(job, parallel.ParameterServer(), 2, on="simulation", progress=count)
    assert len(counts) == 3
    assert counts == sorted(set(counts))


def test_rows_that_are_made_after_a_run_with_a_deadline_are_reported_too():
    reported: list[HistoryRow | None] = []
    stays_here = threading.Lock()  # in the listener: it cannot be copied to another process

    def hear(now: parallel.Progress) -> None:
        with stays_here:
            reported.append(now.row)

    report = parallel.train(
        small_job(epochs=3), parallel.ParameterServer(), 2, on="simulation", deadline=300.0,
        progress=hear,
    )  # fmt: skip
    assert [row for row in reported if row is not None] == report.history
