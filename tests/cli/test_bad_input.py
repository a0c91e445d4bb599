"""What cannot be done is said in one clear sentence, with exit code 2 and never a traceback."""

import errno
import os
import re
import resource
import subprocess
import sys

import numpy as np
import pytest

from minidl import data, kernels, nn, optim, parallel
from minidl.cli import engines
from minidl.cli.models import MODELS
from minidl.cli.simulate.cases import ALGORITHMS
from minidl.cluster.cost.presets import PRESETS
from minidl.parallel import Checkpoint
from tests.cli.command import environment, minidl, refused
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINIDL_KERNELS", "numpy")
    with kernels.use("numpy"):  # for what the test itself computes; the first kernel that is called stays in use
        yield


# ---- names ----


@pytest.mark.parametrize(
    ("option", "name", "sentence"),
    [
        (
            "--model",
            "resnte",
            "'lenet', 'resnet', 'alexnet', 'vgg16' or 'gpt', got 'resnte': did you mean 'resnet'?",
        ),
        ("--data", "digit", "got 'digit': did you mean 'digits'?"),
        ("--kernels", "nunba", "--kernels must be 'numpy', 'numba' or 'cupy', got 'nunba': did you mean 'numba'?"),
        ("--algorithm", "rign", "got 'rign': did you mean 'ring'?"),
        ("--model", "xyz", "'vgg16' or 'gpt', got 'xyz': one of your own needs --import FILE.py"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_one(capsys, option, name, sentence):
    err = refused(capsys, "train", option, name)
    assert err.startswith(f"minidl train: {option} must be ")
    assert sentence in err
    assert err.count("\n") == 1


def test_an_unknown_name_in_the_environment_is_refused(capsys, monkeypatch):
    monkeypatch.setenv("MINIDL_KERNELS", "foo")
    assert "MINIDL_KERNELS must be 'numpy', 'numba' or 'cupy', got 'foo'" in refused(capsys, "train")


def test_an_unknown_command_or_option_is_refused_with_the_nearest_one(capsys):
    assert "Did you mean 'train'?" in refused(capsys, "trian")
    assert "--nodes" in refused(capsys, "train", "--ndoes", 4)


# ---- numbers ----


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--nodes", 0), "--nodes must be at least 1, got 0"),
        (("--nodes", -4), "--nodes must be at least 1, got -4"),
        (("--nodes", 65), "at most 64 nodes run on one machine, got --nodes 65"),
        (("--epochs", 0), "--epochs must be at least 1, got 0"),
        (("--epochs", -1), "--epochs must be at least 1, got -1"),
        (("--batch-size", 0), "--batch-size must be at least 1, got 0"),
        (("--batch-size", -64), "--batch-size must be at least 1, got -64"),
        (("--nodes", 4, "--batch-size", 3), "3 samples cannot be shared by 4 nodes: give --batch-size 4 or more"),
        (("--seed", -1), "--seed must be at least 0, got -1"),
        (("--lr", 0), "--lr must be above 0, got 0.0"),
        (("--lr", -0.1), "--lr must be above 0, got -0.1"),
        (("--lr", "nan"), "--lr must be finite and above 0, got nan"),
        (("--lr", "inf"), "--lr must be finite and above 0, got inf"),
        (("--lr-decay", 0), "--lr-decay must be above 0, got 0.0"),
        (("--bucket-mb", 0), "--bucket-mb must be above 0, got 0.0"),
        (("--bucket-mb", "nan"), "--bucket-mb must be finite and above 0, got nan"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_number_out_of_range_is_refused(capsys, tmp_path, arguments, sentence):
    assert refused(capsys, "train", *arguments).endswith(f"{sentence}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("--nodes", "four"), ("--epochs", "2.5"), ("--lr", "fast"), ("--nodes",)])
def test_what_is_no_number_is_refused(capsys, arguments):
    assert arguments[0] in refused(capsys, "train", *arguments)


# ---- strategies, engines and networks ----


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--strategy", "synchronus"), "got 'synchronus': did you mean 'synchronous'?"),
        (("--strategy", "synchronous:bucket=1"), "got 'bucket': did you mean 'bucket_mb'?"),
        (("--strategy", "synchronous:bucket_mb=0"), "Synchronous: bucket_mb must be above 0, got 0"),
        (("--strategy", "serial", "--nodes", 2), "Serial trains on one node, not on 2"),
        (("--strategy", "synchronous", "--algorithm", "ring"), "write them as its settings: --strategy synchronous:"),
        (("--strategy", "synchronous", "--bucket-mb", 2), "write them as its settings: --strategy synchronous:"),
        (
            ("--strategy", "parameter_server", "--nodes", 64),
            "at most 64 nodes run on one machine, got --nodes 64 and 1 server",
        ),
        (("--strategy", "gossip", "--nodes", 4, "--batch-size", 3), "give --batch-size 4 or more"),
        (
            ("--on", "simulator"),
            "--on must be 'processes', 'simulation' or 'mpi', got 'simulator': did you mean 'simulation'?",
        ),
        (("--momentum", 1), "momentum must be at least 0 and below 1, got 1.0"),
        (("--momentum", "nan"), "momentum must be finite and at least 0 and below 1, got nan"),
        (("--strategy", "synchronous:lr=0.5", "--lr", 0.4), "--lr 0.4 and lr=0.5 in --strategy: give one of them"),
        (("--strategy", "synchronous:momentum=fast"), "synchronous: momentum must be a number, got fast"),
        (("--strategy", "synchronous:lr=0"), "synchronous:lr=0: lr must be above 0, got 0"),
        (("--network", "10gb"), "got '10gb': did you mean '10gbe'?"),
        (("--on", "simulation", "--nodes", 1025, "--batch-size", 1025), "at most 1024 nodes are simulated"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_strategy_or_place_that_does_not_fit_is_refused(capsys, tmp_path, arguments, sentence):
    err = refused(capsys, "train", "--model", "mlp", *arguments)
    assert sentence in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("refused_words", "advice", "accepted_words"),
    [
        (
            ("--strategy", "synchronous:compressor=dgc(0.1)"),
            "; here: --momentum 0",
            ("--strategy", "synchronous:compressor=dgc(0.1)", "--momentum", 0),
        ),
        *exhaustively(
            (
                ("--strategy", "synchronous:compressor=dgc(0.1),momentum=0.5"),
                "; here: momentum=0 as the setting of the strategy",
                ("--strategy", "synchronous:compressor=dgc(0.1),momentum=0"),
            ),
            (
                ("--strategy", "elastic_averaging:momentum=0.9"),
                "; here: --momentum 0",
                ("--strategy", "elastic_averaging:momentum=0.9", "--momentum", 0),
            ),
        ),
    ],
)
def test_what_has_momentum_of_its_own_is_refused_with_words_that_are_accepted(
    capsys, tmp_path, refused_words, advice, accepted_words
):
    command = ("train", "--model", "mlp", "--epochs", 1, "--nodes", 2, "--on", "simulation")
    assert refused(capsys, *command, *refused_words).endswith(f"{advice}\n")
    result = minidl(tmp_path, *command, *accepted_words, "--out", "out")
    assert result.returncode == 0, result.stderr


def test_a_model_that_is_not_trained_by_sgd_is_named_where_sgd_is_needed(capsys):
    command = ("train", "--model", "gpt", "--data", "stdlib_text", "--nodes", 2)
    err = refused(capsys, *command, "--strategy", "synchronous:compressor=dgc(0.1)")
    assert "gpt is trained by AdamW: choose a --model that is trained by SGD, mlp, lenet, resnet" in err
    err = refused(capsys, *command, "--momentum", 0.5)
    assert "gpt is trained by AdamW, not by SGD: leave out momentum, got 0.5" in err


def test_a_run_that_cannot_go_on_says_so(capsys, tmp_path):
    command = ("train", "--model", "mlp", "--nodes", 2, "--epochs", 1, "--strategy", "local_sgd", "--on", "simulation")
    assert minidl(tmp_path, *command, "--out", "run").returncode == 0
    err = refused(capsys, "train", "--resume", "run", "--epochs", 2)
    assert (
        err == "minidl train: a run of local_sgd cannot go on: its checkpoint holds the model only; start a new run\n"
    )
    err = refused(capsys, "train", "--resume", "run", "--strategy", "gossip", "--epochs", 2)
    assert "a run of local_sgd cannot go on" in err
    for option, value, former in (("--on", "processes", "simulation"), ("--network", "1gbe", "none")):
        err = refused(capsys, "train", "--resume", "run", option, value, "--epochs", 2)
        assert f"is of a run with {option} {former}, not {value}" in err


# ---- models and data ----


@pytest.mark.parametrize(
    ("model", "data_set", "sentence"),
    [
        ("lenet", "spirals", "lenet reads images of 8x8, 28x28 or 32x32 pixels, but the samples of this data have"),
        ("resnet", "spirals", "resnet reads images, but the samples of this data have shape (2,)"),
        ("lenet", "stdlib_text", "lenet reads images"),
        ("mlp", "stdlib_text", "mlp reads numbers, not text: choose --model gpt"),
        ("gpt", "digits", "gpt reads text: choose --data stdlib_text"),
        ("gpt", "spirals", "gpt reads text: choose --data stdlib_text"),
    ],
)
def test_a_model_that_does_not_fit_the_data_is_refused(capsys, tmp_path, model, data_set, sentence):
    assert sentence in refused(capsys, "train", "--model", model, "--data", data_set)
    assert list(tmp_path.iterdir()) == []


def test_without_a_network_the_sentence_says_which_files_to_put_where(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("MINIDL_DATA", str(tmp_path / "data"))

    def no_network(*args, **kwargs):
        raise OSError("Network is unreachable")

    monkeypatch.setattr("urllib.request.urlopen", no_network)
    err = refused(capsys, "train", "--model", "lenet", "--data", "mnist")
    assert "Without a network, fetch these elsewhere and put them" in err
    assert f"into {tmp_path}/data/mnist: https://" in err
    assert "train-images-idx3-ubyte.gz" in err
    assert err.count("\n") == 1


def test_a_damaged_data_file_is_named(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("MINIDL_DATA", str(tmp_path))
    (tmp_path / "mnist").mkdir()
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (tmp_path / f"mnist/{name}-ubyte").write_bytes(b"not what it says")
    err = refused(capsys, "train", "--data", "mnist")
    assert "mnist/train-images-idx3-ubyte" in err
    assert err.count("\n") == 1


def test_kernels_whose_package_is_missing_are_refused(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # import cupy raises ImportError
    assert "the cupy kernels need the package CuPy and an NVIDIA GPU" in refused(capsys, "train", "--kernels", "cupy")


# ---- checkpoints ----


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished run of two epochs."""
    folder = tmp_path_factory.mktemp("finished")
    assert minidl(folder, "train", "--model", "mlp", "--epochs", 2, "--out", "run").returncode == 0
    return folder / "run"


@pytest.fixture
def checkpoint(finished, tmp_path):
    """A copy of its checkpoint, to be damaged."""
    path = tmp_path / "checkpoint.npz"
    path.write_bytes((finished / "checkpoint.npz").read_bytes())
    return path


def test_a_missing_checkpoint_is_named(capsys):
    assert refused(capsys, "train", "--resume", "gone") == "minidl train: there is no checkpoint at gone\n"
    os.mkdir("empty")
    assert "no checkpoint at empty/checkpoint.npz" in refused(capsys, "train", "--resume", "empty")


def damage(content: bytes, how: str) -> bytes:
    return {
        "empty": b"",
        "truncated": content[: len(content) // 2],
        "one bit flipped": content[:20_000] + bytes([content[20_000] ^ 1]) + content[20_001:],
        "text": b"epoch,loss\n1,0.5\n",
        "a zip file of something else": b"PK\x05\x06" + bytes(18),
    }[how]


@pytest.mark.parametrize("how", ["empty", "truncated", "one bit flipped", "text", "a zip file of something else"])
def test_a_damaged_checkpoint_is_refused(capsys, checkpoint, how):
    checkpoint.write_bytes(damage(checkpoint.read_bytes(), how))
    err = refused(capsys, "train", "--resume", checkpoint, "--epochs", 3)
    assert f"{checkpoint} is damaged, or no checkpoint (" in err
    assert err.count("\n") == 1


def test_a_single_array_is_no_checkpoint(capsys, tmp_path):
    np.save(tmp_path / "array.npy", np.ones(3))
    assert "is damaged, or no checkpoint" in refused(capsys, "train", "--resume", "array.npy")


@pytest.mark.parametrize("config", [{"model": "mine"}, {"model": ["mine"]}], ids=["a word", "a list"])
def test_the_checkpoint_of_another_program_is_refused(capsys, tmp_path, config):
    job = parallel.Job(
        lambda: nn.models.MLP(2, 4, 3), lambda: data.spirals(30), lambda p: optim.SGD(p, lr=0.1), epochs=1
    )
    parallel.train(job, folder=tmp_path, config=config)
    assert "was not written by `minidl train`" in refused(capsys, "train", "--resume", tmp_path)


def test_the_checkpoint_of_another_model_is_refused(capsys, checkpoint):
    err = refused(capsys, "train", "--resume", checkpoint, "--model", "lenet", "--epochs", 3)
    assert f"{checkpoint} is of a run with --model mlp, not lenet: only --epochs, --nodes, " in err
    assert "may change; leave out --model" in err


def test_a_run_does_not_go_on_by_a_strategy_whose_state_is_in_no_checkpoint(capsys, checkpoint):
    command = ("train", "--resume", checkpoint, "--epochs", 3, "--nodes", 2, "--strategy")
    assert "a run cannot go on by --strategy local_sgd, whose nodes have state" in refused(
        capsys, *command, "local_sgd"
    )
    assert "at most 64 nodes run on one machine, got --nodes 65" in refused(capsys, *command[:-3], "--nodes", 65)
    assert "and lr=0.3 in --strategy: give one of them" in refused(capsys, *command, "serial:lr=0.3")


def test_weights_that_do_not_fit_their_configuration_are_refused(capsys, checkpoint):
    other = Checkpoint.load(checkpoint)
    other.config["model"] = "lenet"
    other.save(checkpoint)
    assert "the checkpoint is of another model" in refused(capsys, "train", "--resume", checkpoint, "--epochs", 3)


def test_a_finished_run_says_that_more_epochs_must_be_asked_for(capsys, finished):
    for arguments in ((), ("--epochs", 2), ("--epochs", 1)):
        err = refused(capsys, "train", "--resume", finished, *arguments)
        assert err.endswith("checkpoint.npz has 2 epochs already: give --epochs 3 or more\n")


# ---- the run folder ----


def test_a_folder_that_holds_a_run_is_not_overwritten(capsys, finished):
    before = (finished / "checkpoint.npz").read_bytes()
    err = refused(capsys, "train", "--model", "mlp", "--out", finished)
    assert f"{finished} holds a run already: go on with it by --resume {finished}" in err
    assert (finished / "checkpoint.npz").read_bytes() == before


def test_a_file_in_the_place_of_the_folder_is_named(capsys, tmp_path):
    (tmp_path / "runs").write_text("")
    assert "cannot write into the run folder runs (it is a file): choose another with --out" in refused(capsys, "train")
    assert "cannot write into the run folder runs/a (Not a directory)" in refused(capsys, "train", "--out", "runs/a")


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("folder", ["/proc", "/proc/runs", "/proc/self/fd"])
def test_a_folder_that_takes_no_files_is_refused_to_everyone(capsys, folder):
    assert f"cannot write into the run folder {folder} (" in refused(capsys, "train", "--out", folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(capsys, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "(Permission denied): choose another with --out" in refused(capsys, "train", "--out", "locked")


def test_a_disk_that_is_full_at_the_end_is_said(capsys, monkeypatch):
    def no_space(self, folder):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("minidl.parallel.Report.save", no_space)
    with pytest.raises(SystemExit) as ending:
        from minidl.cli.app import app

        app(["train", "--model", "mlp", "--epochs", "1", "--out", "out"], prog_name="minidl")
    assert ending.value.code == 2
    assert capsys.readouterr().err == "minidl train: cannot read or write out: No space left on device\n"


def test_a_disk_that_fills_up_during_training_is_said_and_the_last_checkpoint_stays(tmp_path):
    def small_disk():
        limit = 450_000  # room for the weights, not for the momentum too
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    result = subprocess.run(
        [sys.executable, "-m", "minidl", "train", "--model", "resnet", "--out", "out"],
        cwd=tmp_path,
        env=environment(),
        preexec_fn=small_disk,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 2
    assert result.stderr == "minidl train: cannot read or write out/checkpoint.npz: File too large\n"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["checkpoint.npz", "config.json"]
    assert Checkpoint.load(tmp_path / "out/checkpoint.npz").epoch == 0


# ---- as a user sees it ----


def test_the_sentence_is_all_that_a_user_sees(tmp_path):
    result = minidl(tmp_path, "train", "--nodes", 4, "--batch-size", 3)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == (
        "minidl train: a minibatch of 3 samples cannot be shared by 4 nodes: give --batch-size 4 or more\n"
    )


@pytest.mark.parametrize("nodes", [1, 4])
def test_a_loss_that_is_not_finite_ends_with_one_sentence_that_says_where(tmp_path, nodes):
    result = minidl(tmp_path, "train", "--model", "mlp", "--lr", "1e30", "--nodes", nodes, "--out", "out")
    assert result.returncode == 1
    assert re.fullmatch(
        r"minidl train: the loss is (nan|inf) at epoch 1, step \d on rank \d; the first (weight|gradient) that is not "
        r"finite is that of layers\.\d\.(weight|bias); lower the learning rate, or look at the data of this step\n",
        result.stderr,
    )


def test_help_and_no_command_say_what_there_is(tmp_path):
    for arguments in ((), ("--help",), ("train", "--help")):
        result = minidl(tmp_path, *arguments)
        assert (result.stdout + result.stderr).startswith("Usage: minidl")
        assert result.returncode == (0 if arguments else 2)
        assert max(map(len, result.stdout.splitlines()), default=0) <= 80


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("train", (*MODELS, *data.NAMES, *kernels.NAMES, *PRESETS, *engines.ENGINES)),
        ("compare", (*MODELS, *data.NAMES, *kernels.NAMES, *PRESETS, *engines.ENGINES)),
        ("simulate", (*ALGORITHMS, *PRESETS)),
    ],
)
def test_help_names_every_model_data_set_network_and_collective(tmp_path, command, names):
    words = set(re.findall(r"\w+", minidl(tmp_path, command, "--help").stdout))
    assert set(names) <= words
