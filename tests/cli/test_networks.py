"""`minidl networks` and `minidl calibrate`: what a network costs, by name or measured here, and the file of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from minidl.cluster.cost.network import PRESETS, Network
from minidl.cluster.cost.topologies.text import FORMS
from tests.cli.command import refused, refuses, succeeds

pytestmark = pytest.mark.timeout(300)


def test_every_network_is_listed_with_its_numbers_and_their_source():
    lines = succeeds("networks", COLUMNS="200").splitlines()
    for name, preset in PRESETS.items():
        (line,) = (line for line in lines if line.startswith(f"{name} "))
        assert preset.source[:40] in line
    usual, narrow = succeeds("networks", COLUMNS="80"), succeeds("networks", COLUMNS="20")
    assert "10 Gbit/s" in usual
    assert "…" not in usual
    assert narrow == usual  # a terminal that is too narrow breaks the lines: no number is cut


@pytest.mark.usefixtures("pictures")
def test_topologies_stand_for_networks_in_training_and_comparisons_and_are_listed():
    listed = succeeds("networks", COLUMNS="200")
    assert all(f"{form.example}@1us/100Gbit" in listed for form in FORMS.values())
    words = ("--model", "mlp", "--data", "spirals", "--epochs", 1, "--nodes", 4)
    there = ("--network", "torus:3x2@1gbe")
    assert "network torus:3x2@1gbe" in succeeds("train", *words, *there, "--on", "simulation")
    assert "which only a simulation has: --on simulation" in refused("train", *words, *there)
    said = succeeds("compare", *words, "--networks", "torus:3x2@1gbe", "1gbe", "--strategies", "synchronous")
    assert "torus:3x2@1gbe: simulated" in said


@pytest.mark.usefixtures("pictures")
def test_calibrate_writes_a_file_that_can_be_given_as_a_network():
    out = succeeds("calibrate", "--repetitions", 3, "-o", "net.json", "--picture", "fit.png")
    network = Network.load("net.json")
    assert network.alpha > 0
    assert [nbytes for nbytes, _ in network.measured] == [64 * 4**k for k in range(9)]
    assert "4 MiB" in out
    assert "--network net.json" in out
    assert Path("fit.png").read_bytes().startswith(b"\x89PNG")
    words = ("--model", "mlp", "--data", "spirals", "--epochs", 1, "--nodes", 2, "--on", "simulation")
    assert "network net.json" in succeeds("train", *words, "--network", "net.json")


def test_what_cannot_be_measured_or_written_is_said_before_anything_is_measured():
    Path("folder.json").mkdir()
    refuses(
        "calibrate",
        {
            "--nodes 1": "--nodes must be at least 2, got 1",
            "--on simulation": "--on must be 'processes' or 'mpi', got 'simulation'",
            "--pattern pong": "--pattern must be 'ping-pong' or 'exchange', got 'pong'",
            "--repetitions 0": "--repetitions must be at least 1, got 0",
            "-o net": "--output net: the name must end in .json",
            "-o none/net.json": "--output none/net.json: there is no folder none",
            "-o folder.json": "--output folder.json is a folder: give the name of a file",
            "-o /proc/net.json": "--output /proc/net.json cannot be written (No such file or directory): choose",
            "--picture fit.gif": "--picture fit.gif: the name must end in .png or .pdf or .svg",
        },
    )


@pytest.mark.parametrize("command", ["train", "compare", "simulate"])
def test_every_command_says_what_is_wrong_with_a_file(command):
    rest = ("--strategies", "synchronous") if command == "compare" else ()
    Path("net.json").write_text('{"alpha": 1e-6}')
    assert "net.json: the key beta is missing" in refused(command, *rest, "--network", "net.json")
    assert "gone.json" in refused(command, *rest, "--networks", "gone.json")
    Path("deep.json").write_text("[" * 100_000)
    assert "deep.json is no JSON file" in refused(command, *rest, "--network", "deep.json")
