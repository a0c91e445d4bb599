"""What a run of `minidl train` leaves and says: config.json, metrics.csv, --config, --json, --quiet, TensorBoard."""

from __future__ import annotations

import contextvars
import csv
import json
import re
import signal
import sys
from pathlib import Path

import pytest

import minidl as package
from minidl.cli.app import app
from minidl.cli.optimizers import OPTIMIZERS, parse
from tests.cli.command import QUICK, ROOT, SLOW, assert_same_bits, minidl, refused, start, wait_for
from tests.tiers import all_but_first_exhaustive

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def train(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What the command, called in this process, prints."""
    with pytest.raises(SystemExit) as ending:
        contextvars.Context().run(app, ["train", "--model", "mlp", *map(str, arguments)], prog_name="minidl")
    assert ending.value.code == 0, capsys.readouterr().err
    return capsys.readouterr().out


def config(folder: Path) -> dict:
    return json.loads((folder / "config.json").read_text())


# ---- files ----


def test_ctrl_c_leaves_the_configuration_and_the_metrics_of_the_epochs_so_far(tmp_path):
    process = start(tmp_path, "train", *SLOW[:2], "--epochs", 1000, "--out", "out")
    wait_for(tmp_path / "out" / "metrics.csv")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=100)
    assert process.returncode == 130
    with (tmp_path / "out" / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["epoch"]) for row in rows] == list(range(1, len(rows) + 1))
    assert rows
    assert config(tmp_path / "out")["epochs"] == 1000


def test_the_configuration_says_versions_commit_and_command(tmp_path):
    assert minidl(tmp_path, "train", *QUICK, "--seed", 3, "--out", "out").returncode == 0
    made_with = config(tmp_path / "out")["environment"]
    assert made_with["python"] == sys.version.split()[0]
    assert set(made_with) == {"minidl", "numpy", "numba", "python", "commit", "command"}
    assert made_with["command"].endswith(f"train {' '.join(QUICK)} --seed 3 --out out")
    if (ROOT / ".git").exists():
        assert re.fullmatch(r"[0-9a-f]{40}\+?", made_with["commit"])


def test_the_metrics_of_a_resumed_run_hold_all_epochs(capsys, tmp_path):
    train(capsys, "--epochs", 2, "--out", "out")
    train(capsys, "--resume", "out", "--epochs", 3)
    with (tmp_path / "out" / "metrics.csv").open(newline="") as file:
        assert [row["epoch"] for row in csv.DictReader(file)] == ["1", "2", "3"]
    assert config(tmp_path / "out")["epochs"] == 3


# ---- --config ----


def test_the_configuration_of_a_run_given_back_makes_the_same_run(capsys, tmp_path):
    words = ("--nodes", 2, "--on", "simulation", "--network", "10gbe", "--lr", 0.1, "--optimizer", "sgd:nesterov=true")
    train(capsys, "--epochs", 2, *words, "--out", "first")
    train(capsys, "--config", "first/config.json", "--out", "again")
    assert_same_bits(tmp_path / "first", tmp_path / "again")
    first, again = config(tmp_path / "first"), config(tmp_path / "again")
    first.pop("environment"), again.pop("environment")
    assert first == again


def test_the_command_line_goes_before_the_file_which_may_be_yaml_with_hyphens(capsys, tmp_path):
    (tmp_path / "my.yaml").write_text("model: mlp\nepochs: 1\nbatch-size: 32  # samples\nlr: 1.0e-2\n")
    train(capsys, "--config", "my.yaml", "--batch-size", 16, "--out", "out")
    found = config(tmp_path / "out")
    assert (found["model"], found["epochs"], found["batch_size"], found["lr"]) == ("mlp", 1, 16, 0.01)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("epoch: 3", "--config my.yaml: an option must be"),
        ("epoch: 3", "got 'epoch': did you mean 'epochs'?"),
        ("epochs: many", "--config my.yaml: epochs must be a whole number or None, got 'many'"),
        ("epochs: 2.5", "epochs must be a whole number or None, got 2.5"),
        ("nodes: true", "nodes must be a whole number, got True"),
        ("out: here", "--config my.yaml: an option must be"),
        ("- epochs", "--config my.yaml must hold options by name, such as: nodes: 4"),
        ("", "--config my.yaml must hold options by name"),
        ("a: [", "--config my.yaml is no YAML file: "),
        ("model: mpl", "--model must be"),
        ("nodes: 0", "--nodes must be at least 1, got 0"),
        ("lr: 1e-3", "lr must be a number or None, got '1e-3', which YAML reads as text: write 1.0e-3"),
        ("lr: 1.25e2", "got '1.25e2', which YAML reads as text: write 1.25e+2"),
        ("nodes: 1e1", "nodes must be a whole number, got '1e1'\n"),
        ("batch-size: 32\nbatch_size: 16", "batch_size is given twice, with a hyphen and with an underscore"),
        ("nodes: " + "[" * 1000, "--config my.yaml is no YAML file: maximum recursion depth exceeded"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused_in_one_sentence(capsys, text, sentence):
    Path("my.yaml").write_text(text)
    err = refused(capsys, "train", "--config", "my.yaml")
    assert err.startswith("minidl train: ")
    assert sentence in err
    assert not Path("runs").exists()


def test_a_file_that_is_missing_or_beside_resume_is_refused(capsys, tmp_path):
    assert "gone.yaml" in refused(capsys, "train", "--config", "gone.yaml")
    Path("my.yaml").write_text("epochs: 1")
    err = refused(capsys, "train", "--config", "my.yaml", "--resume", "out")
    assert "--resume goes on with the options of that run: leave out --config" in err


# ---- what is printed ----


def test_json_is_all_that_is_printed(tmp_path):
    result = minidl(tmp_path, "train", *QUICK, "--nodes", 2, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert [row["epoch"] for row in found["history"]] == [1, 2]
    assert (found["nodes"], found["clock"]) == (2, "measured")
    assert found["accuracy"] == found["history"][-1]["accuracy"]
    assert (tmp_path / found["folder"] / "checkpoint.npz").exists()


def test_quiet_prints_nothing_but_errors(tmp_path):
    result = minidl(tmp_path, "train", *QUICK, "--quiet")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    result = minidl(tmp_path, "train", "--quiet", "--model", "mpl")
    assert (result.returncode, result.stdout) == (2, "")
    assert "did you mean 'mlp'?" in result.stderr


def test_the_summary_says_whose_and_over_what_its_figures_are(capsys, tmp_path):
    said = train(capsys, "--epochs", 1, "--nodes", 2, "--on", "simulation")
    for label in ("time, simulated", "samples/s, last epoch", "time of all nodes", "sent by node 0, in all"):
        assert label in said
    assert re.search(r"time, simulated +│ [\d.]+ ms ", said)  # not 0.0 seconds
    assert "a node's compute/communicate/wait" in said
    assert max(map(len, said.splitlines()[:-1])) <= 80
    assert said.count("│") == 3 * 6  # no row is broken


@pytest.mark.parametrize("backend", all_but_first_exhaustive(["module://nope", "nonsense", "TkAgg"]))
def test_pictures_are_drawn_whatever_backend_the_environment_names(tmp_path, backend):
    result = minidl(tmp_path, "train", *QUICK, "--out", "out", MPLBACKEND=backend)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out" / "loss.png").read_bytes().startswith(b"\x89PNG")


# ---- the optimizer, the speed of nodes ----


@pytest.mark.parametrize("name", all_but_first_exhaustive(list(OPTIMIZERS)))
def test_every_optimizer_that_is_exported_trains_by_name(capsys, tmp_path, name):
    words = ("--optimizer", name, *(("--lr", 1.0) if name == "lars" else ()))
    said = train(capsys, "--epochs", 2, *words, "--out", "out")
    assert said.splitlines()[1].startswith(f"minibatch 64, {name}, learning rate ")
    with (tmp_path / "out" / "metrics.csv").open(newline="") as file:
        losses = [float(row["loss"]) for row in csv.DictReader(file)]
    assert losses[-1] < losses[0]


def test_the_names_are_those_of_the_library():
    exported = {name for name in package.optim.__all__ if isinstance(getattr(package.optim, name), type)}
    optimizers = {name for name in exported if issubclass(getattr(package.optim, name), package.optim.Optimizer)}
    assert {cls.__name__ for cls in OPTIMIZERS.values()} == optimizers - {"Optimizer"}


def test_naming_the_models_own_optimizer_changes_nothing(capsys, tmp_path):
    train(capsys, "--epochs", 2, "--out", "default")
    train(capsys, "--epochs", 2, "--optimizer", "sgd", "--out", "named")
    assert_same_bits(tmp_path / "default", tmp_path / "named")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--optimizer", "adma"), "--optimizer must be 'adagrad', 'adam', 'adamw', "),
        (("--optimizer", ""), "'' is no optimizer: write a name, or name:setting=value,setting=value"),
        (("--optimizer", "adam:beta=1"), "a setting of adam must be"),
        (("--optimizer", "adam:lr=fast"), "adam: lr must be a number, got fast"),
        (("--optimizer", "adam:betas=(2,0.9)"), "--optimizer adam:betas=(2,0.9): "),
        (("--optimizer", "lars"), "LARS has no usual learning rate: give --lr"),
        (("--optimizer", "adam", "--momentum", 0.9), "Adam has no momentum: leave out --momentum"),
        (("--optimizer", "sgd:lr=0.1", "--lr", 0.2), "--lr 0.2 and lr=0.1 in --optimizer: give one of them"),
        (("--flops", 1e9), "--flops is the speed of a simulated node: leave it out, or give --on simulation"),
        (("--flops", 0, "--on", "simulation"), "--flops must be above 0"),
    ],
)
def test_an_optimizer_or_a_speed_that_cannot_be_is_refused_in_one_sentence(capsys, words, sentence):
    assert sentence in refused(capsys, "train", "--model", "mlp", *words)
    assert not Path("runs").exists()


def test_settings_are_read_as_those_of_strategies():
    assert parse("adamw:betas=(0.8,0.9),lr=0.01")[1] == {"betas": (0.8, 0.9), "lr": 0.01}


def test_a_slower_node_takes_longer_in_proportion(capsys, tmp_path):
    seconds = {}
    for flops in (1e9, 1e8):
        words = ("--on", "simulation", "--flops", flops, "--epochs", 1, "--json")
        seconds[flops] = json.loads(train(capsys, *words))["seconds"]
    assert 5 < seconds[1e8] / seconds[1e9] <= 10


# ---- TensorBoard ----


def test_without_tensorboardx_the_message_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    assert "pip install 'minidl[tensorboard]'" in refused(capsys, "train", *QUICK, "--tensorboard")
    assert not Path("runs").exists()


def test_tensorboard_gets_a_row_an_epoch(capsys, tmp_path):
    pytest.importorskip("tensorboardX", reason="needs the extra tensorboard")
    train(capsys, "--epochs", 2, "--tensorboard", "--out", "out")
    (events,) = (tmp_path / "out").glob("events.out.tfevents.*")
    assert events.read_bytes().count(b"loss/test") == 2
