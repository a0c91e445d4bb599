"""Help, examples and completion: what a user meets before the first run."""

from __future__ import annotations

import re
import shlex
import sys

import pytest

import minidl as package
from minidl import data, kernels
from minidl.cli import engines
from minidl.cli.app import EXAMPLES
from minidl.cli.models import MODELS
from minidl.cli.simulate.cases import ALGORITHMS
from minidl.cluster.cost.network import PRESETS
from tests.cli.command import minidl, refused, succeeds

pytestmark = pytest.mark.timeout(600)

OF_TRAINING = (*MODELS, *data.NAMES, *kernels.NAMES, *PRESETS, *engines.ENGINES)
NAMED = {
    "train": OF_TRAINING,
    "compare": (*OF_TRAINING, "strategies", "slow", "jitter", "target", "list"),
    "simulate": (*ALGORITHMS, *PRESETS, "ALGORITHM", "NODES", "virtual"),
}
"""Words on the page of help: every model, data set, network and collective, and options."""


def test_version_and_help(tmp_path):
    assert succeeds("--version") == f"minidl {package.__version__}\n"
    nothing = minidl(tmp_path)
    assert nothing.returncode == 2
    for page in (nothing.stdout + nothing.stderr, succeeds("--help"), succeeds("train", "-h")):
        assert page.startswith("Usage: minidl")
        assert max(map(len, page.splitlines())) <= 80


@pytest.mark.parametrize("command", EXAMPLES)
def test_help_fits_the_terminal_names_everything_and_shows_the_examples_unbroken(command):
    page = succeeds(command, "--help")
    assert max(map(len, page.splitlines())) <= 80
    assert set(NAMED.get(command, ())) <= set(re.findall(r"\w+", page))
    assert "Examples:" in page
    for line in EXAMPLES[command].strip().splitlines():
        assert f"  {line}\n" in page


def test_tab_offers_commands_and_values(tmp_path):
    (tmp_path / "net.json").write_text("{}")
    offered = {
        "s": ["schedule", "simulate"],
        "train --model ": ["mlp", "resnet", "gpt"],
        "train --data g": ["glyphs"],
        "train --network ": ["1gbe", "nvlink", "net.json"],
        "train --strategy loc": ["local_sgd"],
        "train --optimizer ada": ["adagrad", "adam", "adamw"],
        "train --kernels n": ["numpy", "numba"],
        "compare --networks ": ["1gbe", "net.json"],
        "compare --strategies par": ["parameter_server"],
        "compare --on ": ["processes", "simulation", "mpi"],
        "simulate --collective b": ["broadcast", "barrier"],
        "simulate --algorithm r": ["ring", "rabenseifner"],
        "schedule gpipe z": ["zb-h1", "zb-v"],
        "calibrate --pattern ": ["ping-pong", "exchange"],
    }
    for words, some in offered.items():
        asked = {"_MINIDL_COMPLETE": "complete_bash", "COMP_WORDS": f"minidl {words}"}
        done = minidl(tmp_path, **asked, COMP_CWORD=str(len(words.split(" "))))
        assert set(some) <= set(done.stdout.split()), words


def test_a_mistyped_command_or_option_is_answered_with_the_nearest():
    assert "Did you mean 'train'?" in refused("trian")
    assert "--nodes" in refused("train", "--ndoes", 4)
    assert "--lr" not in refused("simulate", "--learning-rate", 1)
    for words in (("--nodes", "four"), ("--epochs", "2.5"), ("--lr", "fast"), ("--nodes",)):
        assert words[0] in refused("train", *words)


def test_an_error_is_red_and_is_not_broken_into_lines(monkeypatch):
    err = refused("train", "--model", "resnte", COLUMNS="40", FORCE_COLOR="1", TERM="xterm-256color")
    assert err == (
        "\x1b[31mminidl train: --model must be 'mlp', 'lenet', 'resnet', 'alexnet', 'vgg16' or 'gpt', got 'resnte': "
        "did you mean 'resnet'?\x1b[0m\n"
    )


def test_without_tensorboardx_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    assert "pip install 'minidl[tensorboard]'" in refused("train", "--model", "mlp", "--tensorboard")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "own"),
    [
        ("train --learning_rate=3", "--lr"),
        ("compare --strategies serial --learning-rate 3", "--lr"),
        ("train --workers 2", "--nodes"),
    ],
)
def test_an_option_by_the_name_that_others_give_it_is_answered_with_its_own(words, own):
    assert f"(Possible options: {own})" in refused(*shlex.split(words))


def test_an_option_that_the_command_has_by_no_name_is_answered_without_one():
    assert refused("schedule", "--learning-rate", 3).strip().endswith("No such option: --learning-rate")
