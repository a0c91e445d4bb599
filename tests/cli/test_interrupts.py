"""Ctrl-C and its relatives: all processes end soon, a checkpoint stays to resume from, no traceback is shown."""

import os
import signal
import subprocess
import sys
import time

import pytest

from minidl.parallel import Checkpoint
from tests.cli.command import SLOW, assert_same_bits, environment, minidl, read_until, start, wait_for
from tests.cluster.process_census import descendants, ranks, wait_until_gone
from tests.tiers import exhaustively

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform != "linux", reason="the census of processes reads /proc"),
]

ORDERED = ("train", *SLOW, "--algorithm", "ordered")


def interrupt(process, number, whole_group):
    """Send a signal, and return when all processes have ended: exit code, output, errors."""
    everything = [process.pid, *descendants(process.pid)]
    if whole_group:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    out, err = process.communicate(timeout=300)
    assert wait_until_gone(everything) == []
    return process.returncode, out, err


@pytest.fixture(
    scope="module",
    params=[pytest.param(1, id="one node", marks=pytest.mark.exhaustive), pytest.param(2, id="two nodes")],
)
def whole(request, tmp_path_factory):
    """The number of nodes, and the folder of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    assert minidl(folder, *ORDERED, "--nodes", request.param, "--out", "run").returncode == 0
    return request.param, folder / "run"


@pytest.mark.parametrize(
    "whole_group",
    [pytest.param(True, id="group"), pytest.param(False, id="parent", marks=pytest.mark.exhaustive)],
)
def test_ctrl_c_leaves_a_checkpoint_to_go_on_from_to_the_same_bits(tmp_path, whole, whole_group):
    nodes, whole_folder = whole
    process = start(tmp_path, *ORDERED, "--nodes", nodes, "--out", "parts")
    read_until(process, "  1/3")
    assert len(ranks(process.pid)) == nodes
    code, out, err = interrupt(process, signal.SIGINT, whole_group)
    assert (code, err) == (130, "")
    assert out.endswith("To go on: minidl train --resume parts\n")
    left = sorted(path.name for path in (tmp_path / "parts").iterdir())
    assert left == ["checkpoint.npz", "config.json", "metrics.csv"]
    assert 1 <= Checkpoint.load(tmp_path / "parts/checkpoint.npz").epoch < 3
    assert minidl(tmp_path, "train", "--resume", "parts").returncode == 0
    assert_same_bits(tmp_path / "parts", whole_folder)


def test_ctrl_c_in_the_first_epoch_leaves_a_checkpoint_of_the_beginning(tmp_path):
    process = start(tmp_path, "train", *SLOW, "--nodes", 2, "--out", "out")
    wait_for(tmp_path / "out/checkpoint.npz")
    code, out, err = interrupt(process, signal.SIGINT, whole_group=True)
    assert (code, err) == (130, "")
    assert "--resume out" in out
    assert Checkpoint.load(tmp_path / "out/checkpoint.npz").epoch == 0


@pytest.mark.parametrize("delay", [0.2, *exhaustively(0.0, 0.1, 0.4, 0.6, 0.8)])
def test_ctrl_c_while_the_nodes_start_leaves_no_process(tmp_path, delay):
    process = start(tmp_path, "train", *SLOW, "--nodes", 4, "--out", "out")
    wait_for(tmp_path / "out")
    time.sleep(delay)
    code, out, err = interrupt(process, signal.SIGINT, whole_group=True)
    assert (code, err) == (130, "")
    assert ("--resume out" in out) == (tmp_path / "out/checkpoint.npz").exists()
    assert not list((tmp_path / "out").glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("delay", [1.0, *exhaustively(0.3, 3.0)])
def test_ctrl_c_while_the_kernels_are_compiled_for_the_first_time_leaves_no_process(tmp_path, delay):
    kernels = {"MINIDL_KERNELS": "numba", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    process = start(tmp_path, "train", *SLOW, "--nodes", 2, "--out", "out", **kernels)
    wait_for(tmp_path / "out")
    time.sleep(delay)
    code, _, err = interrupt(process, signal.SIGINT, whole_group=True)
    assert (code, err) == (130, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, *exhaustively(signal.SIGHUP)])
def test_a_signal_to_end_leaves_whole_files_alone(tmp_path, number):
    process = start(tmp_path, "train", *SLOW, "--nodes", 2, "--out", "out")
    wait_for(tmp_path / "out/checkpoint.npz")
    code, out, err = interrupt(process, number, whole_group=False)
    assert (code, err) == (128 + number, "")
    assert "--resume out" in out
    left = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"checkpoint.npz", "config.json"} <= left <= {"checkpoint.npz", "config.json", "metrics.csv"}


@pytest.mark.parametrize("number", [signal.SIGINT, *exhaustively(signal.SIGTERM)])
def test_a_simulation_ends_silently_on_a_signal_that_comes_in_the_turn_of_a_rank(tmp_path, number):
    racks = ("--racks", "32x32", "--nic", "1us,100Gbit", "--uplink", "5us,100Gbit")  # message by message: for minutes
    process = start(tmp_path, "simulate", *racks, "--algorithm", "ring", "--out", "out")
    wait_for(tmp_path / "out")
    time.sleep(1.0)
    code, _, err = interrupt(process, number, whole_group=False)
    assert (code, err) == (128 + number, "")


def test_a_killed_command_leaves_no_process_and_can_go_on(tmp_path):
    process = start(tmp_path, *ORDERED, "--nodes", 2, "--out", "parts")
    read_until(process, "  1/3")
    code, _, err = interrupt(process, signal.SIGKILL, whole_group=False)
    assert (code, err) == (-signal.SIGKILL, "")
    assert minidl(tmp_path, "train", "--resume", "parts").returncode == 0
    assert "checkpoint.npz" in [path.name for path in (tmp_path / "parts").iterdir()]
    assert not list((tmp_path / "parts").glob(".*"))


def test_a_second_ctrl_c_changes_nothing(tmp_path):
    process = start(tmp_path, "train", *SLOW, "--nodes", 2, "--out", "out")
    wait_for(tmp_path / "out/checkpoint.npz")
    everything = [process.pid, *descendants(process.pid)]
    for _ in range(5):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.05)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (130, "")
    assert wait_until_gone(everything) == []


def test_a_command_under_nohup_outlives_its_terminal(tmp_path):
    command = ["nohup", sys.executable, "-m", "minidl", "train", "--model", "mlp", "--epochs", "30", "--out", "out"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        read_until(process, "  1/30")
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert "test accuracy" in out


def test_a_node_that_is_killed_is_named_and_the_run_can_go_on(tmp_path):
    process = start(tmp_path, *ORDERED, "--nodes", 2, "--out", "out")
    read_until(process, "  1/3")
    os.kill(ranks(process.pid)[0], signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "killed by SIGKILL" in err
    assert "Traceback" not in err
    assert "--resume out" in out


def test_an_elastic_run_says_which_node_was_killed_and_ends_well(tmp_path):
    process = start(tmp_path, *ORDERED, "--nodes", 3, "--out", "out", "--elastic")
    read_until(process, "  1/3")
    os.kill(ranks(process.pid)[1], signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    assert "died (the process was killed by SIGKILL); 2 went on from the last finished step" in " ".join(out.split())
    assert "test accuracy" in out


def test_an_elastic_pipeline_goes_on_from_the_checkpoint_with_a_new_stage(tmp_path):
    process = start(tmp_path, "train", *SLOW, "--plan", "pp=2", "--out", "out", "--elastic")
    read_until(process, "  1/3")
    os.kill(ranks(process.pid)[1], signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    assert "1 joined; 2 went on from the checkpoint" in " ".join(out.split())
    assert "test accuracy" in out
