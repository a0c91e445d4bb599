"""A data set of one's own: arrays in an npz file, a table in a CSV file, folders of images, or a text."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl.data.dataset import DataError, Dataset, Splits, image_splits
from minidl.data.stdlib_text import Windows
from minidl.random import Purpose, stream

KINDS = "NAME.npz, NAME.csv, NAME.txt or a folder of images, or NAME.py on the command line"
ARRAYS = (
    ("x_train", "y_train", "x_test", "y_test"),  # Keras
    ("train_images", "train_labels", "test_images", "test_labels"),  # MedMNIST
    ("x", "y"),
    ("data", "target"),  # scikit-learn
)
LABELS = ("label", "labels", "class", "target", "y")
"""Names of the column of a table that has the classes; if there is none, the last column has them."""

MISSING = ("", "?", "na", "n/a", "nan", "null")
"""What a cell without a value has."""

ROW_NUMBERS = ("", "id", "index", "unnamed: 0")
"""Names of a column that numbers the samples, which is left out, as is a first column that counts them."""

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
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


def read_samples(path: str | os.PathLike[str], like: Splits) -> tuple[Array, Array | None]:
    """Read samples to predict: as `read` does, but whole, as they are in the file, with labels (words) or None.

    like: the data of training; columns of a table are found by the names that they have there. Raises DataError.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise DataError(f"there are no samples at {path}")
    channels = like.train.x.shape[1] if like.train.x.ndim == 4 else None
    y: Array | None = None
    if path.is_dir() and (files := _images_among(path.iterdir())):
        x = _pixels(files, channels)
    elif path.is_dir():
        x, y = _images_by_class(path, channels)
    elif path.suffix.lower() in (".csv", ".tsv"):
        x, y = _new_rows(path, like)
    elif path.suffix.lower() in (".npz", ".npy"):
        pairs = [names[-2:] for names in ARRAYS]
        x, *labels = _load(path, [*pairs, *((x,) for x, _ in pairs)], "name that of the samples x", any_name=True)
        y = labels[0] if labels else None
    else:
        x = _pixels([path], channels)
    x, y = _samples(path, x), None if y is None else _labels(path, y).astype(str)
    if not len(x) or (y is not None and len(x) != len(y)):
        raise DataError(f"{path} has {len(x)} samples{'' if y is None else f' and {len(y)} labels'} to predict")
    return x, y


def _load(path: Path, wanted: Sequence[tuple[str, ...]], advice: str, any_name: bool = False) -> list[Array]:
    """The arrays of the first `wanted` names that are all in the file, in small or capital letters.

    any_name: an array that is alone in the file may have another name.
    """
    try:
        file = np.load(path)
        with nullcontext({"x": file}) if isinstance(file, np.ndarray) else file as there:
            at = {name.lower(): name for name in there}
            alone = tuple(at) if any_name and len(at) == 1 else ()
            names = next((names for names in wanted if set(names) <= at.keys()), alone)
            arrays = [there[at[name]] for name in names]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"cannot read {path}: {error}; write it by numpy.savez, with arrays x and y of numbers or text, not of "
            "objects"
        ) from None
    if not names:
        raise DataError(f"{path} has the arrays {', '.join(at)}: {advice}")
    for name, array in zip(names, arrays, strict=True):
        if array.ndim == 0:
            raise DataError(f"{path}: {name} has one element and no rows: give an array with a row for each sample")
    return arrays


def _arrays(path: Path) -> Splits:
    x, y, *test = _load(path, ARRAYS, "name them x_train, y_train, x_test, y_test, or x, y")
    return _splits(path, (x, y), (test[0], test[1]) if test else None)


