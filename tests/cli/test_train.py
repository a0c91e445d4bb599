"""`minidl train` as a user runs it: what it says, and what it leaves in the run folder."""

import csv
import json
import subprocess
import sys

import pytest

from minidl import data, nn, optim, parallel
from minidl.cli import run_folder
from minidl.cli.train.options import ADDED
from minidl.cli.train.summary import table
from minidl.parallel import Checkpoint
from tests.cli.command import QUICK, assert_same_bits, environment, minidl

pytestmark = pytest.mark.timeout(300)

FILES = ["checkpoint.npz", "config.json", "loss.png", "metrics.csv", "timeline.png", "trace.json"]


@pytest.fixture(scope="module", params=[1, 2], ids=["one node", "two nodes"])
def run(request, tmp_path_factory):
    """A finished run: the number of nodes, its folder, and what it said."""
    folder = tmp_path_factory.mktemp("run")
    return request.param, folder / "out", minidl(folder, "train", *QUICK, "--nodes", request.param, "--out", "out")


def test_a_run_ends_well_and_leaves_its_six_files(run):
    _, folder, result = run
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert sorted(path.name for path in folder.iterdir()) == FILES


def test_config_json_holds_every_option(run):
    nodes, folder, _ = run
    found = json.loads((folder / "config.json").read_text())
    found.pop("environment")
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
        "lr_decay": 1.0,
        "seed": 0,
        "kernels": "numpy",
        "algorithm": "auto",
        "bucket_mb": 1.0,
        "strategy": None,
        "on": "processes",
        "network": "none",
    }


def test_metrics_csv_has_a_row_an_epoch(run):
    nodes, folder, _ = run
    with (folder / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["1", "2"]
    assert float(rows[1]["loss"]) < float(rows[0]["loss"]) < 2.4
    assert 0.8 < float(rows[1]["accuracy"]) <= 1
    assert (float(rows[1]["bytes"]) > 0) == (nodes > 1)


def test_trace_json_is_a_chrome_trace_with_a_track_a_node(run):
    nodes, folder, _ = run
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    programs = {names[event["tid"]] for event in slices if "concurrent" not in names[event["tid"]]}
    assert programs == {f"rank {node}" for node in range(nodes)}
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in slices)
    assert any(event["name"] == "all_reduce" for event in slices) == (nodes > 1)


def test_the_pictures_are_pictures(run):
    _, folder, _ = run
    for name in ("loss.png", "timeline.png"):
        content = (folder / name).read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        assert len(content) > 5_000


def test_the_checkpoint_is_that_of_the_last_epoch(run):
    _, folder, _ = run
    checkpoint = Checkpoint.load(folder / "checkpoint.npz")
    assert checkpoint.epoch == 2
    assert checkpoint.model["layers.0.weight"].shape == (128, 64)


def test_off_a_terminal_there_are_plain_lines_one_an_epoch_and_the_table(run):
    _, _, result = run
    lines = result.stdout.splitlines()
    assert "\x1b" not in result.stdout
    assert "\r" not in result.stdout
    assert not set("━╸╺⠋⠙⠹") & set(result.stdout)
    assert all(len(line) <= 80 for line in lines[:-1])  # the last names the folder
    assert lines[0].startswith("mlp (9,610 parameters) on digits, ")
    assert "a node's compute/communicate/wait" in lines[2]
    assert [line.split()[0] for line in lines[3:5]] == ["1/2", "2/2"]
    assert any(line.startswith("│ test accuracy") for line in lines)
    assert lines[-1] == f"In out: {', '.join(FILES)}"


def test_where_only_ascii_can_be_printed_the_table_is_drawn_in_ascii(tmp_path):
    result = minidl(tmp_path, "train", *QUICK, "--out", "out", PYTHONIOENCODING="ascii")
    assert result.returncode == 0, result.stderr
    assert "| test accuracy" in result.stdout


def test_a_folder_named_in_brackets_is_printed_as_it_is(tmp_path):
    result = minidl(tmp_path, "train", *QUICK, "--out", "[red]runs[/red]")
    assert result.stdout.splitlines()[-1].startswith("In [red]runs[/red]: checkpoint.npz")


def test_a_reader_that_goes_away_ends_the_run_without_a_traceback(tmp_path):
    command = [sys.executable, "-m", "minidl", "train", "--model", "mlp", "--epochs", "100000"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err == ""


def test_two_runs_of_the_same_second_have_two_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_folder.time, "strftime", lambda pattern: "20260101-120000")
    folders = [run_folder.prepare(None, "lenet-digits-4", None) for _ in range(3)]
    assert [folder.name for folder in folders] == [
        "lenet-digits-4-20260101-120000",
        "lenet-digits-4-20260101-120000-2",
        "lenet-digits-4-20260101-120000-3",
    ]


