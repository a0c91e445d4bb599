"""parallel.compare: the runs are those of parallel.train, tables and files hold them, and bad arguments are refused."""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from minidl import cluster, data, nn, optim, parallel

pytestmark = pytest.mark.timeout(300)


def job(**changes: Any) -> parallel.Job:
    settings: dict[str, Any] = {
        "model": partial(nn.models.MLP, 2, 16, 3),
        "data": partial(data.spirals, n=100),
        "optimizer": partial(optim.SGD, lr=0.1),
        "batch_size": 16,
        "epochs": 2,
    }
    return parallel.Job(**settings | changes)


BOTH = {"sync": parallel.Synchronous(), "server": parallel.ParameterServer()}


def test_every_run_is_that_of_train_with_an_asynchronous_gradient_of_a_nodes_share() -> None:
    comparison = parallel.compare(job(), BOTH, nodes=2, networks=["1gbe", "none"], seeds=2)
    assert [(run.network, run.entrant.name, run.seed) for run in comparison.runs] == [
        (network, name, seed) for network in ("1gbe", "none") for name in BOTH for seed in (0, 1)
    ]
    engine = cluster.Simulation(node=cluster.Node(flops_per_s=1e9, bytes_per_s=1e10))
    alone = parallel.train(job(seed=1), BOTH["sync"], 2, engine, "1gbe")
    assert comparison.runs[1].history == alone.history
    served = parallel.train(job(batch_size=8), BOTH["server"], 2, engine, "1gbe")
    assert comparison.runs[2].history == served.history
    assert comparison.runs[2].staleness == served.staleness


def test_a_strategy_may_have_a_job_of_its_own_and_serial_trains_on_one_node() -> None:
    fast = job(optimizer=partial(optim.SGD, lr=0.5, momentum=0.5))
    comparison = parallel.compare(
        job(), {"slow": parallel.Synchronous(), "fast": (parallel.Synchronous(), fast), "one": parallel.Serial()}, 2,
        networks={"mine": cluster.Network(alpha=1e-3, beta=1e-9)},
    )  # fmt: skip
    assert [(row["lr"], row["momentum"], row["nodes"]) for row in comparison.rows()] == [
        (0.1, 0, 2), (0.5, 0.5, 2), (0.1, 0, 1),
    ]  # fmt: skip
    assert {row["network"] for row in comparison.rows()} == {"mine"}


def test_no_two_runs_of_an_ensemble_share_a_member() -> None:
    strategies = {"ensemble": parallel.Ensemble(), "sync": parallel.Synchronous()}
    comparison = parallel.compare(job(epochs=1, batch_size=15), strategies, nodes=3, networks=["1gbe"], seeds=3)
    assert [run.seed for run in comparison.runs] == [0, 3, 6, 0, 1, 2]


def test_a_batch_schedule_is_shared_too() -> None:
    growing = job(batch_schedule=lambda epoch: 16 << epoch)
    run = parallel.compare(growing, {"server": parallel.ParameterServer()}, 2, networks=["none"]).runs[0]
    assert [run.entrant.job.batch_size_of(epoch) for epoch in (0, 1)] == [8, 16]


def test_the_files_hold_runs_epochs_means_and_the_picture_in_each_format(tmp_path: Path) -> None:
    comparison = parallel.compare(job(), BOTH, 2, networks=["none"], seeds=3, folder=tmp_path, formats=["svg", "png"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "history.csv", "loss.png", "loss.svg", "runs.csv", "summary.csv", "trade_off.png", "trade_off.svg",
    ]  # fmt: skip
    with (tmp_path / "summary.csv").open() as file:
        means = [float(row["accuracy_mean"]) for row in csv.DictReader(file)]
    assert means == [row["accuracy_mean"] for row in comparison.summary()]
    assert len((tmp_path / "history.csv").read_text().splitlines()) == 1 + 2 * 3 * 2


def test_printed_it_has_a_table_for_each_network_with_a_star_at_the_first() -> None:
    comparison = parallel.compare(job(), BOTH, 2, networks=["1gbe", "none"], target=0.1)
    text = str(comparison)
    assert text.count("strategy") == 2
    assert text.count(" * ") == 2
    assert "none: simulated; *: the first at the target" in text


def test_on_processes_times_are_measured() -> None:
    comparison = parallel.compare(job(epochs=1), {"sync": parallel.Synchronous()}, 2, on="processes")
    assert (comparison.source, comparison.runs[0].network) == ("measured", "none")
    assert comparison.runs[0].seconds > 0


def test_progress_is_told_of_every_run_and_its_end() -> None:
    said: list[tuple[str, bool]] = []
    parallel.compare(
        job(), BOTH, 2, networks=["none"], progress=lambda run, now: said.append((run.entrant.name, now is None))
    )
    assert [name for name, is_end in said if is_end] == list(BOTH)
    assert said[0] == ("sync", False)


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"strategies": {}}, ValueError, "needs strategies by name"),
        ({"strategies": {"a": (parallel.Synchronous(), 3)}}, TypeError, "a: a pair .* expected"),
        ({"networks": "1gbe"}, ValueError, "must be a list of names"),
        ({"networks": ["2gbe"]}, ValueError, "did you mean '1gbe'"),
        (
            {"networks": {"rack": cluster.Network.tree(1, 2, (1e-6, 1e9), (1e-6, 1e9))}},
            ValueError,
            "3 nodes have no place",
        ),
        ({"formats": ["gif"]}, ValueError, "formats must be 'png', 'svg' or 'pdf', got 'gif'"),
        ({"target": 95}, ValueError, "target must be above 0 and at most 1"),
        ({"slow": {2: 3.0}}, ValueError, "no node 2"),
        ({"slow": {1: 0.5}}, ValueError, "slow"),
        ({"nodes": 17}, ValueError, "sync: .*17"),
        ({"on": "mars"}, ValueError, "on must be"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_runs(
    arguments: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a run has begun")

    given: dict[str, Any] = {"job": job(), "strategies": BOTH, "nodes": 2, "networks": ["none"], "progress": never}
    with pytest.raises(error, match=sentence):
        parallel.compare(**given | arguments)
