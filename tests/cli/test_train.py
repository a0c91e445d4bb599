"""`minidl train` as a user runs it: what it says, and what it leaves in the run folder."""

import csv
import gzip
import json
import re
import sys
from functools import partial

import pytest

from minidl import data, nn, optim, parallel
from minidl.cli import run_folder
from minidl.cli.strategies import OPTIMIZERS, parse_optimizer
from minidl.cli.train.summary import table
from minidl.parallel import Checkpoint
from tests.cli.command import QUICK, ROOT, assert_same_bits, minidl, refused, succeeds
from tests.plots.player.decoded import meta_of

pytestmark = pytest.mark.timeout(300)

FILES = ["checkpoint.npz", "config.json", "loss.png", "metrics.csv", "run.html", "timeline.png", "trace.json.gz"]
SPIRALS = ("train", "--model", "mlp", "--data", "spirals", "--on", "simulation")  # 20 steps an epoch


def config(folder):
    return json.loads((folder / "config.json").read_text())


def metrics(folder):
    with (folder / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module", params=[1, 2], ids=["one node", "two nodes"])
def run(request, tmp_path_factory):
    """A finished run on processes: the number of nodes, its folder, and what it said."""
    folder = tmp_path_factory.mktemp("run")
    words = ("train", *QUICK, "--seed", 3, "--nodes", request.param, "--out", "out")
    return request.param, folder / "out", minidl(folder, *words)


def test_a_finished_run_leaves_seven_files(run):
    nodes, folder, result = run
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(path.name for path in folder.iterdir()) == FILES
    for name in ("loss.png", "timeline.png"):
        content = (folder / name).read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        assert len(content) > 5_000
    [played] = meta_of((folder / "run.html").read_text(encoding="utf-8"))["runs"]
    assert (played["ranks"], played["source"]) == (nodes, "measured")
    checkpoint = Checkpoint.load(folder / "checkpoint.npz")
    assert checkpoint.epoch == 2
    assert checkpoint.model["layers.0.weight"].shape == (128, 64)


def test_config_json_holds_every_option_and_the_environment(run):
    nodes, folder, _ = run
    found = config(folder)
    made_with = found.pop("environment")
    assert found == {
        "model": "mlp",
        "data": "digits",
        "nodes": nodes,
        "batch_size": 64,
        "epochs": 2,
        "lr": 0.2,
        "momentum": 0.9,
        "optimizer": None,
        "flops": None,
        "device_memory": None,
        "precision": None,
        "lr_decay": 1.0,
        "seed": 3,
        "kernels": "numpy",
        "algorithm": "auto",
        "bucket_mb": 1.0,
        "strategy": None,
        "on": "processes",
        "network": "none",
    }
    assert set(made_with) == {"minidl", "numpy", "numba", "python", "commit", "command"}
    assert made_with["python"] == sys.version.split()[0]
    if (ROOT / ".git").exists():
        assert re.fullmatch(r"[0-9a-f]{40}\+?", made_with["commit"])


def test_metrics_csv_has_a_row_an_epoch_and_trace_json_a_track_a_node(run):
    nodes, folder, _ = run
    rows = metrics(folder)
    assert [row["epoch"] for row in rows] == ["1", "2"]
    assert float(rows[1]["loss"]) < float(rows[0]["loss"]) < 2.4
    assert 0.8 < float(rows[1]["accuracy"]) <= 1
    assert (float(rows[1]["bytes"]) > 0) == (nodes > 1)
    events = json.loads(gzip.decompress((folder / "trace.json.gz").read_bytes()))["traceEvents"]
    tracks = {event["args"]["name"].split(",")[0] for event in events if event["name"] == "thread_name"}
    assert {f"rank {node}" for node in range(nodes)} <= tracks
    assert any(event["name"] == "all_reduce" for event in events) == (nodes > 1)


def test_without_a_terminal_train_prints_a_plain_line_per_epoch_and_the_table(run):
    nodes, _, result = run
    lines = result.stdout.splitlines()
    assert not set("\x1b\r━╸╺⠋⠙⠹") & set(result.stdout)
    assert all(len(line) <= 80 for line in lines[:-1])  # the last names the folder
    assert lines[0] == f"mlp (9,610 parameters) on digits, {nodes} node{'s' * (nodes > 1)}, kernels numpy"
    assert lines[1] == "minibatch 64, learning rate 0.2, momentum 0.9, seed 3"
    assert "a node's compute/communicate/wait" in lines[2]
    assert [line.split()[0] for line in lines[3:5]] == ["1/2", "2/2"]
    rows = ["test accuracy", "loss (training / test)", "time, measured", "samples/s, last epoch", "time of all nodes",
            *["most waited for"] * (nodes > 1), "sent by node 0, in all"]  # fmt: skip
    assert [line.split("│")[1].strip() for line in lines if line.startswith("│")] == rows
    assert result.stdout.count("│") == 3 * len(rows)  # no row is broken
    assert lines[-1] == f"In out: {', '.join(FILES)}"


def test_two_runs_of_the_same_second_have_two_folders(monkeypatch):
    monkeypatch.setattr(run_folder.time, "strftime", lambda pattern: "20260101-120000")
    folders = [run_folder.prepare(None, "lenet-digits-4", None) for _ in range(3)]
    name = "lenet-digits-4-20260101-120000"
    assert [folder.name for folder in folders] == [name, f"{name}-2", f"{name}-3"]


def test_the_table_of_a_text_model_has_the_entropy_of_the_characters():
    splits = data.stdlib_text(block_size=8, n_chars=4_000)
    model = partial(nn.models.GPT, len(splits.classes), 8, n_layer=1, n_head=1, n_embd=4)
    report = parallel.train(parallel.Job(model=model, data=splits, optimizer=partial(optim.AdamW, lr=1e-2), epochs=1))
    label, value = ([*column.cells][2] for column in table(report).columns)
    assert label == "entropy of the characters"
    assert 2.5 < float(value) < 3.5


def test_json_is_all_that_is_printed(tmp_path):
    found = json.loads(succeeds(*SPIRALS, "--epochs", 2, "--nodes", 2, "--json"))
    assert [row["epoch"] for row in found["history"]] == [1, 2]
    assert (found["nodes"], found["clock"]) == (2, "simulated")
    assert (found["deaths"], list(found["waited_for"])) == ([], ["node 0", "node 1"])
    assert found["accuracy"] == found["history"][-1]["accuracy"]
    assert (tmp_path / found["folder"] / "checkpoint.npz").exists()


def test_quiet_prints_nothing_but_errors_and_brackets_are_printed_as_they_are(tmp_path):
    assert succeeds(*SPIRALS, "--epochs", 1, "--quiet") == ""
    last = succeeds(*SPIRALS, "--epochs", 1, "--out", "[red]runs[/red]").splitlines()[-1]
    assert last.startswith("In [red]runs[/red]: checkpoint.npz")  # as it is
    result = minidl(tmp_path, "train", "--quiet", "--model", "mpl")
    assert (result.returncode, result.stdout) == (2, "")
    assert "did you mean 'mlp'?" in result.stderr


def test_tensorboard_gets_a_row_an_epoch(tmp_path):
    pytest.importorskip("tensorboardX", reason="needs the extra tensorboard")
    succeeds(*SPIRALS, "--epochs", 2, "--tensorboard", "--out", "out")
    (events,) = (tmp_path / "out").glob("events.out.tfevents.*")
    assert events.read_bytes().count(b"loss/test") == 2


def test_a_strategy_with_settings_trains_and_is_kept_in_the_configuration(tmp_path):
    strategy = "local_sgd:period=4"
    out = succeeds("train", *QUICK, "--nodes", 2, "--strategy", strategy, "--out", "out")
    assert out.splitlines()[2] == "strategy local_sgd:period=4"
    assert config(tmp_path / "out")["strategy"] == strategy
    assert Checkpoint.load(tmp_path / "out/checkpoint.npz").history[-1]["accuracy"] > 0.8


def test_learning_rate_and_momentum_are_given_as_options_or_as_settings_of_the_strategy(tmp_path):
    for folder, words in (
        ("options", ("--strategy", "synchronous", "--lr", 0.05, "--momentum", 0.5)),
        ("settings", ("--strategy", "synchronous:lr=0.05,momentum=0.5")),
    ):
        out = succeeds(*SPIRALS, "--epochs", 1, "--nodes", 2, *words, "--out", folder)
        assert "learning rate 0.05, momentum 0.5, " in out
        assert (config(tmp_path / folder)["lr"], config(tmp_path / folder)["momentum"]) == (0.05, 0.5)
    assert_same_bits(tmp_path / "options", tmp_path / "settings")
    succeeds("train", "--resume", "settings", "--epochs", 2)


def test_every_optimizer_that_is_exported_trains_by_name(tmp_path):
    exported = {one for name in optim.__all__ if isinstance(one := getattr(optim, name), type)}
    assert {*OPTIMIZERS.values()} == {cls for cls in exported if issubclass(cls, optim.Optimizer)} - {optim.Optimizer}
    for name in OPTIMIZERS:
        words = ("--optimizer", name, *(("--lr", 1.0) if name == "lars" else ()))
        said = succeeds(*SPIRALS, "--epochs", 2, *words, "--out", name)
        assert said.splitlines()[1].startswith(f"minibatch 64, {name}, learning rate ")
        first, second = (float(row["loss"]) for row in metrics(tmp_path / name))
        assert second < first, name
    succeeds(*SPIRALS, "--epochs", 2, "--out", "default")
    assert_same_bits(tmp_path / "default", tmp_path / "sgd")  # which is the model's own
    assert parse_optimizer("adamw:betas=(0.8,0.9),lr=0.01")[1] == {"betas": (0.8, 0.9), "lr": 0.01}


def test_a_device_whose_memory_is_too_small_fits_with_offload(tmp_path):
    small = (*SPIRALS, "--epochs", 1, "--on", "simulation", "--device-memory", "40.3kB@3us/0.7GB", "--strategy")
    assert "the device of rank 0 needs" in refused(*small, "sharded:bucket_mb=0.002", "--out", "whole")
    said = succeeds(*small, "sharded:2,bucket_mb=0.002,offload=offload(optimizer)", "--out", "offload")
    assert "device memory 40.3kB@3us/0.7GB" in said.splitlines()[2]
    assert re.search(r"most on a device +│ 40 KB in backward: weights", said)
    assert re.search(r"its link to the host +│ ([\d.]+ KB) fetched, \1 sent back", said)


def test_a_simulation_is_on_a_virtual_clock_and_network_and_node_decide_the_seconds(tmp_path):
    seconds = {}
    for name, words in {
        "1gbe": ("--network", "1gbe"),
        "nvlink": ("--network", "nvlink"),
        "slow": ("--network", "nvlink", "--flops", 1e8),
    }.items():
        said = succeeds(*SPIRALS, "--epochs", 1, "--nodes", 4, *words, "--out", name)
        speed, network = ("1e+08", "nvlink") if name == "slow" else ("1e+09", name)
        assert said.splitlines()[2] == f"simulated nodes of {speed} FLOP/s and 1e+10 bytes/s, network {network}"
        assert re.search(r"time, simulated +│ (?!0\.0 )[\d.]+ (s|ms|µs) ", said)
        assert "simulated" in gzip.decompress((tmp_path / name / "trace.json.gz").read_bytes()).decode()
        seconds[name] = float(metrics(tmp_path / name)[-1]["seconds"])
    assert seconds["1gbe"] > 3 * seconds["nvlink"]
    assert seconds["slow"] > 1.5 * seconds["nvlink"]
    succeeds(*SPIRALS, "--epochs", 1, "--nodes", 65, "--batch-size", 500)  # more than this machine has room for
