"""Files of one's own become Splits as they come, or are refused with the sentence that helps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from minidl import data
from minidl.data import DataError
from minidl.data.own_files import read_samples

X = np.random.default_rng(3).standard_normal((37, 5))
WORDS = np.array(["setosa", "virginica", "versicolor"])[np.arange(37) % 3]


def npz(folder: Path, **arrays: Any) -> data.Splits:
    np.savez(folder / "mine.npz", **arrays)
    return data.load(str(folder / "mine.npz"))


def written(folder: Path, text: str, name: str = "mine.csv", encoding: str = "utf-8") -> data.Splits:
    (folder / name).write_text(text, encoding=encoding)
    return data.load(str(folder / name))


def image(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels.astype(np.uint8)).save(path)


LABELS = [
    np.arange(37) % 3 + 1,
    (np.arange(37) % 3 + 1.0)[:, None],
    np.eye(3)[np.arange(37) % 3],
    WORDS,
    WORDS.astype("S"),
]


@pytest.mark.parametrize("y", LABELS, ids=["from 1", "float column", "one-hot", "words", "bytes"])
def test_labels_of_every_kind_become_classes_from_0_in_sorted_order(y: np.ndarray, tmp_path: Path) -> None:
    train, test = splits = npz(tmp_path, x=X, y=y)
    assert (len(train), len(test), len(splits.classes), train.x.dtype, train.y.dtype) == (29, 8, 3, "float32", "int64")
    labels = dict(zip(map(tuple, X.astype(np.float32)), y.argmax(1) if y.shape == (37, 3) else y.ravel(), strict=True))
    for x, k in (pair for part in splits for pair in zip(part.x, part.y, strict=True)):
        label = labels.pop(tuple(x))
        assert splits.classes[k] == (
            label.decode() if isinstance(label, bytes) else str(np.array(label).astype(object)).removesuffix(".0")
        )
    assert not labels  # each sample is in one of the two sets


@pytest.mark.parametrize(
    "names",
    [("x_train", "y_train", "x_test", "y_test"), ("train_images", "train_labels", "test_images", "test_labels")],
)
def test_a_test_set_of_its_own_stays_one(names: tuple[str, ...], tmp_path: Path) -> None:
    y = np.arange(37) % 4
    train, test = npz(tmp_path, **dict(zip(names, (X, y, X[:9] + 1, y[:9]), strict=True)))
    assert np.array_equal(train.x, X.astype(np.float32))
    assert np.array_equal(test.x, (X[:9] + 1).astype(np.float32))
    assert np.array_equal(train.y, y)


@pytest.mark.parametrize("shape", [(20, 6, 7), (20, 6, 7, 3), (20, 3, 6, 7)])
def test_images_of_bytes_get_their_channels_first_and_the_mean_image_subtracted(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    x = np.random.default_rng(0).integers(256, size=shape).astype(np.uint8)
    splits = npz(tmp_path, x_train=x, y_train=np.arange(20) % 2, x_test=x, y_test=np.arange(20) % 2)
    assert splits.train.x.shape == (20, 1 if len(shape) == 3 else 3, 6, 7)
    assert splits.mean is not None
    back = 255 * (splits.train.x + splits.mean)
    expected = x[:, None] if len(shape) == 3 else x.transpose(0, 3, 1, 2) if shape[3] == 3 else x
    np.testing.assert_allclose(back, expected, atol=1e-3)


ROWS = list(zip(WORDS, *X[:, :2].T, strict=True))
TABLES = {
    "label first, semicolons, decimal commas, a byte order mark": (
        "\ufefflabel;a;b\n" + "".join(f"{w};{a:.4f};{b:.4f}\n" for w, a, b in ROWS).replace(".", ",")
    ),
    "label last, tabs, no head": "".join(f"{a:.4f}\t{b:.4f}\t{w}\n" for w, a, b in ROWS),
    "a name that is no label's, empty lines": (
        "\n\na,b,species\n\n" + "".join(f'{a:.4f},"{b:.4f}",{w}\n' for w, a, b in ROWS)
    ),
    "numbers of the rows, CRLF, a comma at the end": (
        "No,a,b,species,\r\n" + "".join(f"{i},{a:.4f},{b:.4f},{w},\r\n" for i, (w, a, b) in enumerate(ROWS, 1))
    ),
    "ids in no order": "a,id,b,target\n" + "".join(f"{a:.4f},{a * 1e6:.0f},{b:.4f},{w}\n" for w, a, b in ROWS),
    "columns without names, the first counts": (
        "".join(f"{i},{a:.4f},{b:.4f},{w}\n" for i, (w, a, b) in enumerate(ROWS, 7))
    ),
    "columns and rows that pandas numbers": (
        ",0,1,target\n" + "".join(f"{i},{a:.4f},{b:.4f},{w}\n" for i, (w, a, b) in enumerate(ROWS))
    ),
    "columns that pandas numbers, without rows": (
        "0,1,target\n" + "".join(f"{a:.4f},{b:.4f},{w}\n" for w, a, b in ROWS)
    ),
    "columns of one name": "a,a,a\n" + "".join(f"{a:.4f},{b:.4f},{w}\n" for w, a, b in ROWS),
    "a coordinate y": "x,y,species\n" + "".join(f"{a:.4f},{b:.4f},{w}\n" for w, a, b in ROWS),
}  # fmt: skip


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_a_table_is_read_in_every_spelling_and_its_columns_are_standardised(table: str, tmp_path: Path) -> None:
    train, test = splits = written(tmp_path, table)
    assert splits.classes == ("setosa", "versicolor", "virginica")
    assert (train.x.shape, test.x.shape) == ((29, 2), (8, 2))
    np.testing.assert_allclose(train.x.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(train.x.std(0), 1, rtol=1e-5)
    counts = np.bincount(train.y) + np.bincount(test.y)
    assert counts.tolist() == [13, 12, 12]


def test_a_constant_column_stays_0_and_close_large_numbers_stay_apart(tmp_path: Path) -> None:
    table = "".join(f"0.1,{1_700_000_000 + i % 2},{i % 2}\n" for i in range(400))
    train, _ = splits = written(tmp_path, table)
    np.testing.assert_allclose(train.x, np.stack([0 * train.y, 2 * train.y - 1], axis=1), atol=0.2)
    new = splits.prepared(np.array([[0.2, 1_700_000_001]]))
    assert 0 < new[0, 0] < 1
    assert new[0, 1] == train.x[:, 1].max()


def test_labels_too_large_for_a_float_are_exact(tmp_path: Path) -> None:
    large = [2**53 + 1, 2**53, 2**53 + 2]
    table = "".join(f"{i % 4}.5,{large[i % 3]}\n" for i in range(12))
    for splits in (written(tmp_path, table), npz(tmp_path, x=X, y=np.array(large)[np.arange(37) % 3])):
        assert splits.classes == tuple(map(str, sorted(large)))


def test_a_class_of_one_sample_is_in_the_training_set(tmp_path: Path) -> None:
    train, test = npz(tmp_path, x=X, y=np.maximum(np.arange(37), 30))
    assert set(train.y) == set(range(7))
    assert (len(train), len(test), set(test.y)) == (29, 8, {0})


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_arrays_beside_samples_and_labels_may_be_anything(dtype: type, tmp_path: Path) -> None:
    x = np.tile(np.arange(3), (37, 4, 2, 1)).astype(dtype)  # channel k has k
    train, test = splits = npz(tmp_path, data=x, target=np.arange(37) % 2, frame=None, names=np.array([{}]))
    assert (train.x.shape, test.x.shape) == ((29, 3, 4, 2), (8, 3, 4, 2))
    back = train.x if splits.mean is None else 255 * (train.x + splits.mean)
    np.testing.assert_allclose(back, np.arange(3)[:, None, None] + 0 * back, atol=1e-3)


def test_flat_bytes_are_scaled_and_single_numbers_are_samples_of_one(tmp_path: Path) -> None:
    x, y = np.arange(200, dtype=np.uint8).reshape(20, 10), np.arange(20) % 2
    splits = npz(tmp_path, x=x, y=y)
    assert np.abs(splits.train.x).max() < 1
    np.testing.assert_allclose(np.sort(splits.prepared(x), axis=0)[-1], splits.prepared(x[-1:])[0])
    np.testing.assert_array_equal(splits.prepared(x.astype(np.int64)), splits.prepared(x))
    with pytest.raises(ValueError, match=r"values up to 199.5, the model was trained on images of 0..1"):
        splits.prepared(x + 0.5)
    assert npz(tmp_path, x=x[:, 0] * 1.0, y=y).train.x.shape == (16, 1)


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.float32, np.uint16])
def test_pixels_of_any_type_are_scaled_as_bytes_are(dtype: type, tmp_path: Path) -> None:
    x, y = np.random.default_rng(0).integers(256, size=(20, 6, 7)), np.arange(20) % 2
    bright, dark = x, x[:4] // 9
    expected, splits = (
        npz(tmp_path, x_train=bright.astype(each), y_train=y, x_test=dark.astype(each), y_test=y[:4])
        for each in (np.uint8, dtype)
    )
    for one, other in zip(expected, splits, strict=True):
        assert np.array_equal(one.x, other.x)
    np.save(tmp_path / "new.npy", dark.astype(dtype))
    assert np.array_equal(splits.prepared(read_samples(tmp_path / "new.npy", splits).x), expected.test.x)
    for kept in (x / 3, x // 9, x - 1):  # not whole, of 5 bits, negative
        assert npz(tmp_path, x_train=kept, y_train=y, x_test=kept, y_test=y).train.x.sum() == np.float32(kept).sum()


def test_folders_of_images_are_classes_with_and_without_a_test_set(tmp_path: Path) -> None:
    for k, name in enumerate(("cat", "dog")):
        for i in range(10):
            image(tmp_path / "all" / name / f"{i}.png", np.full((5, 4), 20 * i + k))
            image(tmp_path / "split" / ("train" if i else "val") / name / f"{i}.png", np.full((5, 4, 3), 20 * i + k))
    grey, colour = data.load(str(tmp_path / "all")), data.load(str(tmp_path / "split"))
    assert grey.classes == colour.classes == ("cat", "dog")
    assert [part.x.shape for part in grey] == [(16, 1, 5, 4), (4, 1, 5, 4)]
    assert [part.x.shape for part in colour] == [(18, 3, 5, 4), (2, 3, 5, 4)]


def test_images_are_read_upright_on_white_and_what_is_hidden_is_left_out(tmp_path: Path) -> None:
    turned = Image.Exif()
    turned[0x112] = 6  # to be turned by 90 degrees
    for k, name in enumerate(("cat", "train")):
        for i in range(5):
            image(tmp_path / name / f"{i}.png", np.full((5, 4), 20 * i + k))
        image(tmp_path / name / "line.png", np.stack([np.zeros((5, 4))] * 3 + [np.eye(5, 4) * 255], axis=2))
        Image.fromarray(np.zeros((4, 5), np.uint8)).save(tmp_path / name / "turned.png", exif=turned)
    (tmp_path / "cat").rename(tmp_path / ".elsewhere")
    (tmp_path / "cat").symlink_to(".elsewhere")
    image(tmp_path / ".ipynb_checkpoints" / "1.png", np.zeros((5, 4)))
    for name in ("._0.png", ".DS_Store", "Thumbs.db"):
        (tmp_path / "cat" / name).write_bytes(b"no image")
    splits = data.load(str(tmp_path))
    assert splits.classes == ("cat", "train")
    assert [part.x.shape for part in splits] == [(11, 3, 5, 4), (3, 3, 5, 4)]
    x, y, files = read_samples(tmp_path / "cat", splits)
    assert (x.shape, y) == ((7, 3, 5, 4), None)
    assert files == (*(f"{i}.png" for i in range(5)), "line.png", "turned.png")
    assert np.array_equal(x[5, 0], 255 - np.eye(5, 4) * 255)
    image(tmp_path / "grey" / "train" / "cat" / "1.png", np.zeros((5, 4)))
    image(tmp_path / "grey" / "train" / "dog" / "1.png", np.zeros((5, 4)))
    image(tmp_path / "grey" / "test" / "dog" / "1.png", np.full((5, 4, 3), 100))
    assert [part.x.shape for part in data.load(str(tmp_path / "grey"))] == [(2, 1, 5, 4), (1, 1, 5, 4)]


def test_a_text_has_its_characters_as_classes_and_its_end_for_testing(tmp_path: Path) -> None:
    text = "größer als zwölf\n" * 100
    splits = written(tmp_path, text, "mine.txt")
    assert "".join(splits.classes) == "".join(sorted(set(text)))
    x, y = splits.train[0]
    assert "".join(splits.classes[k] for k in (*x, y[-1])) == text[:65]
    assert "".join(splits.classes[k] for k in splits.test[0][0]) == text[-170:][:64]


GAP = X.copy()
GAP[7, 2] = np.nan


def broken(folder: Path) -> data.Splits:
    np.savez_compressed(folder / "broken.npz", x=X, y=WORDS)
    content = bytearray((folder / "broken.npz").read_bytes())
    content[60:90] = bytes(30)
    (folder / "broken.npz").write_bytes(content)
    return data.load(str(folder / "broken.npz"))


BAD: dict[str, tuple[Any, str]] = {
    "no file": (lambda f: data.load(str(f / "none.npz")), "there is no data at"),
    "another ending": (lambda f: written(f, "", "mine.xls"), "unknown kind: give NAME.npz"),
    "no zip": (lambda f: written(f, "hello", "mine.npz"), "cannot read .* write it by numpy.savez"),
    "pickled objects": (lambda f: npz(f, x=X, y=np.array([{}] * 37)), "cannot read .*numpy.savez.* not of objects"),
    "other names": (lambda f: npz(f, a=X, b=X), "has the arrays a, b: name them x_train"),
    "a number": (lambda f: npz(f, x=X, y=3), "y has one element and no rows"),
    "other lengths": (lambda f: npz(f, x=X, y=np.zeros(36)), "37 samples but 36 labels"),
    "one sample": (lambda f: npz(f, x=X[:1], y=np.zeros(1)), "too few samples"),
    "no test samples": (lambda f: npz(f, x_train=X, y_train=WORDS, x_test=X[:0], y_test=WORDS[:0]), "too few samples"),
    "numbers to predict": (lambda f: npz(f, x=X, y=X[:, 0]), "is no class; minidl's models classify"),
    "words as samples": (lambda f: npz(f, x=WORDS, y=WORDS), "samples of type <U10, expected numbers"),
    "labels in rows": (lambda f: npz(f, x=X, y=X), r"labels of shape \(37, 5\)"),
    "a missing value": (lambda f: npz(f, x=GAP, y=WORDS), "sample 7 has a value that is not"),
    "two shapes": (
        lambda f: npz(f, x_train=X, y_train=WORDS, x_test=X[:, 1:], y_test=WORDS),
        r"\(5,\), those for testing \(4,\)",
    ),
    "two types": (
        lambda f: npz(f, x_train=X.astype(np.uint8), y_train=WORDS, x_test=X, y_test=WORDS),
        "samples of uint8, those for testing of float64: give one type",
    ),
    "a class for testing": (
        lambda f: npz(f, x_train=X[1:], y_train=WORDS[1:], x_test=X[:2], y_test=["new", "setosa"]),
        "the class new is in the test set alone",
    ),
    "a cell of words": (lambda f: written(f, "a,b,label\n1,2,x\n1,Rome,y\n"), "3: b is 'Rome', which is no number"),
    "a thousand with a comma": (lambda f: written(f, 'a,label\n"1,000",x\n2,y\n'), "a is '1,000', which is no number"),
    "commas and points": (
        lambda f: written(f, "a\tb\tlabel\n1,000\t2.5\tx\n2\t3\ty\n"),
        "has numbers with commas and with points: keep the decimal ones alone",
    ),
    "an empty cell": (lambda f: written(f, "a,b,label\n1,,x\n1,2,y\n"), "line 2: b is '', which is no number"),
    "a short row": (lambda f: written(f, "a,b,label\n1,2,x\n1,y\n"), "line 3: 2 cells, but the first line has 3"),
    "no class": (lambda f: written(f, "a,b,label\n1,2,x\n1,2,\n"), "line 3: the class is '', which is none"),
    "a huge label": (lambda f: npz(f, x=X, y=np.arange(37) % 3 * 2.0**53), "label .* is not exact in float64: give"),
    "one-hot columns": (
        lambda f: written(f, "a,cat,dog,fish\n1,0,1,0\n2,1,0,0\n3,0,0,1\n5,0,1,0\n"),
        "has a single 1 in each row of its last columns, cat, dog, fish: if they stand for classes, write the name",
    ),
    "words in three columns": (
        lambda f: written(f, "a,town,c,note,label\n1,Rome,,x,u\n1,Bern,2,y,v\n"),
        r"2: town is 'Rome', which is no number \(nor have all rows one in c, note\): remove .*pandas.get_dummies",
    ),
    "a quantity": (
        lambda f: written(f, "".join(f"{i % 3},7,{i % 25}\n" for i in range(100))),
        "has 25 numbers as labels of 100 samples, which look like a quantity, but minidl's models classify",
    ),
    "a measurement": (
        lambda f: written(f, "".join(f"{i % 3},7,{10 * i}\n" for i in range(30))),
        "has 30 numbers as labels of 30 samples, which look like a quantity, but minidl's models classify: name",
    ),
    "one class": (lambda f: written(f, "a,label\n1,x\n2,x\n"), "has the class x alone"),
    "a gap in the first row": (lambda f: written(f, "?,2,x\n1,2,y\n"), r"line 1: column 1 is '\?', which is no number"),
    "not a number": (lambda f: written(f, "a,b,label\nnan,2,x\n1,2,y\n"), "line 2: a is 'nan', which is no number"),
    "an open quote": (lambda f: written(f, 'a,b\n"1,x\n' + "2,y\n" * 40000), "cannot read .*mine.csv, line .*limit"),
    "a class alone": (lambda f: written(f, "class\nx\ny\n"), "is no table"),
    "a huge number": (lambda f: npz(f, x=X * 1e300, y=WORDS), "sample 0 has a value that is not finite in 32 bits"),
    "no numbers": (lambda f: npz(f, x=X[:, :0], y=WORDS), r"samples of shape \(0,\) have no numbers"),
    "a broken archive": (lambda f: broken(f), "cannot read .*broken.npz: Error -3"),
    "a missing number": (
        lambda f: written(f, "a,b,label\n1,2,x\n,NA,y\n"),
        r"line 3: a is '', .* \(nor have all rows one in b\): remove the column or row, fill in a number",
    ),
    "no table": (lambda f: written(f, "hello\nyou\n"), "is no table"),
    "an empty table": (lambda f: written(f, ""), "is no table"),
    "another encoding": (lambda f: written(f, "größer,1\n", encoding="latin-1"), "no text in UTF-8"),
    "a short text": (lambda f: written(f, "too short", "mine.txt"), "has 9 characters: a text needs more"),
    "no images": (lambda f: data.load(f"{f}/"), "has no images in folders that are named by class"),
}  # fmt: skip


@pytest.mark.parametrize(("read", "sentence"), BAD.values(), ids=list(BAD))
def test_what_cannot_be_read_is_refused_in_a_sentence(read: Any, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=sentence):
        read(tmp_path)


def test_images_of_two_sizes_and_broken_ones_are_named(tmp_path: Path) -> None:
    for i in range(3):
        image(tmp_path / "cat" / f"{i}.png", np.zeros((5, 4)))
    image(tmp_path / "dog" / "1.png", np.zeros((5, 6)))
    with pytest.raises(DataError) as refusal:
        data.load(str(tmp_path))
    assert re.search("2 sizes: 3 of 4 x 5 pixels, such as .*cat/0.png; 1 of 6 x 5 .*dog/1.png", str(refusal.value))
    fit = eval(str(refusal.value).partition(", by PIL.")[2], {"ImageOps": ImageOps, "image": Image.new("L", (6, 5))})
    fit.save(tmp_path / "dog" / "1.png")
    assert data.load(str(tmp_path)).train.x.shape == (3, 1, 5, 4)
    Image.fromarray(np.zeros((5, 4), np.uint16)).save(tmp_path / "dog" / "1.png")
    with pytest.raises(DataError, match=r"dog/1.png has more than 8 bits for a pixel"):
        data.load(str(tmp_path))
    image(tmp_path / "dog" / "young" / "2.png", np.zeros((5, 4)))
    with pytest.raises(DataError, match=r"young/2.png is not where a class has its images, such as .*cat/1.png"):
        data.load(str(tmp_path))
    (tmp_path / "dog" / "young" / "2.png").unlink()
    for name in ("1.png", "2.jpg"):
        (tmp_path / "dog" / name).write_bytes(b"no image")
    with pytest.raises(DataError, match=r"cannot read 2 of 5 images: .*dog/1.png .*dog/2.jpg .*: remove them"):
        data.load(str(tmp_path))
