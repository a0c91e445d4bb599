"""`minidl compare`: every strategy on every network, tables, CSV and the picture; bad input in one sentence."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from minidl import cluster, data, parallel
from minidl.atomic_files import write_csv
from minidl.cli import engines, run_folder
from minidl.cli.compare.run import ComparisonProgress, Settings, entered, title_of
from minidl.cli.shared_options import spread
from minidl.cluster.trace.recording import Shares
from minidl.parallel import ComparedRun
from minidl.parallel.comparison.entrant import Entrant
from minidl.parallel.comparison.over_seeds import OverSeeds
from minidl.parallel.measures.report_card import problems
from tests.cli.command import minidl, refused, refuses, succeeds
from tests.plots.player.decoded import meta_of

pytestmark = pytest.mark.timeout(300)

SMALL = ("--model", "mlp", "--data", "spirals", "--epochs", 2, "--nodes", 4, "--batch-size", 32)


@pytest.fixture(autouse=True)
def _few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(data._DATA_SETS, "spirals", partial(data.spirals, n=300))


def rows(name: str, folder: str = "out") -> list[dict[str, str]]:
    with Path(folder, name).open(newline="") as file:
        return list(csv.DictReader(file))


def compare(*arguments: object, folder: str = "out") -> list[dict[str, str]]:
    """The rows of runs.csv that the command, called in this process, leaves."""
    succeeds("compare", *SMALL, "--out", folder, *arguments)
    return rows("runs.csv", folder)


SETTINGS = Settings(
    "mlp", "spirals", nodes=4, batch_size=32, epochs=2, lr=0.2, lr_decay=1.0, seed=0, kernels="numpy", momentum=0.0,
    node=engines.simulated_node(),
)  # fmt: skip


def entrant(text: str, settings: Settings) -> Entrant:
    return entered(text, settings)[1]


def outcome(text: str, network: str = "none", **changes: Any) -> ComparedRun:
    """What comes of one strategy on one network."""
    settings = replace(SETTINGS, **changes)
    (strategy, job), _ = entered(text, settings)
    engine = cluster.Simulation(node=settings.node, trace="ledger")
    (result,) = parallel.compare(job, {text: strategy}, settings.nodes, engine, [network], slow=settings.slow).runs
    return result


def test_every_strategy_runs_on_every_network_and_the_numbers_are_those_of_train():
    runs = compare("--strategies", "serial", "synchronous:algorithm=ring", "--networks", "1gbe", "nvlink")
    assert [(row["network"], row["strategy"], row["nodes"]) for row in runs] == [
        ("1gbe", "serial", "1"),
        ("1gbe", "synchronous:algorithm=ring", "4"),
        ("nvlink", "serial", "1"),
        ("nvlink", "synchronous:algorithm=ring", "4"),
    ]
    job = entrant("synchronous", SETTINGS).job
    engine = cluster.Simulation(node=engines.simulated_node())
    report = parallel.train(job, parallel.Synchronous(algorithm="ring"), 4, engine, "1gbe")
    last = report.history[-1]
    assert float(runs[1]["accuracy"]) == report.accuracy
    for column, name in (("seconds", "seconds"), ("test_loss", "test_loss"), ("training_loss", "loss")):
        assert float(runs[1][column]) == pytest.approx(last[name], rel=1e-12)
    assert (int(runs[1]["steps"]), int(runs[1]["samples"])) == (last["steps"], last["samples"])
    history = [row for row in rows("history.csv") if row["network"] == "1gbe" and row["strategy"] != "serial"]
    assert [float(row["test_loss"]) for row in history] == [row["test_loss"] for row in report.history]


def test_html_plays_the_strategies_on_the_first_network_above_each_other():
    compare(
        "--strategies", "synchronous", "local_sgd:period=8", "--networks", "1gbe", "nvlink", "--seeds", "2", "--html"
    )
    page = Path("out/run.html").read_text(encoding="utf-8")
    assert [(run["title"], run["ranks"]) for run in meta_of(page)["runs"]] == [
        ("synchronous", 4),
        ("local_sgd:period=8", 4),
    ]
    assert "(1gbe)</h1>" in page


def test_a_row_says_what_was_trained_and_where_so_that_rows_of_two_comparisons_can_be_distinguished():
    words = ("--slow", "0:2", "--lr-decay", 0.5, "--jitter", 0.3)
    (row,) = compare("--strategies", "serial", "--networks", "none", *words)
    names = ("model", "data", "on", "simulated_node", "slow", "lr_decay", "kernels")
    node = "nodes of 1e+09 FLOP/s and 1e+10 bytes/s, jitter 0.3"
    assert [row[name] for name in names] == ["mlp", "spirals", "simulation", node, "0:2", "0.5", "numpy"]
    assert float(row["seconds"]) != pytest.approx(outcome("serial", slow={0: 2.0}, lr_decay=0.5).seconds)


def test_a_slow_node_delays_nodes_that_wait_for_it_and_computes_longer_in_proportion():
    full, held_up = outcome("synchronous"), outcome("synchronous", slow={1: 3.0})
    assert held_up.seconds == pytest.approx(3 * full.seconds, rel=0.01)  # node 0 has a sample more in a ragged step
    runs = compare("--strategies", "serial", "synchronous", "--networks", "none", "--slow", "1:3")
    assert float(runs[1]["seconds"]) == pytest.approx(held_up.seconds)
    half = engines.simulated_node(5e8, 5e9)
    assert outcome("serial", node=half).seconds == pytest.approx(2 * float(runs[0]["seconds"]))


def test_lr_and_momentum_of_a_strategy_override_those_of_the_command():
    own = entrant("synchronous:lr=0.5,momentum=0.9", SETTINGS)
    assert (own.lr, own.momentum) == (0.5, 0.9)
    assert outcome("synchronous:lr=0.2").history == outcome("synchronous").history
    assert outcome("synchronous:lr=0.4").history == outcome("synchronous", lr=0.4).history
    assert outcome("synchronous:momentum=0.5").history == outcome("synchronous", momentum=0.5).history


def test_a_run_that_diverges_is_a_row_that_says_so_and_the_others_go_on():
    out = succeeds("compare", *SMALL, "--strategies", "synchronous:lr=1e30", "synchronous", "--networks", "none",
                   "--out", "out")  # fmt: skip
    lost, kept = rows("runs.csv")
    assert re.fullmatch(r"diverged in epoch \d", lost["ended"])
    assert (lost["epochs"], lost["bytes_per_node"], kept["ended"]) == ("0", "", "")
    assert float(kept["accuracy"]) > 0.3
    assert "1/2 none, synchronous:lr=1e30: diverged in epoch 1" in out
    compare("--strategies", "synchronous:lr=1e30", "--networks", "none", folder="alone")
    assert rows("history.csv", "alone") == []
    assert Path("alone/loss.png").exists()


def test_every_strategy_is_run_with_every_seed_as_if_by_itself():
    runs = compare("--strategies", "serial", "synchronous", "--networks", "none", "--seed", 3, "--seeds", 3)
    assert [(row["strategy"], row["seed"]) for row in runs] == [
        (strategy, seed) for strategy in ("serial", "synchronous") for seed in ("3", "4", "5")
    ]
    accuracies = [float(row["accuracy"]) for row in runs[3:]]
    assert accuracies == [outcome("synchronous", seed=seed).accuracy for seed in (3, 4, 5)]
    assert problems(runs) == []  # its own table is a sound one
    _, summary = rows("summary.csv")
    assert float(summary["accuracy_mean"]) == pytest.approx(mean(accuracies))
    assert float(summary["accuracy_std"]) == pytest.approx(stdev(accuracies))


def run_of(seed: int, accuracies: list[float], ended: str = "") -> ComparedRun:
    """A made-up run: an epoch a second, and in epoch i a test loss of (seed + 1) / i."""
    one = entrant("serial", replace(SETTINGS, seed=seed, epochs=3))
    history = [
        {"seconds": float(i), "samples": 10 * i, "steps": i, "accuracy": accuracy, "test_loss": (seed + 1) / i}
        for i, accuracy in enumerate(accuracies, 1)
    ]
    return ComparedRun(
        one, "none", history, ended, [0] if not ended else [], Shares(1.0, 0.0, 0.0) if not ended else None
    )


def test_the_table_has_means_and_standard_deviations_over_the_seeds():
    group = OverSeeds([run_of(0, [0.8, 0.9, 0.90]), run_of(1, [0.9, 0.9, 0.94]), run_of(2, [0.9, 0.9, 0.95])])
    name, accuracy, steps, seconds, to_target, *_ = group.cells(0.9)
    assert (name, steps, seconds) == ("serial", "3", "3 s")
    assert accuracy == "93.00%\n± 2.65\n90.00 to 95.00"  # the square root of (9 + 1 + 4) / 2
    assert to_target == "1 s\n1 s to 2 s"  # the median: the mean would be 4 / 3


def test_the_time_to_the_target_is_the_median_of_all_seeds_those_that_miss_it_included():
    group = OverSeeds([run_of(0, [0.8, 0.9, 0.90]), run_of(1, [0.9, 0.9, 0.94]), run_of(2, [0.9, 0.9, 0.95])])
    assert [group.cells(target)[4] for target in (0.94, 0.96)] == ["3 s\n3 s to > 3 s\n2 of 3", "only 95.00%"]
    assert group.time_to(0.95) == (math.inf, 3.0, math.inf)  # 1 of 3; the mean of those that reach it would be 3
    assert group.summary(0.95)["seconds_to_target_median"] is None
    assert group.cells(0.95)[4] == "> 3 s\n3 s to > 3 s\n1 of 3"
    lost = run_of(3, [0.95], "diverged in epoch 2")  # it would not have reached the target later, either
    assert OverSeeds([*group.runs, lost]).time_to(0.94) == (math.inf, 3.0, math.inf)
    assert [run_of(0, [0.5, 0.9, 0.8]).seconds_to(target) for target in (0.5, 0.7, 0.9, 0.95)] == [1, 2, 2, None]


def compared(*runs: ComparedRun, asked: float | None = None) -> parallel.Comparison:
    return parallel.Comparison("", "simulated", range(2), asked, runs=list(runs))


def test_unless_it_is_asked_for_the_target_is_the_highest_percent_that_every_run_reaches_that_did_not_diverge():
    lost = run_of(2, [0.21], "diverged in epoch 2")
    one = compared(run_of(0, [0.8, 0.947, 0.93]), run_of(1, [0.9, 0.936, 0.951]), lost)
    assert one.target == 0.94
    (table,) = one.tables()
    assert (table.columns[4], table.rows[0][4]) == ("to 0.94", "3 s\n2 s to > 3 s\n2 of 3")
    assert one.legend.startswith("to 0.94: time to the test accuracy that all runs reach; sent")
    assert compared(lost).target is None
    assert all(compared(run_of(0, [percent / 100] * 3)).target == percent / 100 for percent in range(1, 100))


def test_a_row_that_does_not_reach_the_target_has_its_best_accuracy_and_the_legend_says_so():
    one = compared(run_of(0, [0.8, 0.9472, 0.93]), asked=0.95)
    (table,) = one.tables()
    assert (table.rows[0][4], table.first) == ("only 94.72%", None)
    assert "only: the highest test accuracy of a strategy that does not reach it" in one.legend
    assert "only:" not in compared(run_of(0, [0.8, 0.9472, 0.93]), asked=0.91).legend


def test_without_accuracies_there_is_no_target():
    """Targets may be no classes."""
    one = compared(run_of(0, [math.nan] * 3))
    (table,) = one.tables()
    assert (one.target, table.columns[4], table.rows[0][4]) == (None, "to target", "-")
    assert "only:" not in one.legend
    assert [one.rows()[0][name] for name in ("target", "seconds_to_target")] == [None, None]


def test_a_title_is_above_the_tables_and_the_picture():
    words = ("--strategies", "serial", "--networks", "none", "--title", "What [x] costs: $5 or $6", "--out", "out")
    lines = succeeds("compare", *SMALL, *words).splitlines()
    assert lines[0] == "What [x] costs: $5 or $6"
    assert lines[1].startswith("mlp on spirals, 4 nodes")
    assert "What [x] costs: $5 or $6, none: simulated" in [line.strip() for line in lines]


def test_seeds_that_diverge_are_counted_and_not_averaged():
    lost = run_of(2, [0.2], "diverged in epoch 2")
    group = OverSeeds([run_of(0, [0.8, 0.9, 0.90]), run_of(1, [0.9, 0.9, 0.94]), lost])
    assert group.cells(0.8)[:2] == ["serial\n1 of 3 seeds diverged", "92.00%\n± 2.83\n90.00 to 94.00"]
    assert group.cells(0.8)[4] == "1 s\n1 s to > 3 s\n2 of 3"
    assert OverSeeds([lost, lost]).cells(0.8)[:2] == ["serial: 2 of 2 seeds diverged", "-"]
    assert OverSeeds([lost]).cells(0.8)[0] == "serial: diverged in epoch 2"


def test_a_strategy_is_the_first_at_the_target_only_if_the_intervals_do_not_overlap():
    slow, fast = ([run_of(seed, [0.8] * late + [0.9] * (4 - late)) for seed in range(3)] for late in (2, 1))
    for runs, first in (((slow, fast), 1), ((slow, [*fast[:2], slow[2]]), None), ((slow[:1], fast[:1]), 1)):
        named = [[replace(run, entrant=replace(run.entrant, name=name)) for run in one]
                 for name, one in zip("ab", runs, strict=True)]  # fmt: skip
        one = parallel.Comparison("", "simulated", range(len(runs[0])), 0.9, runs=[*named[0], *named[1]])
        assert next(one.tables()).first == first


def test_the_trade_off_has_a_point_for_each_run_and_the_front_of_the_means_that_none_beats():
    one = compared(run_of(0, [0.8, 0.9]), run_of(1, [0.95]), run_of(2, [0.1], "diverged in epoch 2"))
    points, front = one.draw_trade_off().axes[0].get_lines()
    assert [list(line.get_ydata()) for line in (points, front)] == [[0.9, 0.95], [pytest.approx(0.925)]]
    assert list(front.get_xdata()) == [1.5]
    assert one.rows()[0]["learning_per_second"] == 0.5  # the test loss falls from 1 to 1 / 2 in a second


def test_the_band_of_the_picture_is_a_standard_deviation_of_the_logarithms():
    line = OverSeeds([run_of(0, [0.9] * 3), run_of(3, [0.9] * 3)]).line()  # losses 1 / i and 4 / i
    assert line.loss == pytest.approx([2.0, 1.0, 2 / 3])
    assert line.band is not None
    factor = 2**2**0.5  # the logarithms are log 2 on either side: their standard deviation is 2^0.5 log 2
    assert line.band[0] == pytest.approx([2 / factor, 1 / factor, 2 / 3 / factor])
    assert line.band[1] == pytest.approx([2 * factor, factor, 2 / 3 * factor])
    assert (list(line.seconds), list(line.samples)) == ([1, 2, 3], [10, 20, 30])
    assert OverSeeds([run_of(0, [0.9] * 3)]).line().band is None


def test_title_lines_and_caption_name_the_seeds():
    out = succeeds("compare", *SMALL, "--strategies", "synchronous", "synchronous:lr=1e30", "--networks", "1gbe",
                   "--target", "0.4", "--seeds", 2, "--out", "out")  # fmt: skip
    lines = out.splitlines()
    assert lines[0] == (
        "mlp on spirals, 4 nodes, minibatch 32, 2 epochs, learning rate 0.2 unless lr= is given, seeds 0 to 1"
    )
    assert lines[3].startswith("  2/4 1gbe, synchronous, seed 1: ")
    text = " ".join(out.split())
    assert "synchronous:lr=1e30: 2 of 2 seeds diverged" in text
    assert "±: standard deviation over the seeds (n - 1)" in text


@pytest.mark.usefixtures("pictures")
def test_the_legend_says_that_compressing_takes_no_time_unless_coding_time_charges_it():
    free = "compressing takes no simulated time"
    for compressor, is_free in {
        "top_k(0.1)": True,
        "coding_time(top_k(0.1),1e-8,1e-8)": False,
        "ef(coding_time(sign,1e-8))": False,
        "none": False,
    }.items():
        text = f"synchronous:compressor={compressor}"
        (strategy, job), _ = entered(text, replace(SETTINGS, epochs=1, batch_size=100))
        comparison = parallel.compare(job, {text: strategy}, 2, networks=["none"])
        assert (free in comparison.legend) == is_free, compressor
        assert not is_free or free in comparison.draw().get_suptitle()


def test_a_minibatch_is_shared_by_replicas_not_by_nodes():
    assert entrant("hybrid:pp=2,tp=2,micro_batches=2", replace(SETTINGS, batch_size=2)).job.batch_size == 2
    with pytest.raises(ValueError, match="a minibatch of 2 samples cannot be shared by 4 nodes"):
        entrant("synchronous", replace(SETTINGS, batch_size=2))


def test_the_title_has_the_rates_that_were_used():
    for texts, changes, rates in (
        (("synchronous:lr=1.6", "gossip:lr=1.6"), {}, "learning rate 1.6, seed 0\n"),
        (
            ("serial", "gossip"),
            {"momentum": 0.5, "lr_decay": 0.9},
            "learning rate 0.2 (x 0.9 per epoch), momentum 0.5, s",
        ),
        (
            ("serial", "gossip:lr=1.6,momentum=0.5", "synchronous"),
            {"lr_decay": 0.9},
            "learning rate 0.2 unless lr= is given (x 0.9 per epoch), momentum 0 unless momentum= is given, seed 0\n",
        ),
        (("serial:lr=1", "gossip:lr=2"), {}, "learning rate as given by lr=, seed 0\n"),
    ):
        settings = replace(SETTINGS, **changes)
        assert f", 2 epochs, {rates}" in title_of(settings, [entrant(text, settings) for text in texts])


def test_processes_are_measured():
    words = (*SMALL, "--nodes", 2, "--strategies", "synchronous", "local_sgd:period=2", "--on", "processes")
    assert "none: measured" in succeeds("compare", *words, "--out", "out")
    for row in rows("runs.csv"):
        assert row["network"] == "none"
        assert min(float(row["seconds"]), float(row["bytes_per_node"])) > 0


@pytest.mark.usefixtures("pictures")
def test_without_a_terminal_compare_prints_a_line_per_run_and_a_table_per_network():
    out = succeeds("compare", *SMALL, "--strategies", "synchronous", "gossip", "--networks", "1gbe,10gbe",
                   "--target", "0.4", "--out", "out")  # fmt: skip
    lines = out.splitlines()
    assert not {"\x1b", "\r"} & set(out)
    assert lines[0] == "mlp on spirals, 4 nodes, minibatch 32, 2 epochs, learning rate 0.2, seed 0"
    assert lines[1] == "simulated nodes of 1e+09 FLOP/s and 1e+10 bytes/s"
    assert [line.split()[0] for line in lines[2:6]] == ["1/4", "2/4", "3/4", "4/4"]
    assert [line.strip() for line in lines if "simulated" in line][1:] == ["1gbe: simulated", "10gbe: simulated"]
    stars = sum(line.split()[:2] in (["synchronous", "*"], ["gossip", "*"]) for line in lines)
    assert 0 < stars == " ".join(out.split()).count("*: the first at the target")
    assert all(len(line) <= 80 for line in lines)
    assert lines[-1] == "In out: history.csv, loss.png, runs.csv, summary.csv, trade_off.png"
    assert Path("out/loss.png").read_bytes().startswith(b"\x89PNG")


def test_list_shows_strategies_and_compressors_with_their_settings(tmp_path):
    out = succeeds("compare", "--list")
    assert "Minibatch SGD on p nodes that agree after every" in out
    assert "bucket_mb=1.0" in out
    for name in ("serial", "synchronous", "top_k", "Strategies", "Compressors", "lr, momentum", "ef(top_k(0.01))"):
        assert name in out
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_compare_and_keeps_the_finished_runs(tmp_path, monkeypatch):
    def interrupted(self, run, now):
        if now is None and run.entrant.name == stopped:
            raise KeyboardInterrupt

    monkeypatch.setattr(ComparisonProgress, "__call__", interrupted)
    for stopped, left in (("synchronous", ["serial", "synchronous"]), ("serial", ["serial"])):
        words = (*SMALL, "--strategies", "serial", "synchronous", "gossip", "--networks", "none", "--out", stopped)
        done = minidl(tmp_path, "compare", *words)
        assert (done.returncode, done.stderr) == (130, "")
        assert f"Stopped; the runs that had finished by then are in {stopped}." in done.stdout
        assert [row["strategy"] for row in rows("runs.csv", stopped)] == left


def test_a_table_that_is_being_written_when_ctrl_c_comes_keeps_its_former_rows(tmp_path):
    def records():
        yield {"seed": 1}
        raise KeyboardInterrupt

    path = tmp_path / "history.csv"
    write_csv(path, ["seed"], [{"seed": 0}])
    with pytest.raises(KeyboardInterrupt):
        write_csv(path, ["seed"], records())
    assert path.read_text() == "seed\n0\n"
    assert [file.name for file in tmp_path.iterdir()] == ["history.csv"]
    (tmp_path / "new").mkdir()
    assert run_folder.what_is_left(tmp_path / "new") == "Stopped before any run had finished."
    assert not (tmp_path / "new").exists()


def test_compare_refuses_bad_arguments_before_it_runs_anything():
    none = "name strategies, such as --strategies synchronous local_sgd; --list shows what there is"
    refuses("compare", {"": none})
    refuses(
        "compare --strategies",
        {
            "synchronus": "got 'synchronus': did you mean 'synchronous'?",
            "top_k(0.1)": "top_k(0.1) is a compressor: write synchronous:compressor=top_k(0.1)",
            "top_k:density=0.1": "write synchronous:compressor=top_k(density=0.1)",
            "synchronous:lr=0": "synchronous:lr=0: lr must be above 0, got 0",
            "synchronous:momentum=1": ":momentum=1: momentum must be at least 0 and below 1, got 1",
            "serial sharded:stage=2,offload=offload": "nodes that minidl compare simulates have no host to offload to",
            "synchronous --batch-size 3": "a minibatch of 3 samples cannot be shared by 8 nodes",
            "parameter_server --batch-size 20": "not a multiple of 8: choose a batch size of 16",
        },
    )
    refuses(
        "compare --strategies serial",
        {
            "--format gif": "--format must be 'png', 'svg' or 'pdf', got 'gif'",
            "--networks 2gbe": "got '2gbe': did you mean '1gbe'?",
            "--networks ,": "--networks was given without a value",
            "--networks 1gbe --on mpi": "MPI's messages cross a real network; leave out --networks",
            "--model gpt --data stdlib_text --momentum 0.9": "leave out momentum",
            "--on mars": "--on must be 'processes', 'simulation' or 'mpi', got 'mars'",
            "--nodes 2000": "at most 1024 nodes are simulated, got --nodes 2000",
            "--nodes 65 --batch-size 65 --on processes": "at most 64 nodes run on",
            "--momentum -1": "serial: momentum must be at least 0 and below 1, got -1",
            "--seeds 0": "--seeds must be at least 1, got 0",
            "--target 95": "--target must be above 0 and at most 1, got 95",
            "--flops 0": "--flops must be above 0, got 0.0: inf means no limit",
            "--memory nan": "--memory must be above 0, got nan",
            "--jitter -1": "--jitter must be at least 0, got -1",
            "--jitter 1 --on processes": "--jitter is for simulated nodes",
            "--slow 3": "such as 3:4, got '3'",
            "--slow 8:2": "--slow 8:2: there is no node 8, the nodes are 0 to 7",
            "--slow 1:0.5": "by a factor of at least 1, not by 0.5",
        },
    )


def test_a_folder_that_holds_a_comparison_is_not_overwritten_and_a_full_disk_is_said(monkeypatch):
    def no_space(self: object) -> None:
        raise OSError(28, "No space left on device", "out/loss.png")

    compare("--strategies", "serial", "--networks", "none", "--epochs", 1)
    before = Path("out/runs.csv").read_bytes()
    assert "out holds a comparison already" in refused("compare", "--strategies", "serial", "--out", "out")
    assert Path("out/runs.csv").read_bytes() == before
    monkeypatch.setattr("minidl.parallel.Comparison.draw", no_space)
    words = ("--strategies", "serial", "--networks", "none", "--epochs", 1, "--out", "full")
    assert "No space left on device" in refused("compare", *SMALL, *words)


def test_an_option_takes_all_words_up_to_the_next():
    options = {"--a", "--b"}
    assert spread(["--a", "1", "2", "-c", "3", "4"], options) == ["--a", "1", "--a", "2", "-c", "3", "4"]
    assert spread(["--a", "1", "--a", "2", "3"], options) == ["--a", "1", "--a", "2", "--a", "3"]
    assert spread(["--a", "-3", "--b", "-"], options) == ["--a", "-3", "--b", "-"]
    assert spread(["x", "--a=1", "2"], options) == ["x", "--a=1", "2"]
    assert "Option '--strategies' requires an argument." in refused("compare", "--strategies", "--networks", "1gbe")
    succeeds("simulate", "--nodes", 2, 4, "--algorithm", "ring", "tree", "--bytes", "1MB", "--out", "o")
    assert len(rows("times.csv", "o")) == 4
