"""`--data FILE`, `--model NAME:sizes`: one's own data and sizes train; what is wrong is refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from minidl.cli.models import MODELS
from minidl.data import Dataset, Splits
from tests.cli.command import refused, refuses, succeeds

pytestmark = pytest.mark.timeout(300)

MINE = """
import numpy as np
from minidl.data import Dataset, Splits

def mine() -> Splits:
    x = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    return Splits(Dataset(x[:30], y[:30]), Dataset(x[30:], y[30:]))
"""


def test_a_table_trains_and_is_compared_and_its_run_goes_on():
    rows = "".join(f"{i % 7},{i % 5},{'ab'[i % 7 > 3]}\n" for i in range(60))
    Path("my.csv").write_text(f"left,right,label\n{rows}")
    own = ("--data", "my.csv", "--model", "mlp", "--batch-size", 12, "--nodes", 2)
    succeeds("train", *own, "--epochs", 1, "--on", "simulation", "--out", "run")
    succeeds("train", "--resume", "run", "--epochs", 2)
    succeeds("compare", *own, "--epochs", 1, "--strategies", "synchronous", "--networks", "none")


def test_what_own_data_was_read_as_is_said_before_the_training():
    small = ("--model", "mlp:hidden=2", "--epochs", 1, "--batch-size", 9)
    Path("wine.csv").write_text("a,quality\n" + "".join(f"{i % 7}.25,{i % 6 + 3}\n" for i in range(60)))
    said = (
        "6 classes of the column quality: 3, 4, ..., 8 (each number is a class: the model does not predict quantities)"
    )
    assert said in succeeds("train", "--data", "wine.csv", *small, "--on", "simulation")
    assert said in succeeds("compare", "--data", "wine.csv", *small, "--nodes", 2, "--strategies", "synchronous")
    Path("bare.csv").write_text("".join(f"{i % 7}.25,{'ab'[i % 2]}\n" for i in range(60)))
    assert "2 classes of column 2: a, b\n" in succeeds("train", "--data", "bare.csv", *small, "--on", "simulation")
    np.savez("large.npz", x=np.outer(np.arange(60), [17.5, 3]), y=np.array(["a", "b"])[np.arange(60) % 2])
    lines = succeeds("train", "--data", "large.npz", *small, "--on", "simulation").splitlines()
    at = lines.index("2 classes: a, b")
    assert lines[at + 1] == "samples have values up to 1015, and are not scaled: values near 1 train better"
    Path("my.txt").write_text("abc\n" * 200)
    text = ("train", "--data", "my.txt", "--model", "gpt:layers=1,width=8,context=8", "--epochs", 1)
    assert "a text of 4 different symbols\n" in succeeds(*text, "--on", "simulation")
    assert "classes" not in succeeds("train", "--data", "spirals", *small, "--on", "simulation").partition("epoch")[0]


def test_a_python_file_is_data_if_it_defines_one_set():
    Path("my.py").write_text(MINE)
    succeeds("train", "--data", "my.py", "--model", "mlp", "--epochs", 1, "--batch-size", 10, "--out", "run")
    Path("my.py").write_text(MINE + "from minidl import nn\n\ndef net() -> nn.Module:\n    return nn.Linear(3, 2)\n")
    succeeds("train", "--import", "my.py", "--data", "my.py", "--model", "net", "--epochs", 1, "--batch-size", 10)
    Path("two.py").write_text(MINE + MINE.partition("Splits\n")[2].replace("mine", "another") + "\n")
    Path("none.py").write_text("from minidl import nn\ndef net() -> nn.Module: ...\n")
    refuses(
        "train",
        {
            "--data two.py": "--data two.py must define one function annotated to return data.Splits; it defines",
            "--data none.py": "must define one function annotated to return data.Splits; it defines none",
            "--data gone.py": "gone.py: there is no such file",
            "--data gone.csv": "there is no data at gone.csv",
            "--data digit": "did you mean 'digits'?",
        },
    )


def test_a_function_that_returns_something_else_is_refused():
    Path("my.py").write_text(MINE.partition("    return")[0] + "    return x, y\n")
    assert "--data mine: it returns a tuple, expected data.Splits" in refused("train", "--data", "my.py")
    Path("my.py").write_text(MINE.replace("Dataset(x[30:], y[30:])", "(x, y)"))
    assert "--data mine: it returns Splits of something else" in refused("train", "--data", "my.py")
    Path("my.py").write_text(MINE.replace("y[:30]", "{}['x']"))
    assert "--data mine: my.py, line 8: KeyError: 'x'" in refused("train", "--data", "my.py")
    Path("my.py").write_text(MINE.replace("(40, 3)", "(40, 3)) + np.ones((7, 2)"))
    assert "--data mine: my.py, line 6: ValueError: operands could not" in refused("train", "--data", "my.py")


def unnamed(x: np.ndarray, y: np.ndarray) -> Splits:
    return Splits(Dataset(x, y), Dataset(x, y))


IMAGES, TOKENS = np.zeros((6, 3, 32, 32), np.float32), np.zeros((6, 8), np.int64)
LARGE = np.zeros((6, 3, 224, 224), np.float32)


@pytest.mark.parametrize(
    ("model", "x"),
    [("mlp", IMAGES), ("lenet", IMAGES), ("resnet", IMAGES), ("alexnet", LARGE), ("vgg16", LARGE), ("gpt", TOKENS)],
)
def test_the_classes_of_splits_without_names_are_counted(model: str, x: np.ndarray):
    y = TOKENS + np.arange(8) if model == "gpt" else np.arange(6)
    make = MODELS[model].fit(unnamed(x, y))
    words = dict(make.keywords)  # type: ignore[attr-defined]
    assert words.get("num_classes", words.get("vocab_size", make.args[-1:])) in (6, 8, (6,))  # type: ignore[attr-defined]


def test_targets_and_samples_of_another_kind_are_refused_in_a_sentence():
    fit, y = MODELS["resnet"].fit, np.arange(6)
    for splits, sentence in (
        (unnamed(IMAGES.astype(np.float64), y), r"samples of float64, but models compute in float32: \.astype"),
        (unnamed(IMAGES, y.astype(np.float32)), "targets of float32, but models classify: give classes, int64"),
        (unnamed(IMAGES, y - 1), "the targets go from -1 to 4: expected classes from 0"),
        (unnamed(IMAGES, y + 1), "the targets go from 1 to 6: subtract 1, or name the classes"),
    ):
        with pytest.raises(ValueError, match=sentence):
            fit(splits)


def test_models_have_the_sizes_that_are_typed():
    Path("my.txt").write_text("one two three four five\n" * 60)
    for model, data, parameters in (
        ("mlp:hidden=32", "digits", 65 * 32 + 33 * 10),
        ("mlp:hidden=(32,16)", "digits", 65 * 32 + 33 * 16 + 17 * 10),
        ("mlp:hidden=[32,16]", "digits", 65 * 32 + 33 * 16 + 17 * 10),
        ("gpt:layers=1,heads=2,width=8,context=16", "my.txt", 1120),
    ):
        shown = succeeds("train", "--model", model, "--data", data, "--epochs", 1, "--on", "simulation")
        assert f"{model} ({parameters:,} parameters) on {data}" in shown
    few = np.random.default_rng(7).integers(256, size=(40, 8, 8, 1), dtype=np.uint8)  # of the shape of the digits
    np.savez("my.npz", x=few, y=np.arange(40) % 10)
    resnet = ("--model", "resnet:depth=14", "--data", "my.npz", "--batch-size", 9)
    shown = succeeds("train", *resnet, "--epochs", 1, "--on", "simulation", "--out", "run")
    assert "resnet:depth=14 (174,970 parameters)" in shown
    succeeds("train", "--resume", "run", "--epochs", 2)


def test_sizes_that_a_model_cannot_have_are_refused():
    np.savez("my.npz", x=np.zeros((20, 12, 13, 3), np.uint8), y=np.arange(20) % 3)
    refuses(
        "train",
        {
            "--model mlp:hiden=3": "a setting of mlp must be 'hidden', got 'hiden': did you mean 'hidden'?",
            "--model mlp:256": "--model mlp:256: mlp: its settings are hidden",
            "--model mlp:hidden=wide": "mlp: hidden must be a whole number or a tuple",
            "--model mlp:hidden=0": "MLP: each size must be at least 1, got 0",
            "--model lenet:depth=3": "lenet: it has no settings",
            "--model resnet:width=0": "ResNet: width must be at least 1, got 0",
            "--model resnet:depth=9": "ResNet: depth must be one of",
            "--model gpt:context=32": "gpt: context is for texts: choose --data stdlib_text or NAME.txt",
            "--model gpt:context=0 --data stdlib_text": "block_size must be at least 1, got 0",
            "--model gpt:heads=3 --data stdlib_text": "width=64 is no multiple of heads=3",
            "--model gpt:recompute=half --data stdlib_text": "recompute must be full or selective or None, got half",
            "--model mlp:recompute=selective": "a setting of mlp must be 'hidden', got 'recompute'",
            "--model gpt:context=99999999 --data stdlib_text": "a window of context=99999999 takes 100000000 symbols",
            "--model lenet --data my.npz --batch-size 4": "(3, 12, 13): choose another --model, such as mlp or resnet",
            "--model resnet --data spirals": "have shape (2,): choose another --model, such as mlp\n",
            "--model res:depth=8": "did you mean",
            "--model 'mlp hidden'": "is no model",
        },
    )
