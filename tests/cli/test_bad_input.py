"""What cannot be done is said in one clear sentence, with exit code 2 and never a traceback."""

import errno
import os
import re
import resource
import sys
from pathlib import Path

import numpy as np
import pytest

from minidl import data, nn, optim, parallel
from minidl.parallel import Checkpoint
from tests.cli.command import minidl, refused, refuses, succeeds


def test_an_unknown_name_is_refused_with_the_nearest_one(monkeypatch):
    refuses(
        "train",
        {
            "--model resnte": "--model must be 'mlp', 'lenet', 'resnet', 'alexnet', 'vgg16' or 'gpt', got 'resnte': "
            "did you mean 'resnet'?",
            "--model xyz": "'vgg16' or 'gpt', got 'xyz': one of your own needs --import FILE.py",
            "--data digit": "got 'digit': did you mean 'digits'?",
            "--algorithm rign": "got 'rign': did you mean 'ring'?",
            "--network 10gb": "got '10gb': did you mean '10gbe'?",
            "--on simulator": "--on must be 'processes', 'simulation' or 'mpi', got 'simulator': "
            "did you mean 'simulation'?",
        },
    )
    monkeypatch.setitem(sys.modules, "cupy", None)  # import cupy raises ImportError
    assert refused("train", "--precision", "bf16").endswith(
        "--precision must be 'float32', 'bfloat16' or 'float16', got 'bf16': did you mean 'bfloat16'?\n"
    )
    assert "the cupy kernels need the package CuPy and an NVIDIA GPU" in refused("train", "--kernels", "cupy")
    unknown = "MINIDL_KERNELS must be 'numpy', 'numba' or 'cupy', got 'foo'"
    assert unknown in refused("train", MINIDL_KERNELS="foo")


def test_a_number_out_of_range_is_refused():
    refuses(
        "train --model mlp",
        {
            "--nodes 0": "--nodes must be at least 1, got 0\n",
            "--nodes 65": "at most 64 nodes run on one machine, got --nodes 65\n",
            "--nodes 1025 --batch-size 1025 --on simulation": "at most 1024 nodes are simulated",
            "--nodes 64 --strategy parameter_server": "at most 64 nodes run on one machine, got --nodes 64 and 1",
            "--epochs -1": "--epochs must be at least 1, got -1\n",
            "--batch-size 0": "--batch-size must be at least 1, got 0\n",
            "--nodes 4 --batch-size 3 --strategy gossip": "give --batch-size 4 or more",
            "--nodes 2 --strategy sharded:stage=4": "Sharded: stage must be from 1 to 3, got 4\n",
            "--nodes 2 --strategy local_sgd:stage=3": "local_sgd has no setting 'stage': it is a setting of sharded\n",
            "--seed -1": "--seed must be at least 0, got -1\n",
            "--lr 0": "--lr must be above 0, got 0.0\n",
            "--lr nan": "--lr must be finite and above 0, got nan\n",
            "--lr-decay 0": "--lr-decay must be above 0, got 0.0\n",
            "--bucket-mb inf": "--bucket-mb must be finite and above 0, got inf\n",
            "--momentum 1": "momentum must be at least 0 and below 1, got 1.0",
            "--flops 1e9": "--flops is the speed of a simulated node: leave it out, or give --on simulation",
            "--flops 0 --on simulation": "--flops must be above 0",
            "--device-memory 2MB@10us/16GB": "--device-memory is that of a simulated node: leave it out, or ",
            "--device-memory 2MB --on simulation": "--device-memory must be SIZE@LATENCY/SPEED, such as 2MB@10us/16GB",
            "--device-memory 2MB@10us/16GB --on simulation": "Serial does not count the bytes of a device: give",
            "--on simulation --strategy sharded:offload=offload": "offload needs a host behind the device: give",
            "--strategy sharded:offload=offload(all)": 'give stage=3, got 1, or an Offload of the "optimizer"',
        },
    )


def test_a_strategy_or_an_optimizer_that_does_not_fit_is_refused():
    refuses(
        "train --model mlp",
        {
            "--strategy serial --nodes 2": "Serial trains on one node, not on 2",
            "--strategy synchronous --algorithm ring": "write them as its settings: --strategy synchronous:",
            "--strategy synchronous --bucket-mb 2": "write them as its settings: --strategy synchronous:",
            "--strategy synchronous:lr=0.5 --lr 0.4": "--lr 0.4 and lr=0.5 in --strategy: give one of them",
            "--strategy gossip --plan pp=2": "both say how to train: give one of them",
            "--optimizer adma": "--optimizer must be 'adagrad', 'adam', 'adamw', ",
            "--optimizer adam:beta=1": "a setting of adam must be",
            "--optimizer adam:lr=fast": "adam: lr must be a number, got fast",
            "--optimizer adam:betas=(2,0.9)": "--optimizer adam:betas=(2,0.9): ",
            "--optimizer lars": "LARS has no usual learning rate: give --lr",
            "--optimizer adam --momentum 0.9": "Adam has no momentum: leave out --momentum",
            "--optimizer sgd:lr=0.1 --lr 0.2": "--lr 0.2 and lr=0.1 in --optimizer: give one of them",
        },
    )


