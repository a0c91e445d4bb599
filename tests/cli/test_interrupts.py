"""Ctrl-C and its relatives: all processes end soon, a checkpoint stays to resume from, no traceback is shown."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from minidl.parallel import Checkpoint
from tests.cli.command import assert_same_bits, minidl, read_until, start, wait_for, without_progress
from tests.cluster.process_census import descendants, ranks, wait_until_gone
from tests.tiers import exhaustively

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="the census of processes reads /proc"),
]

MODEL = """
import os
import time
from pathlib import Path

import multiprocess
from minidl import nn

HERE = Path(__file__).parent


class Gate(nn.Module):
    def forward(self, x):
        is_rank = multiprocess.parent_process() is not None
        while (HERE / "hold").exists() and (is_rank or not (HERE / "hold-ranks").exists()):
            (HERE / f"held-{os.getpid()}").touch()
            time.sleep(0.01)
        return x


def gated() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 8), Gate(), nn.ReLU(), nn.Linear(8, 3))
"""
"""A model whose training stands still while there is a file `hold`: the signal then arrives in the midst of a step.

If there is a file `hold-ranks`, it stands still in ranks alone.
"""

TRAIN = ("train", "--import", "my.py", "--model", "gated", "--data", "spirals", "--algorithm", "ordered")
RESUME = ("train", "--import", "my.py", "--resume", "out")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the model, whose training stands still."""
    (tmp_path / "my.py").write_text(MODEL)
    (tmp_path / "hold").touch()
    return tmp_path


def go_on(folder: Path) -> None:
    (folder / "hold").unlink()


def interrupt(process: subprocess.Popen[str], number: int, whole_group: bool = False) -> tuple[int, str, str]:
    """Send a signal, and return when all processes have ended: exit code, output, errors."""
    everything = [process.pid, *descendants(process.pid)]
    if whole_group:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    out, err = process.communicate(timeout=300)
    assert wait_until_gone(everything) == []
    return process.returncode, out, without_progress(err)


@pytest.mark.parametrize("nodes", [2, *exhaustively(1)])
def test_ctrl_c_leaves_a_checkpoint_to_go_on_from_to_the_same_bits(folder, nodes):
    go_on(folder)
    process = start(folder, *TRAIN, "--nodes", nodes, "--epochs", 100_000, "--out", "out")
    read_until(process, "  1/")
    (folder / "hold").touch()
    wait_for(folder, "held-*")  # others may wait for its gradient
    assert len(ranks(process.pid)) == nodes
    code, out, err = interrupt(process, signal.SIGINT, whole_group=True)
    assert (code, err) == (130, "")
    assert out.endswith("To go on: minidl train --resume out\n")
    assert {path.name for path in (folder / "out").iterdir()} == {"checkpoint.npz", "config.json", "metrics.csv"}
    assert json.loads((folder / "out/config.json").read_text())["epochs"] == 100_000
    with (folder / "out/metrics.csv").open(newline="") as file:
        epochs = [int(row["epoch"]) for row in csv.DictReader(file)]
    assert epochs == list(range(1, len(epochs) + 1))
    assert len(epochs) == Checkpoint.load(folder / "out/checkpoint.npz").epoch >= 1
    go_on(folder)
    more = ("--epochs", len(epochs) + 1)
    assert minidl(folder, *RESUME, *more).returncode == 0
    assert minidl(folder, *TRAIN, "--nodes", nodes, *more, "--out", "whole").returncode == 0
    assert_same_bits(folder / "out", folder / "whole")


def test_several_ctrl_c_in_the_first_epoch_leave_a_checkpoint_of_the_beginning(folder):
    process = start(folder, *TRAIN, "--nodes", 2, "--out", "out")
    wait_for(folder, "held-*", 2)
    everything = [process.pid, *descendants(process.pid)]
    for _ in range(5):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.05)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, without_progress(err)) == (130, "")
    assert wait_until_gone(everything) == []
    assert "--resume out" in out
    assert Checkpoint.load(folder / "out/checkpoint.npz").epoch == 0


@pytest.mark.parametrize(
    ("kernels", "delay"),
    [("numpy", 0.0), *exhaustively(("numpy", 0.2), ("numpy", 0.5), ("numba", 0.0), ("numba", 1.0), ("numba", 3.0))],
)
def test_ctrl_c_while_the_nodes_start_or_the_kernels_are_compiled_leaves_no_process(folder, kernels, delay):
    first_time = {"MINIDL_KERNELS": kernels, "NUMBA_CACHE_DIR": str(folder / "cache")}
    process = start(folder, *TRAIN, "--nodes", 4, "--out", "out", **first_time)
    wait_for(folder, "out")
    time.sleep(delay)
    code, out, err = interrupt(process, signal.SIGINT, whole_group=True)
    assert (code, err) == (130, "")
    assert ("--resume out" in out) == (folder / "out/checkpoint.npz").exists()
    assert not list((folder / "out").glob(".*"))


@pytest.mark.parametrize(
    ("on", "number"),
    [
        ("processes", signal.SIGTERM),
        *exhaustively(("simulation", signal.SIGTERM), ("simulation", signal.SIGINT), ("processes", signal.SIGKILL)),
    ],
)
def test_a_signal_in_the_midst_of_a_step_leaves_whole_files_alone(folder, on, number):
    """In a simulation it arrives in the turn of a rank."""
    process = start(folder, *TRAIN, "--nodes", 2, "--on", on, "--out", "out")
    wait_for(folder, "held-*", 2 if on == "processes" else 1)
    code, out, err = interrupt(process, number)
    is_killed = number == signal.SIGKILL
    assert (code, err) == (-number if is_killed else 128 + number, "")
    assert ("--resume out" in out) == (not is_killed)
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["checkpoint.npz", "config.json"]
    if is_killed:
        go_on(folder)
        assert minidl(folder, *RESUME, "--epochs", 1).returncode == 0


AFTER_A_KILL = {
    "plain": (("--nodes", 2), 1, "To go on: minidl train --resume out"),
    "elastic": (
        ("--nodes", 3, "--elastic"),
        0,
        "died (the process was killed by SIGKILL); 2 went on from the last finished step",
    ),
    "elastic, stages": (("--plan", "pp=2", "--elastic"), 0, "1 joined; 2 went on from the checkpoint"),
}
"""Options of a run, its exit code after a node was killed, and what it says."""


@pytest.mark.parametrize("kind", ["plain", *exhaustively("elastic", "elastic, stages")])
def test_a_node_that_is_killed_is_named_and_the_run_goes_on_or_can(folder, kind):
    words, code, sentence = AFTER_A_KILL[kind]
    (folder / "hold-ranks").touch()  # the command itself calls a model that it cuts into stages
    process = start(folder, *TRAIN[:-2], *words, "--epochs", 2, "--out", "out")
    wait_for(folder, "held-*", 1 if "--plan" in words else 2)  # the second stage waits for the first
    os.kill(ranks(process.pid)[-1], signal.SIGKILL)
    if code == 0:
        go_on(folder)
    out, err = process.communicate(timeout=300)
    assert process.returncode == code
    assert sentence in " ".join(out.split())
    assert ("killed by SIGKILL" in err) == (code == 1)
    assert "Traceback" not in err
    assert ("test accuracy" in out) == (code == 0)
