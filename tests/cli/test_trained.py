"""`minidl predict`, `sample` and `export`: a trained model meets new samples, continues a text, leaves by its names."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from minidl import data, nn
from minidl.parallel import Checkpoint
from tests.cli.command import minidl, read_until, refused, refuses, start, succeeds

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
    Path("my.txt").write_text("1,2\n")
    refuses(
        "predict run",
        {
            "none.csv": "none.csv has 0 samples",
            "narrow.csv": "narrow.csv has no column b, which the model was trained on: name its columns as there",
            "nameless.csv": "nameless.csv has no column a",
            "short.npz": "short.npz has 90 samples and 3 labels",
            "new.csv --out new.csv": "--out new.csv has the samples themselves",
            "gone.csv": "there is no data at gone.csv",
            "my.txt": "my.txt has no samples: give NAME.csv, NAME.npz, NAME.npy, an image, or a folder of images",
            "new.csv --import gone.py": "gone.py: there is no such file",
        },
    )
    np.save("wide.npy", np.zeros((3, 5)))
    assert "samples have shape (5,), but the model was trained on (2,)" in refused("predict", "run", "wide.npy")
    assert "mlp:hidden=8 predicts classes and continues no text: minidl predict" in refused("sample", "run")


def test_a_run_predicts_without_its_data_and_goes_on_with_the_same_data_alone():
    rows = "".join(f"{i % 7},{i % 5},{'ab'[i % 7 > 3]}\n" for i in range(60))
    Path("my.csv").write_text(rows)
    train("--data", "my.csv", "--model", "mlp:hidden=2", "--epochs", 1, "--batch-size", 8)
    [accuracy] = [row["accuracy"] for row in csv.DictReader(Path("run/metrics.csv").read_text().splitlines())]
    splits = data.load("my.csv")
    np.savez("test.npz", x=splits.test.x * splits.deviation + splits.mean, y=np.array(splits.classes)[splits.test.y])
    before = predicted("test.npz")
    assert before[1].endswith(f"{float(accuracy):.2%}")
    Path("my.csv").write_text(rows.replace("a", "c"))
    changed = "my.csv has changed since the run began: restore it, or train anew"
    assert changed in refused("train", "--resume", "run", "--epochs", 2)
    assert predicted("test.npz") == before
    Path("my.csv").unlink()
    assert predicted("test.npz") == before


@pytest.mark.parametrize("strategy", ["synchronous", "ensemble"])
def test_images_and_classes_of_a_python_file_are_known_without_it(strategy: str):
    Path("my.py").write_text(
        "import numpy as np\nfrom minidl.data import Dataset, Splits\n\ndef mine() -> Splits:\n"
        "    y = np.arange(60) % 3\n    x = (np.eye(3, 5)[y][:, None, :, None] * np.ones(7)).astype(np.float32)\n"
        "    return Splits(Dataset(x, y), Dataset(x, y))\n"
    )
    train("--data", "my.py", "--model", "mlp", "--epochs", 15, "--batch-size", 10, "--nodes", 2, "--strategy", strategy)
    Path("my.py").unlink()
    np.save("new.npy", np.uint8(255 * np.eye(3, 5)[[2, 0, 0, 1]])[:, :, None].repeat(7, axis=2))
    assert [row["class"] for row in predicted("new.npy")[0]] == ["2", "0", "0", "1"]
    assert Checkpoint.load("run").data["x"] == [[1, 5, 7], "float32"]


NET = """
from minidl import nn
from minidl.data import Splits

class Scaled(nn.Module):
    def __init__(self, splits: Splits):
        super().__init__()
        self.linear = nn.Linear(splits.train.x[0].size, int(splits.train.y.max()) + 1)
        KEEP
    def forward(self, x):
        return self.linear(x * self.scale)
"""


def test_what_a_model_takes_from_the_samples_must_be_in_a_buffer():
    train_it = ("--data", "spirals", "--import", "net.py", "--model", "scaled", "--epochs", 1)
    Path("net.py").write_text(NET.replace("KEEP", "self.register_buffer('scale', splits.train.x.std(axis=0))"))
    train(*train_it)
    np.save("new.npy", data.load("spirals").test.x)
    done = minidl(Path(), "predict", "run", "new.npy", "--import", "net.py")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1 + len(data.load("spirals").test))
    assert "run is of the model scaled: --import the file" in refused("predict", "run", "new.npy")
    assert "checkpoint of a run, no data" in refused("predict", "run", "run/checkpoint.npz", "--import", "net.py")
    Path("net.py").write_text(NET.replace("KEEP", "self.scale = splits.train.x.std(axis=0)"))
    succeeds("train", *train_it, "--on", "simulation", "--out", "again")
    assert "keep what it needs of them in a buffer" in refused("predict", "again", "new.npy", "--import", "net.py")


@pytest.mark.timeout(300)
def test_a_pipe_that_nobody_reads_ends_predict_in_silence():
    train("--data", "spirals", "--model", "mlp:hidden=2", "--epochs", 1)
    np.save("new.npy", np.zeros((70_000, 2)))
    process = start(Path(), "predict", "run", "new.npy")
    read_until(process, "sample,class,probability")
    process.stdout.close()  # type: ignore[union-attr]
    assert process.stderr.read() == ""  # type: ignore[union-attr]
    assert process.wait(250) == 1


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
    assert [row["sample"] for row in rows] == [path.relative_to("images").as_posix() for path in paths()]
    assert counted.startswith(
        f"{sum(r['class'] == p.parent.name for r, p in zip(rows, paths(), strict=True))} of 12 right"
    )
    assert len(predicted(f"images/{test.y[0]}")[0]) == len(list(Path(f"images/{test.y[0]}").iterdir()))
    for mode in ("L", "RGB"):
        with Image.open(paths()[5]) as grey:
            grey.convert(mode).save("one.png")
        [row], _ = predicted("one.png")
        assert (row["sample"], row["class"]) == ("one.png", rows[5]["class"])


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
    back = nn.models.ResNet(8, num_classes=10, in_channels=1)
    back.load_state_dict(safetensors.load_file("model.safetensors"))
    for state in (model.state_dict(), back.state_dict()):
        assert state.keys() == weights.keys()
        assert all(np.array_equal(state[name], array) for name, array in weights.items())
    refuses(
        "export",
        {
            "run model.pt": "model.pt: the weights go to NAME.npz or NAME.safetensors",
            "gone model.npz": "there is no checkpoint at gone",
            "model.npz other.npz": "model.npz is no run, but arrays such as conv1.weight: give the folder of a run, or",
            "run gone/model.npz": "cannot read or write gone/model.npz: No such file",
        },
    )
    early = Checkpoint.load("run")
    early.data = {}
    early.save("early.npz")
    refuses("predict", {"early.npz new.csv": "early.npz was not written by this version of `minidl train`: train anew"})
    refuses("sample", {"early.npz": "early.npz was not written by this version"})