def test_momentum_for_a_strategy_that_has_its_own_is_refused_with_advice_that_works():
    command = ("train", "--model", "mlp", "--data", "spirals", "--epochs", 1, "--nodes", 2, "--on", "simulation")
    dgc, eamsgd = "synchronous:compressor=dgc(0.1)", "elastic_averaging:momentum=0.9"
    for number, (strategy, advice, *accepted) in enumerate(
        [
            (dgc, "; here: --momentum 0", dgc, "--momentum", 0),
            (f"{dgc},momentum=0.5", "; here: momentum=0 as the setting of the strategy", f"{dgc},momentum=0"),
            (eamsgd, "; here: --momentum 0", eamsgd, "--momentum", 0),
        ]
    ):
        assert refused(*command, "--strategy", strategy).endswith(f"{advice}\n")
        succeeds(*command, "--out", number, "--strategy", *accepted)
    by_sgd = ("--optimizer", "sgd:momentum=0")
    for strategy, other in ((dgc, "adam"), ("parameter_server:servers=2", "lars:lr=0.01")):
        error = refused(*command, "--strategy", strategy, "--optimizer", other)
        assert error.endswith(f"; here: {' '.join(by_sgd)}\n")
        succeeds(*command, "--out", other, "--strategy", strategy, *by_sgd)
    refuses(
        "train --model gpt --data stdlib_text --nodes 2",
        {
            f"--strategy {dgc}": "gpt is trained by AdamW: choose a --model that is trained by SGD, mlp, lenet, resnet",
            "--momentum 0.5": "gpt is trained by AdamW, not by SGD: leave out momentum, got 0.5",
        },
    )


def test_a_model_that_does_not_fit_the_data_is_refused():
    refuses(
        "train",
        {
            "--model lenet --data spirals": "lenet reads images of 8x8, 28x28 or 32x32 pixels, but the samples of this "
            "data have",
            "--model resnet --data spirals": "resnet reads images, but the samples of this data have shape (2,)",
            "--model vgg16 --data digits": "vgg16 reads images of 3 colours and 224x224 pixels, which no data set of",
            "--model mlp --data stdlib_text": "mlp reads numbers, not text: choose --model gpt",
            "--model gpt --data digits": "gpt reads text: choose --data stdlib_text",
        },
    )