@dataclass
class _Rows:
    """A table in text: `names` from its first line, or "column 1", ...; cells by the number of their line."""

    path: Path
    names: list[str]
    is_named: bool
    cells: list[tuple[int, list[str]]]
    number_in: Callable[[str], float | None]

    def numbers(self, places: Sequence[int]) -> Array:
        """The numbers of the columns at these places."""
        x = np.empty((len(self.cells), len(places)))
        for sample, (line, cells) in enumerate(self.cells):
            for i, place in enumerate(places):
                if (value := self.number_in(cells[place])) is None:
                    raise DataError(
                        f"{self.path}, line {line}: {self.names[place]} is {cells[place]!r}, which is no number: "
                        "remove the column or row, or name the column label if it has the classes"
                    )
                x[sample, i] = value
        if all(any(mark in cells[place] for _, cells in self.cells for place in places) for mark in ".,"):
            raise DataError(f"{self.path} has numbers with commas and with points: keep the decimal ones alone")
        return x

    def classes(self, place: int) -> Array:
        """The classes in the column: numbers if all are."""
        words = [cells[place].strip() for _, cells in self.cells]
        values: Any = [self.number_in(word) for word in words]
        return np.array(words if None in values else values)


def _table(path: Path) -> Splits:
    rows = _rows(path)
    at = _place_of_label(rows.names)
    for line, cells in rows.cells:
        if cells[at].strip().lower() in MISSING:
            raise DataError(f"{path}, line {line}: the class is {cells[at]!r}, which is none: remove the row")
    places = [place for place in range(len(rows.names)) if place != at]
    if not places:
        raise DataError(f"{path} is no table: expected rows of numbers and a class, separated by commas")
    x = rows.numbers(places)
    counts_rows = len(x) > 1 and (np.diff(x[:, 0]) == 1).all()
    is_kept = [rows.names[place] not in ROW_NUMBERS and not (place == 0 and counts_rows) for place in places]
    if not any(is_kept):
        is_kept = [True] * len(places)
    columns = *(rows.names[place] for place in np.array(places)[is_kept]), rows.names[at]
    splits = _splits(path, (x[:, is_kept], rows.classes(at)), standardise=True)
    return replace(splits, columns=columns if len(set(columns)) == len(columns) else ())


def _new_rows(path: Path, like: Splits) -> tuple[Array, Array | None]:
    """The columns that a model reads, in its order, and the classes if they are there."""
    rows, count = _rows(path), int(np.prod(like.train.x.shape[1:]))
    is_bare = len(rows.names) == count  # without a column of classes
    if like.columns:
        *wanted, label = like.columns
        numbered = _numbered(len(rows.names))
        known = [rows.names, numbered, *([wanted] if is_bare and not rows.is_named else [])]
        names = next((names for names in known if set(wanted) <= set(names)), None)
        if names is None:
            missing = next(name for name in wanted if name not in rows.names)
            raise DataError(
                f"{path} has no column {missing}, which the model was trained on: name its columns as there"
            )
        places, at = [names.index(name) for name in wanted], names.index(label) if label in names else None
    else:
        at = None if is_bare else _place_of_label(rows.names)
        places = [place for place in range(len(rows.names)) if place != at]
    has_classes = at is not None and all(cells[at].strip().lower() not in MISSING for _, cells in rows.cells)
    return rows.numbers(places), rows.classes(at) if at is not None and has_classes else None


def _rows(path: Path) -> _Rows:
    text = _contents(path)
    separator = max("\t;,", key=text.lstrip("\n").partition("\n")[0].count)
    number_in = partial(_number, decimal="." if separator == "," else ",")
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    try:
        rows = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise DataError(f"cannot read {path}, line {reader.line_num}: {error}") from None
    if not rows:
        raise DataError(f"{path} is no table: it is empty")
    head = rows[0][1]
    while not head[-1].strip():  # a comma at the end
        head.pop()
    for line, cells in rows:
        while len(cells) > len(head) and not cells[-1].strip():
            cells.pop()
        if len(cells) != len(head):
            raise DataError(f"{path}, line {line}: {len(cells)} cells, but the first line has {len(head)}")
    names = [cell.strip().lower() for cell in head]
    at = _place_of_label(names)
    is_named = (
        (names[at] in LABELS and all(cells[at].strip().lower() != names[at] for _, cells in rows[1:]))
        or any(
            number_in(name) is None and name not in MISSING
            for place, name in enumerate(names)
            if place != at or len(names) == 1
        )
        or (len(names) > 3 and names == [str(place) for place in range(len(names))])  # as pandas numbers columns
    )
    return _Rows(path, names if is_named else _numbered(len(names)), is_named, rows[is_named:], number_in)


