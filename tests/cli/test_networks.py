"""`minidl networks` and `minidl calibrate`: what a network costs, by name or measured here, and the file of it."""

from __future__ import annotations

import contextvars
import subprocess
import sys
from pathlib import Path

import pytest

from minidl.cli.app import app
from minidl.cluster.cost.network import Network
from minidl.cluster.cost.presets import PRESETS
from tests.cli.command import environment, minidl, refused

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def call(*arguments: object) -> None:
    with pytest.raises(SystemExit) as ending:
        contextvars.Context().run(app, list(map(str, arguments)), prog_name="minidl")
    assert ending.value.code == 0


def test_every_network_is_listed_with_its_numbers_and_their_source(tmp_path):
    result = minidl(tmp_path, "networks", COLUMNS="200")
    assert result.returncode == 0, result.stderr
    for name, preset in PRESETS.items():
        (line,) = (line for line in result.stdout.splitlines() if line.startswith(f"{name} "))
        assert preset.source[:40] in line
    assert "10 Gbit/s" in result.stdout
    assert "…" not in minidl(tmp_path, "networks", COLUMNS="80").stdout


def test_what_a_terminal_cannot_print_is_escaped(tmp_path):
    result = minidl(tmp_path, "networks", PYTHONIOENCODING="ascii")
    assert result.returncode == 0, result.stderr
    assert "50 \\xb5s" in result.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_said_in_one_sentence(tmp_path):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "minidl", "networks"]
        result = subprocess.run(
            command, cwd=tmp_path, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert result.returncode == 2
    assert result.stderr == "minidl networks: [Errno 28] No space left on device\n"


@pytest.mark.usefixtures("pictures")
def test_a_machine_is_measured_and_its_file_stands_for_a_network(capsys):
    call("calibrate", "--repetitions", 3, "-o", "net.json", "--picture", "fit.png")
    out = capsys.readouterr().out
    network = Network.load("net.json")
    assert network.alpha > 0
    assert [nbytes for nbytes, _ in network.measured] == [64 * 4**k for k in range(9)]
    assert "4 MiB" in out
    assert "--network net.json" in out
    assert Path("fit.png").read_bytes().startswith(b"\x89PNG")
    call("train", "--model", "mlp", "--epochs", 1, "--nodes", 2, "--on", "simulation", "--network", "net.json")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--nodes", 1), "--nodes must be at least 2, got 1"),
        (("--on", "simulation"), "--on must be 'processes' or 'mpi', got 'simulation'"),
        (("--pattern", "pong"), "--pattern must be 'ping-pong' or 'exchange', got 'pong'"),
        (("--repetitions", 0), "--repetitions must be at least 1, got 0"),
        (("-o", "net"), "--output net: the name must end in .json"),
        (("-o", "none/net.json"), "--output none/net.json: there is no folder none"),
        (("-o", "folder.json"), "--output folder.json is a folder: give the name of a file"),
        (("-o", "/proc/net.json"), "--output /proc/net.json cannot be written (No such file or directory): choose"),
        (("--picture", "fit.gif"), "--picture fit.gif: the name must end in .png or .pdf or .svg"),
    ],
)
def test_what_cannot_be_measured_or_written_is_said_before_anything_is_measured(capsys, arguments, sentence):
    Path("folder.json").mkdir()
    assert sentence in refused(capsys, "calibrate", *arguments)


@pytest.mark.parametrize("command", ["train", "compare", "simulate"])
def test_every_command_says_what_is_wrong_with_a_file(capsys, command):
    Path("net.json").write_text('{"alpha": 1e-6}')
    rest = ("--strategies", "synchronous") if command == "compare" else ()
    assert "net.json: the key beta is missing" in refused(capsys, command, *rest, "--network", "net.json")
    assert "gone.json" in refused(capsys, command, *rest, "--networks", "gone.json")
    Path("deep.json").write_text("[" * 100_000)
    assert "deep.json is no JSON file" in refused(capsys, command, *rest, "--network", "deep.json")
