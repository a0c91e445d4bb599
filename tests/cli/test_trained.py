"""`minidl predict`, `sample` and `export`: a trained model meets new samples, continues a text, leaves by its names."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from minidl import data, nn
from minidl.parallel import Checkpoint
from tests.cli.command import minidl, refused, refuses, succeeds

pytestmark = pytest.mark.timeout(300)


def train(*words: object) -> None:
    succeeds("train", *words, "--on", "simulation", "--out", "run")


def predicted(file: str) -> tuple[list[dict[str, str]], str]:
    """The rows that are printed, and the last line on stderr."""
    done = minidl(Path(), "predict", "run", file)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(done.stdout.splitlines())), done.stderr.strip()


def test_new_samples_are_prepared_as_those_of_training_and_labels_are_counted():
    x = np.random.default_rng(1).standard_normal((90, 2)) * [300.7, 0.013] + [1e3, -7]
    words = np.where(x[:, 0] > 1000, "large", "small")
    rows = [f"{a:.4f},{b:.6f},{word}\n" for (a, b), word in zip(x, words, strict=True)]
    Path("my.csv").write_text("a,b,size\n" + "".join(rows))
    train("--data", "my.csv", "--model", "mlp:hidden=8", "--batch-size", 9, "--epochs", 30)
    labelled, counted = predicted("my.csv")
    right = sum(row["class"] == word for row, word in zip(labelled, words, strict=True))
    assert counted == f"{right} of 90 right: {right / 90:.2%}"
    assert right >= 85
    Path("new.csv").write_text("".join(row.rpartition(",")[0] + "\n" for row in rows))
    np.savez("new.npz", x=x)
    np.save("new.npy", x.astype(np.float32))
    for file in ("new.csv", "new.npz", "new.npy"):
        again, counted = predicted(file)
        assert [row["class"] for row in again] == [row["class"] for row in labelled]
        assert counted == ""
    succeeds("predict", "run", "new.csv", "--out", "predicted.csv")
    assert list(csv.DictReader(Path("predicted.csv").read_text().splitlines())) == predicted("new.csv")[0]
    moved = [f"{word},{b:.6f},?,{a:.4f}\n" for (a, b), word in zip(x, words, strict=True)]
    Path("moved.csv").write_text("size,b,left,a\n" + "".join(moved))
    assert predicted("moved.csv") == (labelled, f"{right} of 90 right: {right / 90:.2%}")
    Path("blank.csv").write_text("a,b,size\n" + "".join(f"{a:.4f},{b:.6f},\n" for a, b in x))
    assert predicted("blank.csv") == (labelled, "")
    Path("huge.csv").write_text("a,b,size\n1,2,huge\n")
    assert predicted("huge.csv")[1] == "0 of 1 right: 0.00% (the model does not know the class huge)"
    Path("none.csv").write_text("a,b,size\n")
    Path("narrow.csv").write_text("a,size\n1,large\n")
    Path("nameless.csv").write_text("1,2,large\n")
    np.savez("short.npz", x=x, y=words[:3])
    refuses(
        "predict run",
        {
            "none.csv": "none.csv has 0 samples",
            "narrow.csv": "narrow.csv has no column b, which the model was trained on: name its columns as there",
            "nameless.csv": "nameless.csv has no column a",
            "short.npz": "short.npz has 90 samples and 3 labels",
            "new.csv --out new.csv": "--out new.csv has the samples themselves",
            "gone.csv": "there are no samples at gone.csv",
            "new.csv --import gone.py": "gone.py: there is no such file",
        },
    )
    np.save("wide.npy", np.zeros((3, 5)))
    assert "samples have shape (5,), but the model was trained on (2,)" in refused("predict", "run", "wide.npy")
    assert "mlp:hidden=8 predicts classes and continues no text: minidl predict" in refused("sample", "run")


def test_a_run_is_refused_once_its_data_is_gone_or_has_changed():
    rows = "".join(f"{i % 7},{i % 5},{'ab'[i % 7 > 3]}\n" for i in range(60))
    Path("my.csv").write_text(rows)
    train("--data", "my.csv", "--model", "mlp:hidden=2", "--epochs", 1, "--batch-size", 8)
    [accuracy] = [row["accuracy"] for row in csv.DictReader(Path("run/metrics.csv").read_text().splitlines())]
    splits = data.load("my.csv")
    np.savez("test.npz", x=splits.test.x * splits.deviation + splits.mean, y=np.array(splits.classes)[splits.test.y])
    assert predicted("test.npz")[1].endswith(f"{float(accuracy):.2%}")
    Path("my.csv").write_text(rows.replace("a", "c"))
    changed = "my.csv has changed since the run began: restore it, or train anew"
    assert changed in refused("predict", "run", "test.npz")
    assert changed in refused("train", "--resume", "run", "--epochs", 2)
    succeeds("train", "--config", "run/config.json", "--out", "again")
    Path("my.csv").unlink()
    assert "a model needs the data of its training, where it was then" in refused("predict", "run", "test.npz")


def test_images_are_predicted_one_by_one_in_a_folder_and_by_class():
    train("--data", "digits", "--model", "lenet", "--epochs", 4)
    test = data.load("digits").test
    whole = data.load("digits")
    assert whole.mean is not None
    for i in range(12):
        path = Path("images", str(test.y[i]), f"{i:02}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.round(255 * (test.x[i] + whole.mean)[0]).astype(np.uint8)).save(path)
    rows, counted = predicted("images")
    assert counted.startswith(
        f"{sum(r['class'] == p.parent.name for r, p in zip(rows, paths(), strict=True))} of 12 right"
    )
    assert len(predicted(f"images/{test.y[0]}")[0]) == len(list(Path(f"images/{test.y[0]}").iterdir()))
    for mode in ("L", "RGB"):
        with Image.open(paths()[5]) as grey:
            grey.convert(mode).save("one.png")
        [row], _ = predicted("one.png")
        assert row["class"] == rows[5]["class"]


def paths() -> list[Path]:
    return sorted(Path("images").rglob("*.png"))


def test_a_text_is_continued_the_same_for_one_seed():
    Path("my.txt").write_text("abcdefgh\n" * 300)
    train("--data", "my.txt", "--model", "gpt:layers=1,heads=2,width=32,context=16", "--epochs", 8, "--lr", 0.01)
    words = ("sample", "run", "--prompt", "abc", "--length", 15)
    assert succeeds(*words, "--temperature", 0) == "abcdefgh\nabcdefgh\n\n"
    assert succeeds(*words, "--temperature", 3, "--seed", 1) == succeeds(*words, "--temperature", 3, "--seed", 1)
    assert succeeds(*words, "--temperature", 3, "--seed", 1) != succeeds(*words, "--temperature", 3, "--seed", 2)
    refuses(
        "sample run",
        {
            "--prompt xa": "--prompt has 'x', which the text that run was trained on has not",
            "--prompt ''": "--prompt needs at least one character",
            "--length 0": "--length must be at least 1, got 0",
            "--temperature -1": "--temperature must be at least 0, got -1",
        },
    )
    assert "continues texts: minidl sample run" in refused("predict", "run", "my.txt")


def test_the_weights_leave_by_their_names_and_come_back():
    train("--data", "digits", "--model", "resnet", "--epochs", 1)
    weights = Checkpoint.load("run/checkpoint.npz").model
    succeeds("export", "run", "model.npz")
    model = nn.models.ResNet(8, num_classes=10, in_channels=1)
    model.load_state_dict(np.load("model.npz"))
    safetensors = pytest.importorskip("safetensors.numpy")
    succeeds("export", "run/checkpoint.npz", "model.safetensors")
    for state in (model.state_dict(), safetensors.load_file("model.safetensors")):
        assert state.keys() == weights.keys()
        assert all(np.array_equal(state[name], array) for name, array in weights.items())
    refuses(
        "export",
        {
            "run model.pt": "model.pt: the weights go to NAME.npz or NAME.safetensors",
            "gone model.npz": "there is no checkpoint at gone",
            "model.npz other.npz": "is damaged, or no checkpoint",
        },
    )