def _numbered(count: int) -> list[str]:
    return [f"column {place + 1}" for place in range(count)]


def _place_of_label(names: list[str]) -> int:
    """The place of the column that has the classes; y next to x is a coordinate."""
    known = [name for name in LABELS if name in names and not (name == "y" and "x" in names)]
    return names.index(known[0]) if known else len(names) - 1


def _number(cell: str, decimal: str) -> float | None:
    """The number in a cell, with a decimal point, or comma if that is `decimal`; None if there is none."""
    try:
        value = float(cell if decimal == "." else cell.replace(decimal, "."))
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in cell else None


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
    if not train.is_dir() or _images_among(train.iterdir()):  # a train is a class, too
        return _splits(path, _images_by_class(path))
    test = next((path / name for name in TESTS if (path / name).is_dir()), None)
    x, y = _images_by_class(train)
    return _splits(path, (x, y), _images_by_class(test, x.shape[1]) if test else None)


def _images_among(files: Iterable[Path]) -> list[Path]:
    return sorted(file for file in files if file.suffix.lower() in IMAGES and not file.name.startswith("."))


def _images_below(folder: Path) -> list[Path]:
    """The images in folders within the folder, also those behind links; what begins with a dot is left out."""
    files = []
    for at, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(at, name) for name in names]
    return _images_among(files)


def _images_by_class(folder: Path, channels: int | None = None) -> Pair:
    """The images (n, channels, height, width) and their classes."""
    files = _images_below(folder)
    for file in files:
        if file.parent.parent != folder:
            raise DataError(
                f"{file} is not where a class has its images, such as {folder}/cat/1.png (or below {folder}/train and "
                f"{folder}/test): move it"
            )
    if not files:
        raise DataError(f"{folder} has no images in folders that are named by class, such as {folder}/cat/1.png")
    return _pixels(files, channels), np.array([file.parent.name for file in files])


def _pixels(files: Sequence[Path], channels: int | None = None) -> Array:
    """Images (n, channels, height, width) of one size, upright, on white; by default one channel if all are grey."""
    from PIL import Image, ImageOps

    pixels, is_grey = [], True
    for file in files:
        try:
            with Image.open(file) as opened:
                image = ImageOps.exif_transpose(opened)
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise DataError(f"cannot read the image {file}: {error}") from None
        if image.mode[0] in "IF":
            raise DataError(
                f"{file} has more than 8 bits for a pixel (mode {image.mode}): convert it, or give NAME.npz"
            )
        is_grey = is_grey and image.mode in ("1", "L", "LA")
        if image.has_transparency_data:
            image = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
        pixels.append(np.asarray((image.convert("L") if channels == 1 else image).convert("RGB")))
        if pixels[-1].shape != pixels[0].shape:
            sizes = (" x ".join(map(str, each.shape[1::-1])) for each in (pixels[0], pixels[-1]))
            raise DataError(f"{files[0]} has {next(sizes)} pixels, {file} has {next(sizes)}: give all images one size")
    return np.stack(pixels).transpose(0, 3, 1, 2)[:, : channels or (1 if is_grey else 3)]


