"""`minidl train --resume` ends with the same bits as a run that was never stopped."""

import csv

import pytest

from minidl.parallel import Checkpoint
from tests.cli.command import assert_same_bits, minidl

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--model", "mlp"), id="one node", marks=pytest.mark.exhaustive),
        pytest.param(("--model", "lenet", "--nodes", 2, "--algorithm", "ordered"), id="two nodes"),
    ],
)
def test_resuming_gives_the_bits_of_the_uninterrupted_run(tmp_path, options):
    options += ("--lr-decay", 0.9)
    assert minidl(tmp_path, "train", *options, "--epochs", 3, "--out", "whole").returncode == 0
    assert minidl(tmp_path, "train", *options, "--epochs", 1, "--out", "parts").returncode == 0
    resumed = minidl(tmp_path, "train", "--resume", "parts", "--epochs", 3)
    assert resumed.returncode == 0, resumed.stderr
    assert [line.split()[0] for line in resumed.stdout.splitlines()[3:5]] == ["2/3", "3/3"]
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")
    with (tmp_path / "parts/metrics.csv").open() as file:
        assert [row["epoch"] for row in csv.DictReader(file)] == ["1", "2", "3"]


def test_a_checkpoint_may_be_continued_in_another_folder(tmp_path):
    minidl(tmp_path, "train", "--model", "mlp", "--epochs", 1, "--out", "first")
    before = (tmp_path / "first/checkpoint.npz").read_bytes()
    command = ("train", "--resume", "first/checkpoint.npz", "--epochs", 2, "--out")
    assert minidl(tmp_path, *command, "second").returncode == 0
    assert minidl(tmp_path, "train", "--model", "mlp", "--epochs", 2, "--out", "whole").returncode == 0
    assert_same_bits(tmp_path / "second", tmp_path / "whole")
    assert (tmp_path / "first/checkpoint.npz").read_bytes() == before
    refused = minidl(tmp_path, *command, "whole")
    assert refused.returncode == 2
    assert "whole holds a run already" in refused.stderr


def test_a_run_goes_on_on_another_number_of_nodes(tmp_path):
    options = ("--model", "mlp", "--on", "simulation", "--out")
    four = ("--nodes", 4, "--strategy", "synchronous:algorithm=ordered")
    assert minidl(tmp_path, "train", *options, "whole", *four, "--epochs", 3).returncode == 0
    assert minidl(tmp_path, "train", *options, "parts", "--strategy", "serial:shards=4", "--epochs", 1).returncode == 0
    first = Checkpoint.load(tmp_path / "parts/checkpoint.npz")
    resumed = minidl(tmp_path, "train", "--resume", "parts", "--epochs", 3, *four)
    assert resumed.returncode == 0, resumed.stderr
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")
    last = Checkpoint.load(tmp_path / "parts/checkpoint.npz")
    assert last.history[:1] == first.history
    assert (first.config["nodes"], last.config["nodes"]) == (1, 4)


def test_without_a_strategy_the_number_of_nodes_chooses_it(tmp_path):
    options = ("--model", "mlp", "--on", "simulation", "--out", "run")
    assert minidl(tmp_path, "train", *options, "--nodes", 2, "--epochs", 1).returncode == 0
    for epochs, nodes in enumerate((1, 4), start=2):
        resumed = minidl(tmp_path, "train", "--resume", "run", "--epochs", epochs, "--nodes", nodes)
        assert resumed.returncode == 0, resumed.stderr
    assert [row["epoch"] for row in Checkpoint.load(tmp_path / "run/checkpoint.npz").history] == [1, 2, 3]
