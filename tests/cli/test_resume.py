"""`minidl train --resume` ends with the same bits as a run that was never stopped."""

import csv

import pytest

from minidl.cli.train.options import ADDED
from minidl.parallel import Checkpoint
from tests.cli.command import assert_same_bits, refused, succeeds

pytestmark = pytest.mark.timeout(300)

SPIRALS = ("train", "--model", "mlp", "--data", "spirals", "--on", "simulation")


LENET = ("--model", "lenet", "--nodes", 2, "--algorithm", "ordered")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--model", "mlp", *LENET[2:]), id="mlp"),
        pytest.param(LENET, id="lenet", marks=pytest.mark.exhaustive),
    ],
)
def test_resuming_gives_the_bits_of_the_uninterrupted_run(tmp_path, options):
    options += ("--lr-decay", 0.9)
    succeeds("train", *options, "--epochs", 3, "--out", "whole")
    succeeds("train", *options, "--epochs", 1, "--out", "parts")
    said = succeeds("train", "--resume", "parts", "--epochs", 3)
    assert [line.split()[0] for line in said.splitlines()[3:5]] == ["2/3", "3/3"]
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")
    with (tmp_path / "parts/metrics.csv").open() as file:
        assert [row["epoch"] for row in csv.DictReader(file)] == ["1", "2", "3"]


def test_a_checkpoint_may_be_continued_in_another_folder(tmp_path):
    succeeds(*SPIRALS, "--epochs", 1, "--out", "first")
    before = (tmp_path / "first/checkpoint.npz").read_bytes()
    command = ("train", "--resume", "first/checkpoint.npz", "--epochs", 2, "--out")
    succeeds(*command, "second")
    succeeds(*SPIRALS, "--epochs", 2, "--out", "whole")
    assert_same_bits(tmp_path / "second", tmp_path / "whole")
    assert (tmp_path / "first/checkpoint.npz").read_bytes() == before
    assert "whole holds a run already" in refused(*command, "whole")


def test_checkpoints_within_an_epoch_come_as_often_as_asked(monkeypatch):
    steps = []
    monkeypatch.setattr(Checkpoint, "save", lambda state, path: steps.append(state.within_epoch.get("step", 0)))
    succeeds(*SPIRALS, "--epochs", 1, "--batch-size", 100, "--save-every", 3, "--out", "out")
    assert steps[:4] == [0, 3, 6, 0]
    assert "LocalSGD" in refused(*SPIRALS, "--nodes", 2, "--strategy", "local_sgd", "--save-every", 3)


def test_a_run_in_16_bits_is_resumed_to_the_same_bits_or_goes_on_in_float32(tmp_path):
    options = (*SPIRALS, "--nodes", 2, "--precision", "float16")
    assert "in float16" in succeeds(*options, "--epochs", 2, "--out", "whole")
    succeeds(*options, "--epochs", 1, "--out", "parts")
    succeeds("train", "--resume", "parts", "--epochs", 2)
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")
    for epochs, precision in enumerate(("float32", "bfloat16"), start=3):
        succeeds("train", "--resume", "parts", "--epochs", epochs, "--precision", precision)
        weights = Checkpoint.load(tmp_path / "parts/checkpoint.npz").model.values()
        assert {str(array.dtype) for array in weights} == {precision}


def test_a_run_goes_on_with_another_device_memory_or_by_a_strategy_that_counts_none(tmp_path):
    sharded = ("--strategy", "sharded:stage=3,offload=offload(all)")
    succeeds(*SPIRALS, "--nodes", 2, *sharded, "--device-memory", "0.7MB@3us/0.7GB", "--epochs", 1, "--out", "run")
    more = ("train", "--resume", "run", "--nodes", 4, "--epochs")
    assert "device memory 53kB@3us/0.7GB" in succeeds(*more, 2, "--device-memory", "53kB@3us/0.7GB")
    hybrid = ("--strategy", "hybrid:dp=2,tp=2,shard=3")
    assert "give --strategy sharded, or --device-memory none" in refused(*more, 3, *hybrid)
    assert "device memory" not in succeeds(*more, 3, *hybrid, "--device-memory", "none")
    assert Checkpoint.load(tmp_path / "run/checkpoint.npz").epoch == 3


def test_a_run_goes_on_on_another_number_of_nodes(tmp_path):
    four = ("--nodes", 4, "--strategy", "synchronous:algorithm=ordered")
    succeeds(*SPIRALS, "--out", "whole", *four, "--epochs", 3)
    succeeds(*SPIRALS, "--out", "parts", "--strategy", "serial:shards=4", "--epochs", 1)
    first = Checkpoint.load(tmp_path / "parts/checkpoint.npz")
    succeeds("train", "--resume", "parts", "--epochs", 3, *four)
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")
    last = Checkpoint.load(tmp_path / "parts/checkpoint.npz")
    assert last.history[:1] == first.history
    assert (first.config["nodes"], last.config["nodes"]) == (1, 4)
    succeeds(*SPIRALS, "--nodes", 2, "--epochs", 1, "--out", "run")
    for epochs, nodes in enumerate((1, 4), start=2):  # which choose the strategy
        succeeds("train", "--resume", "run", "--epochs", epochs, "--nodes", nodes)
    assert [row["epoch"] for row in Checkpoint.load(tmp_path / "run/checkpoint.npz").history] == [1, 2, 3]


def test_a_simulated_run_goes_on_with_its_virtual_clock(tmp_path):
    options = ("--nodes", 4, "--network", "10gbe")
    succeeds(*SPIRALS, *options, "--epochs", 3, "--out", "whole")
    succeeds(*SPIRALS, *options, "--epochs", 2, "--out", "parts")
    assert "network 10gbe" in succeeds("train", "--resume", "parts", "--epochs", 3)
    assert_same_bits(tmp_path / "whole", tmp_path / "parts")
    whole, parts = (Checkpoint.load(tmp_path / name / "checkpoint.npz").history for name in ("whole", "parts"))
    assert parts[1]["seconds"] == whole[1]["seconds"]
    assert parts[2]["seconds"] == pytest.approx(whole[2]["seconds"], rel=0.05)  # the weights are sent to all once more


def test_the_checkpoint_of_a_former_version_goes_on(tmp_path):
    succeeds("train", "--model", "mlp", "--data", "spirals", "--epochs", 1, "--nodes", 2, "--out", "out")
    path = tmp_path / "out/checkpoint.npz"
    checkpoint = Checkpoint.load(path)
    for name in ADDED:
        del checkpoint.config[name]
    checkpoint.save(path)
    succeeds("train", "--resume", "out", "--epochs", 2)
    assert Checkpoint.load(path).epoch == 2
