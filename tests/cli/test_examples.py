"""Help, examples and completion: what a user meets before the first run."""

from __future__ import annotations

import contextvars
import shlex
from pathlib import Path

import pytest

from minidl.cli.app import app
from minidl.cli.examples import EXAMPLES
from tests.cli.command import minidl
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(600)

QUICK = ("--list", "simulate --nodes", "--kind", "--racks")  # a second or two each


def typed(text: str) -> list[str]:
    """The commands of an example's text, with continued lines joined."""
    return [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip()]


LINES = [line for text in EXAMPLES.values() for line in typed(text) if not line.startswith("mpiexec")]


@pytest.mark.parametrize(
    "line",
    [line for line in LINES if any(mark in line for mark in QUICK)]
    + exhaustively(*(line for line in LINES if not any(mark in line for mark in QUICK))),
)
def test_every_example_of_help_runs_as_it_is_typed(tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ending:
        contextvars.Context().run(app, shlex.split(line)[1:], prog_name="minidl")
    assert ending.value.code == 0


@pytest.mark.parametrize("command", EXAMPLES)
def test_help_shows_the_examples_unbroken(tmp_path, command):
    page = minidl(tmp_path, command, "--help").stdout
    assert "Examples:" in page
    for line in EXAMPLES[command].strip().splitlines():
        assert f"  {line}\n" in page
    assert max(map(len, page.splitlines())) <= 80


def completed(folder: Path, words: str) -> list[str]:
    """What bash is offered after these words."""
    asked = {"_MINIDL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    return minidl(folder, **asked).stdout.split()


@pytest.mark.parametrize(
    ("words", "some"),
    [
        ("minidl s", ["schedule", "simulate"]),
        ("minidl train --model ", ["mlp", "resnet", "gpt"]),
        ("minidl train --network ", ["1gbe", "nvlink", "net.json"]),
        ("minidl train --strategy loc", ["local_sgd"]),
        *exhaustively(
            ("minidl compare --networks ", ["1gbe", "net.json"]),
            ("minidl compare --strategies par", ["parameter_server"]),
            ("minidl simulate --collective b", ["broadcast", "barrier"]),
            ("minidl simulate --algorithm r", ["ring", "rabenseifner"]),
            ("minidl simulate --network i", ["infiniband"]),
            ("minidl schedule --kind z", ["zb-h1", "zb-v"]),
            ("minidl calibrate --pattern ", ["ping-pong", "exchange"]),
            ("minidl train --data g", ["glyphs"]),
            ("minidl train --kernels n", ["numpy", "numba"]),
            ("minidl compare --on ", ["simulation", "mpi"]),
        ),
    ],
)
def test_tab_offers_commands_and_values(tmp_path, words, some):
    (tmp_path / "net.json").write_text("{}")
    assert set(some) <= set(completed(tmp_path, words))


def test_a_mistyped_command_is_answered_with_the_nearest(tmp_path):
    result = minidl(tmp_path, "trian")
    assert result.returncode == 2
    assert "Did you mean 'train'?" in result.stderr


def test_a_plan_without_nodes_is_refused_by_its_axis(tmp_path):
    result = minidl(tmp_path, "train", "--plan", "pp=0", "--nodes", 4)
    assert result.returncode == 2
    assert result.stderr == "minidl train: --plan pp=0: pp must be at least 1, got 0\n"