def _splits(path: Path, train: Pair, test: Pair | None = None, standardise: bool = False) -> Splits:
    """The Splits of samples and labels as they came.

    standardise: columns get the mean 0 and the standard deviation 1 in the training set
    """
    train = _samples(path, train[0]), _labels(path, train[1])
    test = (_samples(path, test[0]), _labels(path, test[1])) if test else None
    for x, y in filter(None, (train, test)):
        if len(x) != len(y):
            raise DataError(f"{path} has {len(x)} samples but {len(y)} labels: each sample needs one")
    if len(train[0]) < (1 if test else 2) or (test and not len(test[0])):
        raise DataError(f"{path} has too few samples: {len(train[0])}, and {len(test[0]) if test else 0} for testing")
    count = len(np.unique(train[1]))
    if count < 2:
        raise DataError(f"{path} has the class {train[1][0]} alone: a model needs two or more to tell apart")
    if train[1].dtype.kind in "iu" and count > max(10, len(train[1]) // 2):
        raise DataError(
            f"{path} has {count} labels in {len(train[1])} samples: minidl's models classify; name the column label if "
            "another one has the classes"
        )
    if test is None:
        order = stream(Purpose.TEST_SET, 0).permutation(len(train[0]))
        _, first = np.unique(train[1][order], return_index=True)
        order = np.concatenate([np.delete(order, first), order[first]])  # each class is in the training set
        parts = order[: -(-len(order) // ONE_IN)], order[-(-len(order) // ONE_IN) :]
        test, train = ((train[0][np.sort(part)], train[1][np.sort(part)]) for part in parts)
    if train[0].shape[1:] != test[0].shape[1:]:
        raise DataError(f"{path}: samples have shape {train[0].shape[1:]}, those for testing {test[0].shape[1:]}")
    if (train[0].dtype == np.uint8) != (test[0].dtype == np.uint8):
        raise DataError(f"{path}: samples of {train[0].dtype}, those for testing of {test[0].dtype}: give one type")
    classes = np.unique(train[1])
    if unknown := sorted(set(test[1].tolist()) - set(classes.tolist())):
        raise DataError(f"{path}: the class {unknown[0]} is in the test set alone: the training set needs it too")
    names = tuple(map(str, classes.tolist()))
    (x_train, y_train), (x_test, y_test) = ((x, np.searchsorted(classes, y)) for x, y in (train, test))
    if x_train.dtype == np.uint8:
        return image_splits(path.name, names, (x_train, y_train), (x_test, y_test))
    mean = deviation = None
    if standardise:
        mean, deviation = x_train.mean(axis=0), x_train.std(axis=0)
        deviation[np.ptp(x_train, axis=0) == 0] = 1
        x_train, x_test = ((x - mean) / deviation for x in (x_train, x_test))
    return Splits(
        Dataset(x_train.astype(np.float32), y_train, f"{path.name}, training set", names),
        Dataset(x_test.astype(np.float32), y_test, f"{path.name}, test set", names),
        names,
        mean,
        deviation,
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
    """The samples (n, ...) as they are; images as (n, channels, height, width), single numbers as (n, 1)."""
    if x.dtype.kind not in "biuf":
        raise DataError(f"{path}: samples of type {x.dtype}, expected numbers")
    if x.ndim == 1 or (x.ndim == 3 and x.dtype == np.uint8):
        x = x[:, None]
    elif x.ndim == 4 and x.shape[3] in (1, 3, 4) and x.shape[1] not in (1, 3):
        x = x.transpose(0, 3, 1, 2)
    if not np.prod(x.shape[1:]):
        raise DataError(f"{path}: samples of shape {x.shape[1:]} have no numbers")
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(x.astype(np.float32)).all(axis=tuple(range(1, x.ndim)))
    if not is_finite.all():
        raise DataError(f"{path}: sample {is_finite.argmin()} has a value that is not finite in 32 bits")
    return x


def fingerprint(name: str) -> str:
    """A hash of the file, or of the names and sizes of a folder's images; "" for what is no path."""
    path = Path(name).expanduser()
    if not is_path(name) or not path.exists():
        return ""
    files = _images_below(path) if path.is_dir() else []
    described = "\n".join(f"{file.relative_to(path)} {file.stat().st_size}" for file in files)
    return hashlib.sha256(described.encode() if path.is_dir() else path.read_bytes()).hexdigest()


def is_path(name: str) -> bool:
    """Whether a name that is no data set's is a file or a folder: it has an ending or a separator, or it exists."""
    return bool(Path(name).suffix) or "/" in name or os.sep in name or Path(name).is_dir()