def test_data_that_cannot_be_fetched_or_read_is_named_with_where_to_put_the_files(tmp_path, monkeypatch):
    def no_network(*args, **kwargs):
        raise OSError("Network is unreachable")

    monkeypatch.setattr("urllib.request.urlopen", no_network)
    err = refused("train", "--model", "lenet", "--data", "mnist", MINIDL_DATA=str(tmp_path / "data"))
    assert "Without a network, fetch these elsewhere and put them" in err
    assert f"into {tmp_path}/data/mnist: https://" in err
    assert "train-images-idx3-ubyte.gz" in err
    assert err.count("\n") == 1
    (tmp_path / "mnist").mkdir()
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (tmp_path / f"mnist/{name}-ubyte").write_bytes(b"not what it says")
    err = refused("train", "--data", "mnist", MINIDL_DATA=str(tmp_path))
    assert "mnist/train-images-idx3-ubyte" in err
    assert err.count("\n") == 1


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished run of two epochs."""
    folder = tmp_path_factory.mktemp("finished")
    words = ("train", "--model", "mlp", "--data", "spirals", "--epochs", 2, "--on", "simulation", "--out", "run")
    assert minidl(folder, *words).returncode == 0
    return folder / "run"


@pytest.fixture
def checkpoint(finished, tmp_path):
    """A copy of its checkpoint, to be damaged."""
    path = tmp_path / "checkpoint.npz"
    path.write_bytes((finished / "checkpoint.npz").read_bytes())
    return path


def test_a_missing_or_damaged_checkpoint_is_named(checkpoint):
    content = checkpoint.read_bytes()
    middle = len(content) // 2
    np.save("array.npy", np.ones(3))
    for damaged in (
        b"",
        content[:middle],
        content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        b"epoch,loss\n1,0.5\n",
        b"PK\x05\x06" + bytes(18),  # a zip file of something else
        Path("array.npy").read_bytes(),
    ):
        checkpoint.write_bytes(damaged)
        err = refused("train", "--resume", checkpoint, "--epochs", 3)
        assert f"{checkpoint} is damaged, or no checkpoint (" in err, damaged[:10]
        assert err.count("\n") == 1
    assert refused("train", "--resume", "gone") == "minidl train: there is no checkpoint at gone\n"
    os.mkdir("empty")
    assert "no checkpoint at empty/checkpoint.npz" in refused("train", "--resume", "empty")


def test_the_checkpoint_of_another_program_is_refused(tmp_path):
    job = parallel.Job(
        lambda: nn.models.MLP(2, 4, 3), lambda: data.spirals(30), lambda p: optim.SGD(p, lr=0.1), epochs=1
    )
    for model in ("a word", ["a list"]):
        parallel.train(job, folder=tmp_path, config={"model": model})
        assert "was not written by `minidl train`" in refused("train", "--resume", tmp_path)


def test_resume_refuses_options_that_would_change_the_run_and_needs_more_epochs(checkpoint, finished):
    refuses(
        f"train --resume {checkpoint}",
        {
            "--epochs 3 --model lenet": f"{checkpoint} is of a run with --model mlp, not lenet: only --epochs, "
            "--nodes, --strategy, --algorithm, --bucket-mb, --precision, --device-memory may change; leave out --model",
            "--epochs 3 --on processes": "is of a run with --on simulation, not processes",
            "--epochs 3 --network 1gbe": "is of a run with --network none, not 1gbe",
            "--epochs 3 --nodes 2 --strategy local_sgd": "cannot resume with --strategy local_sgd: its nodes have "
            "state",
            "--epochs 3 --nodes 1025": "got --nodes 1025",
            "--epochs 3 --nodes 2 --strategy serial:lr=0.3": "and lr=0.3 in --strategy: give one of them",
        },
    )
    for arguments in ((), ("--epochs", 2), ("--epochs", 1)):
        err = refused("train", "--resume", finished, *arguments)
        assert err.endswith("checkpoint.npz has 2 epochs already: give --epochs 3 or more\n")
    other = Checkpoint.load(checkpoint)
    other.config["strategy"] = "local_sgd"
    other.save(checkpoint)
    for words in ((), ("--strategy", "gossip")):
        err = refused("train", "--resume", checkpoint, "--epochs", 3, *words)
        assert err.endswith("a run of local_sgd cannot go on: its checkpoint holds the model only; start a new run\n")
    other.config |= {"strategy": None} | {"model": "lenet", "data": "digits"}
    other.save(checkpoint)
    assert "the checkpoint is of another model" in refused("train", "--resume", checkpoint, "--epochs", 3)


def test_a_folder_that_holds_a_run_is_not_overwritten_and_a_file_in_its_place_is_named(finished):
    before = (finished / "checkpoint.npz").read_bytes()
    err = refused("train", "--model", "mlp", "--out", finished)
    assert f"{finished} holds a run already: go on with it by --resume {finished}" in err
    assert (finished / "checkpoint.npz").read_bytes() == before
    Path("runs").write_text("")
    for words in (("train",), ("simulate", "--nodes", 2, "--algorithm", "ring")):
        assert "cannot write into the run folder runs (it is a file): choose another with --out" in refused(*words)
    assert "cannot write into the run folder runs/a (Not a directory)" in refused("train", "--out", "runs/a")


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_run_folder_in_proc_is_refused_even_to_root():
    for folder in ("/proc", "/proc/runs"):
        assert f"cannot write into the run folder {folder} (" in refused("train", "--out", folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "(Permission denied): choose another with --out" in refused("train", "--out", "locked")


def test_a_disk_that_is_full_when_the_report_is_saved_is_an_error_of_one_line(monkeypatch):
    def no_space(self, folder):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("minidl.parallel.Report.save", no_space)
    err = refused("train", "--model", "mlp", "--data", "spirals", "--epochs", "1", "--out", "out")
    assert err == "minidl train: cannot read or write out: No space left on device\n"


def test_a_disk_that_fills_up_during_training_is_reported_and_the_last_checkpoint_stays(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = 60_000  # bytes: room for the weights, not for the momentum too
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        err = refused("train", "--model", "mlp", "--on", "simulation", "--out", "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert err == "minidl train: cannot read or write out/checkpoint.npz: File too large\n"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["checkpoint.npz", "config.json"]
    assert Checkpoint.load(tmp_path / "out/checkpoint.npz").epoch == 0


@pytest.mark.parametrize("nodes", [1, 4])
def test_a_loss_that_is_not_finite_ends_with_one_sentence_that_says_where(tmp_path, nodes):
    words = ("--model", "mlp", "--data", "spirals", "--lr", "1e30", "--nodes", nodes, "--on", "simulation")
    result = minidl(tmp_path, "train", *words)
    assert result.returncode == 1
    assert re.fullmatch(
        r"minidl train: the loss is (nan|inf) at epoch 1, step \d on rank \d; the first (weight|gradient) that is not "
        r"finite is that of layers\.\d\.(weight|bias); lower the learning rate, or look at the data of this step\n",
        result.stderr,
    )