def test_the_table_of_a_text_model_has_the_entropy_of_the_characters():
    splits = data.stdlib_text(block_size=8, n_chars=4_000)
    job = parallel.Job(
        model=lambda: nn.models.GPT(len(splits.classes), 8, n_layer=1, n_head=1, n_embd=4),
        data=splits,
        optimizer=lambda parameters: optim.AdamW(parameters, lr=1e-2),
        epochs=1,
    )
    label, value = ([*column.cells][2] for column in table(parallel.train(job)).columns)
    assert label == "entropy of the characters"
    assert 2.5 < float(value) < 3.5


# ---- another strategy, engine or network ----


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


def test_a_strategy_with_settings_trains_and_is_kept_in_the_configuration(tmp_path):
    strategy = "local_sgd:period=4"
    result = minidl(tmp_path, "train", *QUICK, "--nodes", 2, "--strategy", strategy, "--out", "out")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[2] == "strategy local_sgd:period=4"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    assert config_of(tmp_path / "out")["strategy"] == strategy
    checkpoint = Checkpoint.load(tmp_path / "out/checkpoint.npz")
    assert checkpoint.epoch == 2
    assert checkpoint.history[-1]["accuracy"] > 0.8


def test_learning_rate_and_momentum_are_given_as_options_or_as_settings_of_the_strategy(tmp_path):
    options = ("--on", "simulation", "--nodes", 2)
    for folder, words in (
        ("options", ("--strategy", "synchronous", "--lr", 0.3, "--momentum", 0.5)),
        ("settings", ("--strategy", "synchronous:lr=0.3,momentum=0.5")),
    ):
        result = minidl(tmp_path, "train", *QUICK, *options, *words, "--out", folder)
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines()[1] == "minibatch 64, learning rate 0.3, momentum 0.5, seed 0"
        assert (config_of(tmp_path / folder)["lr"], config_of(tmp_path / folder)["momentum"]) == (0.3, 0.5)
    assert_same_bits(tmp_path / "options", tmp_path / "settings")
    result = minidl(tmp_path, "train", "--resume", "settings", "--epochs", 3)
    assert result.returncode == 0, result.stderr


def test_a_simulation_is_on_a_virtual_clock_and_its_network_decides_the_seconds(tmp_path):
    seconds = {}
    for network in ("1gbe", "nvlink"):
        command = ("--nodes", 16, "--on", "simulation", "--network", network, "--out", network)
        result = minidl(tmp_path, "train", *QUICK, *command)
        assert result.returncode == 0, result.stderr
        last = f"simulated nodes of 1e+09 FLOP/s and 1e+10 bytes/s, network {network}"
        assert result.stdout.splitlines()[2] == last
        with (tmp_path / network / "metrics.csv").open() as file:
            seconds[network] = [float(row["seconds"]) for row in csv.DictReader(file)]
        assert "simulated" in (tmp_path / network / "trace.json").read_text()
    assert seconds["1gbe"][-1] > 3 * seconds["nvlink"][-1]


def test_a_simulated_run_goes_on_from_its_checkpoint(tmp_path):
    options = ("--model", "mlp", "--nodes", 4, "--on", "simulation", "--network", "10gbe")
    assert minidl(tmp_path, "train", *options, "--epochs", 3, "--out", "whole").returncode == 0
    assert minidl(tmp_path, "train", *options, "--epochs", 2, "--out", "parts").returncode == 0
    resumed = minidl(tmp_path, "train", "--resume", "parts", "--epochs", 3)
    assert resumed.returncode == 0, resumed.stderr
    assert "network 10gbe" in resumed.stdout
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")
    whole, parts = (Checkpoint.load(tmp_path / name / "checkpoint.npz").history for name in ("whole", "parts"))
    assert parts[1]["seconds"] == whole[1]["seconds"]
    assert parts[2]["seconds"] == pytest.approx(whole[2]["seconds"], rel=0.02)  # the weights are sent to all once more


def test_what_a_simulation_has_room_for_need_not_fit_this_machine(tmp_path):
    command = ("--model", "mlp", "--data", "spirals", "--epochs", 1, "--nodes", 100, "--batch-size", 100)
    result = minidl(tmp_path, "train", *command, "--on", "simulation", "--out", "out")
    assert result.returncode == 0, result.stderr


def test_the_checkpoint_of_a_former_version_goes_on(tmp_path):
    minidl(tmp_path, "train", "--model", "mlp", "--epochs", 1, "--nodes", 2, "--out", "out")
    path = tmp_path / "out/checkpoint.npz"
    checkpoint = Checkpoint.load(path)
    for name in ADDED:
        del checkpoint.config[name]
    checkpoint.save(path)
    result = minidl(tmp_path, "train", "--resume", "out", "--epochs", 2)
    assert result.returncode == 0, result.stderr
    assert Checkpoint.load(path).epoch == 2
