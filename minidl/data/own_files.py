"""A data set of one's own: arrays in an npz file, a table in a CSV file, folders of images, or a text."""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl.data.dataset import DataError, Dataset, Splits, image_splits
from minidl.data.stdlib_text import Windows

KINDS = "NAME.npz, NAME.csv, NAME.txt or a folder of images, or NAME.py on the command line"
ARRAYS = (
    ("x_train", "y_train", "x_test", "y_test"),  # Keras
    ("train_images", "train_labels", "test_images", "test_labels"),  # MedMNIST
    ("x", "y"),
    ("data", "target"),  # scikit-learn
)
LABELS = ("label", "labels", "class", "target", "y")
"""Names of the column of a table that has the classes; if there is none, the last column has them."""

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
TESTS = ("test", "val", "valid", "validation")
"""Names of the folder next to `train` that has the test set."""

ONE_IN = 5  # samples of a set that is not divided is for testing
BLOCK_SIZE = 64  # symbols of a window of a text
Array = NDArray[Any]
Pair = tuple[Array, Array]


def read(path: str | os.PathLike[str]) -> Splits:
    """Read a data set for classification, or a text, as `data.load` says. Raises DataError."""
    path = Path(path).expanduser()
    if not path.exists():
        raise DataError(f"there is no data at {path}")
    readers = {".npz": _arrays, ".csv": _table, ".tsv": _table, ".txt": _text}
    read = _images if path.is_dir() else readers.get(path.suffix.lower())
    if read is None:
        raise DataError(f"{path} is of an unknown kind: give {KINDS}")
    return read(path)


