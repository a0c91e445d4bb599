"""`--import my.py`: what a user's own file may hold, and how a broken one is refused."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from minidl import data, nn
from minidl.cli.models import MODELS
from tests.cli.command import minidl, refused, succeeds
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

MINE = '''
from __future__ import annotations

from dataclasses import dataclass

from beside import N
from minidl import compress, data, nn, parallel

@dataclass
class EverySecond(compress.TopK):
    """Top-k of my own."""

@dataclass(frozen=True)
class Mine(parallel.Synchronous):
    """Synchronous training of my own."""

class Linear(nn.Sequential):
    """One linear layer."""
    def __init__(self, splits):
        super().__init__(nn.Flatten(), nn.Linear(2, len(splits.classes)))

class Layer(nn.Linear):
    """A layer that needs sizes is no model."""
    def __init__(self, channels):
        super().__init__(channels, channels)

def wide() -> nn.Module:
    """A wide one."""
    return nn.models.MLP(2, 64, 3)

def few_spirals() -> data.Splits:
    """Few points on spirals."""
    return data.load("spirals", n=N)
'''


@pytest.fixture
def folder(tmp_path):
    """A folder of one's own with my.py, which imports another file from the same folder."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "my.py").write_text(MINE)
    (tmp_path / "mine" / "beside.py").write_text("N = 96\n")
    return tmp_path


@pytest.mark.parametrize("on", ["processes", "simulation", *exhaustively("mpi")])
def test_own_strategy_compressor_model_and_data_train_on_each_engine(folder, on):
    if on == "mpi":
        pytest.importorskip("mpi4py", reason="needs the extra mpi")
    words = ("--import", "mine/my.py", "--data", "few_spirals", "--on", on, "--nodes", 2, "--epochs", 1)
    strategies = ("--strategies", "mine:compressor=every_second(0.5)", "--networks", "none")
    succeeds("compare", *words, *strategies, "--model", "linear", "--out", "out")
    succeeds("train", *words, "--strategy", "mine", "--model", "wide", "--out", "trained")


LOOPING = """
from minidl import nn

class Looping(nn.Sequential):
    def __init__(self, splits):
        super().__init__(nn.Flatten(), nn.Linear(2, len(splits.classes)))

    def forward(self, x):
        while self.training:
            pass
        return super().forward(x)
"""


def test_a_deadline_ends_a_model_that_loops():
    Path("my.py").write_text(LOOPING)
    words = ("--import", "my.py", "--model", "looping", "--data", "spirals", "--nodes", 2, "--epochs", 1)
    for command in (("train",), ("compare", "--strategies", "synchronous", "--networks", "none")):
        assert "--deadline must be above 0, got -1" in refused(*command, *words, "--deadline", -1)
        done = minidl(Path(), *command, *words, "--on", "simulation", "--deadline", 0.7)
        assert done.returncode == 1
        assert f"minidl {command[0]}: the run did not finish within its deadline of 0.7 s" in done.stderr


def test_ef_stays_error_feedback_if_an_imported_class_has_the_same_initials():
    Path("my.py").write_text("from minidl import compress\nclass ExactFew(compress.Sign): pass\n")
    strategy = "synchronous:compressor=ef(exact_few)"
    succeeds("train", "--import", "my.py", "--strategy", strategy, "--model", "mlp", "--data", "spirals", "--nodes", 2,
             "--epochs", 1, "--on", "simulation")  # fmt: skip


def test_list_shows_own_things_with_their_file_and_no_layer(folder):
    shown = succeeds("compare", "--import", "mine/my.py", "--list")
    for text in ("Top-k of my own.", "Synchronous training of my own.", "One linear layer.", "A wide one.",
                 "Few points on spirals."):  # fmt: skip
        assert f"{text} (my.py)" in shown
    assert "needs sizes" not in shown
    assert "Few points on spirals." not in succeeds("compare", "--list")


def test_a_broken_file_ends_in_one_sentence():
    for text, sentence in {
        "x = 1\ny = 1 / 0\n": "my.py, line 2: ZeroDivisionError: division by zero",
        "def f(:\n": "my.py, line 1: invalid syntax",
        "import sys\nsys.exit(3)\n": "my.py, line 2: SystemExit: 3",
        "import nowhere_to_be_found\n": "my.py, line 1: ModuleNotFoundError: No module named 'nowhere",
        "import broken\n": "broken.py, line 2: invalid syntax",
        "x = 1\n": "my.py defines nothing that minidl can use: write a subclass of parallel.Strategy",
        "from minidl import compress\nclass Topk(compress.Sign): pass\n": "my.py: Topk would be typed as topk, a name "
        "that exists already: choose another",
        "from minidl.data import Splits, load\ndef digits() -> Splits: return load('digits')\n": "digits, a name that "
        "exists already",
        "from minidl import compress\nclass Odd(compress.Sign):\n    def __init__(self, k: 'No' = 1): pass\n": "my.py: "
        "the types of the settings of Odd cannot be read: name 'No' is not defined",
    }.items():
        Path("broken.py").write_text("x = 1\ndef f(:\n")
        Path("my.py").write_text(text)
        err = refused("train", "--import", "my.py")
        assert err.startswith("minidl train: ")
        assert err.count("\n") == 1
        assert sentence in err
    for name, sentence in {
        "nowhere.py": "--import nowhere.py: there is no such file",
        ".": "--import .: give a file of Python code, NAME.py",
    }.items():
        assert sentence in refused("compare", "--import", name, "--list")
    Path("my.py").write_text(MINE.replace("from beside import N", "N = 64"))
    twice = refused("compare", "--import", "my.py", "--import", "my.py", "--list")
    assert "another file of that name is imported already" in twice


def test_every_exported_model_and_data_set_is_listed():
    assert {*MODELS} == {name.lower() for name in nn.models.__all__}
    functions = {name: one for name in data.__all__ if inspect.isfunction(one := getattr(data, name))}
    assert {*data.NAMES} == {
        name
        for name, one in functions.items()
        if name != "load" and "splits" not in one.__annotations__ and "Splits" in str(one.__annotations__.get("return"))
    }