def read_samples(path: str | os.PathLike[str], features: int) -> tuple[Array, Array | None]:
    """Read samples to predict: as `read` does, but whole, as they are in the file, with labels (words) or None.

    features: the numbers of a sample; a table with one column more has labels. Raises DataError.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise DataError(f"there are no samples at {path}")
    if path.suffix.lower() in (".csv", ".tsv"):
        x, y = _columns(path, features)
    elif path.suffix.lower() in (".npz", ".npy"):
        there = _load(path)
        names = [(x, y) for *_, x, y in ARRAYS if x in there] or [(name, "") for name in there if len(there) == 1]
        if not names or there[names[0][0]].ndim == 0:
            raise DataError(f"{path} has the arrays {', '.join(there)}: name that of the samples x")
        x, y = there[names[0][0]], there.get(names[0][1])
    elif path.is_dir() and any(each.is_dir() for each in path.iterdir()):
        x, y = _images_by_class(path)
    else:
        x, y = _pixels(sorted(path.iterdir()) if path.is_dir() else [path]), None
    return _samples(path, x), None if y is None else _labels(path, y).astype(str)


def _load(path: Path) -> dict[str, Array]:
    """The arrays of a file of numpy, by name in small letters."""
    try:
        file = np.load(path)
        if isinstance(file, np.ndarray):
            return {"x": file}
        with file:
            return {name.lower(): file[name] for name in file.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"cannot read {path}: {error}; write it by numpy.savez, with arrays x and y") from None


def _arrays(path: Path) -> Splits:
    there = _load(path)
    names = next((names for names in ARRAYS if set(names) <= there.keys()), None)
    if names is None:
        raise DataError(
            f"{path} has the arrays {', '.join(there)}: name them x_train, y_train, x_test, y_test, or x, y"
        )
    arrays = [there[name] for name in names]
    for name, array in zip(names, arrays, strict=True):
        if array.ndim == 0:
            raise DataError(f"{path}: {name} has one element and no rows: give an array with a row for each sample")
    return _splits(path, (arrays[0], arrays[1]), (arrays[2], arrays[3]) if arrays[2:] else None)


def _table(path: Path) -> Splits:
    x, y = _columns(path)
    assert y is not None
    train, test = splits = _splits(path, (x, y))
    mean, deviation = train.x.mean(axis=0), train.x.std(axis=0)
    deviation[deviation == 0] = 1
    train.x, test.x = ((part.x - mean) / deviation for part in (train, test))
    return replace(splits, mean=mean, deviation=deviation)


def _columns(path: Path, features: int | None = None) -> tuple[Array, Array | None]:
    """The columns of numbers, and that of labels; with `features` columns in all there are no labels."""
    text = _contents(path)
    separator = max("\t;,", key=text.partition("\n")[0].count)
    number_in = partial(_number, decimal="." if separator == "," else ",")
    lines = list(csv.reader(text.splitlines(), delimiter=separator))
    rows = [(line_number, line) for line_number, line in enumerate(lines, 1) if any(cell.strip() for cell in line)]
    if not rows or len(rows[0][1]) < 2 - (features == 1):
        raise DataError(f"{path} is no table: expected rows of numbers and a class, separated by commas")
    head = rows[0][1]
    names = [name.strip().lower() for name in head]
    at = next((names.index(name) for name in LABELS if name in names), len(head) - 1)
    if features == len(head):
        at = len(head)
    if any(number_in(cell) is None for place, cell in enumerate(head) if place != at):
        rows = rows[1:]
    else:
        head = [f"column {place + 1}" for place in range(len(head))]
    numbers, labels = head[:at] + head[at + 1 :], []
    x = np.empty((len(rows), len(numbers)), np.float32)
    for sample, (line_number, cells) in enumerate(rows):
        if len(cells) != len(head):
            raise DataError(f"{path}, line {line_number}: {len(cells)} cells, but the first line has {len(head)}")
        labels += [cell.strip() for cell in cells[at : at + 1]]
        for place, cell in enumerate(cells[:at] + cells[at + 1 :]):
            if (value := number_in(cell)) is None:
                raise DataError(
                    f"{path}, line {line_number}: {numbers[place]} is {cell!r}, which is no number: remove the column "
                    "or row"
                )
            x[sample, place] = value
    if at == len(head):
        return x, None
    values: Any = [number_in(label) for label in labels]
    return x, np.array(labels if None in values else values)


def _number(cell: str, decimal: str) -> float | None:
    """The number in a cell, with a decimal point, or comma if that is `decimal`; None if there is none."""
    try:
        return float(cell.replace(decimal, "."))
    except ValueError:
        return None


def _text(path: Path) -> Splits:
    text = _contents(path)
    vocabulary, tokens = np.unique(np.array(list(text)), return_inverse=True)
    classes, last = tuple(map(str, vocabulary)), len(tokens) - len(tokens) // 10
    if len(tokens) // 10 <= BLOCK_SIZE:
        raise DataError(f"{path} has {len(tokens)} characters: a text needs more than {10 * BLOCK_SIZE + 10}")
    return Splits(
        Windows(tokens[:last], BLOCK_SIZE, BLOCK_SIZE, f"{path.name}, training set", classes),
        Windows(tokens[last:], BLOCK_SIZE, BLOCK_SIZE, f"{path.name}, test set", classes),
        classes,
    )


def _contents(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is no text in UTF-8 ({error.reason} at byte {error.start}): save it as UTF-8"
        ) from None


def _images(path: Path) -> Splits:
    train = path / "train"
    if not train.is_dir():
        return _splits(path, _images_by_class(path))
    test = next((path / name for name in TESTS if (path / name).is_dir()), None)
    return _splits(path, _images_by_class(train), _images_by_class(test) if test else None)


def _images_by_class(folder: Path) -> Pair:
    """The images (n, channels, height, width) and their classes."""
    files = [
        file
        for of_class in sorted(each for each in folder.iterdir() if each.is_dir())
        for file in sorted(of_class.iterdir())
        if file.suffix.lower() in IMAGES
    ]
    if not files:
        raise DataError(f"{folder} has no images in folders that are named by class, such as {folder}/cat/1.png")
    return _pixels(files), np.array([file.parent.name for file in files])


def _pixels(files: Sequence[Path]) -> Array:
    """Images (n, channels, height, width) of one size; one channel if all are grey."""
    from PIL import Image, UnidentifiedImageError

    pixels, is_grey = [], True
    for file in files:
        try:
            with Image.open(file) as image:
                is_grey = is_grey and image.mode in ("1", "L")
                pixels.append(np.asarray(image.convert("RGB")))
        except (UnidentifiedImageError, OSError) as error:
            raise DataError(f"cannot read the image {file}: {error}") from None
        if pixels[-1].shape != pixels[0].shape:
            sizes = (" x ".join(map(str, each.shape[1::-1])) for each in (pixels[0], pixels[-1]))
            raise DataError(f"{files[0]} has {next(sizes)} pixels, {file} has {next(sizes)}: give all images one size")
    return np.stack(pixels).transpose(0, 3, 1, 2)[:, : 1 if is_grey else 3]


def _splits(path: Path, train: Pair, test: Pair | None = None) -> Splits:
    """The Splits of samples and labels as they came."""
    train = _samples(path, train[0]), _labels(path, train[1])
    test = (_samples(path, test[0]), _labels(path, test[1])) if test else None
    for x, y in filter(None, (train, test)):
        if len(x) != len(y):
            raise DataError(f"{path} has {len(x)} samples but {len(y)} labels: each sample needs one")
    if len(train[0]) < (1 if test else 2) or (test and not len(test[0])):
        raise DataError(f"{path} has too few samples: {len(train[0])}, and {len(test[0]) if test else 0} for testing")
    if test is None:
        order = np.random.default_rng(0).permutation(len(train[0]))
        parts = order[: -(-len(order) // ONE_IN)], order[-(-len(order) // ONE_IN) :]
        test, train = ((train[0][np.sort(part)], train[1][np.sort(part)]) for part in parts)
    if train[0].shape[1:] != test[0].shape[1:]:
        raise DataError(f"{path}: samples have shape {train[0].shape[1:]}, those for testing {test[0].shape[1:]}")
    classes = np.unique(train[1])
    if unknown := sorted(set(test[1].tolist()) - set(classes.tolist())):
        raise DataError(f"{path}: the class {unknown[0]} is in the test set alone: the training set needs it too")
    names = tuple(map(str, classes.tolist()))
    (x_train, y_train), (x_test, y_test) = ((x, np.searchsorted(classes, y)) for x, y in (train, test))
    if x_train.dtype == np.uint8:
        return image_splits(path.name, names, (x_train, y_train), (x_test, y_test))
    return Splits(
        Dataset(x_train, y_train, f"{path.name}, training set", names),
        Dataset(x_test, y_test, f"{path.name}, test set", names),
        names,
    )


def _labels(path: Path, y: Array) -> Array:
    """One label for each sample: whole numbers or words; from a column, or from rows with a single 1."""
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim == 2 and y.dtype.kind in "biuf" and set(np.unique(y)) <= {0, 1} and (y.sum(axis=1) == 1).all():
        y = y.argmax(axis=1)
    if y.ndim != 1 or y.dtype.kind not in "biufSU":
        raise DataError(f"{path}: labels of shape {y.shape} and type {y.dtype}; expected a class for each sample, (n,)")
    if y.dtype.kind == "f":
        if not (np.isfinite(y) & (y == np.round(y))).all():
            odd = y[~(np.isfinite(y) & (y == np.round(y)))][0]
            raise DataError(f"{path}: {odd:g} is no class; minidl's models classify: give whole numbers or words")
        y = y.astype(np.int64)
    return y.astype(str) if y.dtype.kind == "S" else y


def _samples(path: Path, x: Array) -> Array:
    """The samples as float32; images of bytes stay, as (n, channels, height, width)."""
    if x.dtype == np.uint8 and x.ndim in (3, 4):
        channels_last = x.ndim == 4 and x.shape[3] in (1, 3, 4) and x.shape[1] not in (1, 3)
        return x[:, None] if x.ndim == 3 else x.transpose(0, 3, 1, 2) if channels_last else x
    if x.dtype.kind not in "biuf":
        raise DataError(f"{path}: samples of type {x.dtype}, expected numbers")
    if not np.isfinite(x).all():
        first = int(np.flatnonzero(~np.isfinite(x.reshape(len(x), -1)).all(axis=1))[0])
        raise DataError(f"{path}: sample {first} has a value that is not finite")
    return x.astype(np.float32)


def is_path(name: str) -> bool:
    """Whether a name that is no data set's is a file or a folder: it has an ending or a separator, or it exists."""
    return bool(Path(name).suffix) or "/" in name or os.sep in name or Path(name).is_dir()
