"""Data of one's own: arrays in an npz file, a table (`own_tables`), folders of images (`own_images`), or a text."""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from minidl.data.dataset import DataError, Dataset, Splits, are_pixels, image_splits
from minidl.data.own_images import images_among, images_below, images_by_class, pixels_of
from minidl.data.own_tables import EXACT, LABELS, MISSING, ROW_NUMBERS, numbered, place_of_label, read_table, text_of
from minidl.data.stdlib_text import Windows
from minidl.random import Purpose, stream

KINDS = "NAME.npz, NAME.csv, NAME.txt or a folder of images, or NAME.py on the command line"
NEW_KINDS = "NAME.csv, NAME.npz, NAME.npy, an image, or a folder of images"
ARRAYS = (
    ("x_train", "y_train", "x_test", "y_test"),  # Keras
    ("train_images", "train_labels", "test_images", "test_labels"),  # MedMNIST
    ("x", "y"),
    ("data", "target"),  # scikit-learn
)
TESTS = ("test", "val", "valid", "validation")
"""Names of the folder next to `train` that has the test set."""

ONE_IN = 5  # samples of a set that is not divided is for testing
SHARE_A_NUMBER = 5  # samples, on average: numbers that are rarer are no classes
BLOCK_SIZE = 64  # symbols of a window of a text
Array = NDArray[Any]
Pair = tuple[Array, Array]


class Samples(NamedTuple):
    """Samples to predict, their labels or None, and for images the names of their files within the folder."""

    x: Array
    y: Array | None
    files: tuple[str, ...] = ()


Readers = tuple[Callable[[Path], Splits] | None, Callable[[Path, Splits], Samples] | None]


def read(path: str | os.PathLike[str]) -> Splits:
    """Read a data set for classification, or a text, as `data.load` says. Raises DataError."""
    path = Path(path).expanduser()
    read, _ = _readers(path)
    if read is None:
        raise DataError(f"{path} is of an unknown kind: give {KINDS}")
    return read(path)


def read_samples(path: str | os.PathLike[str], like: Splits) -> Samples:
    """Read samples to predict: as `read` does, but whole, as they are in the file, with labels (words).

    like: the data of training; columns of a table are found by the names that they have there. Raises DataError.
    """
    path = Path(path).expanduser()
    _, read = _readers(path)
    if read is None:
        raise DataError(f"{path} has no samples: give {NEW_KINDS}")
    x, y, files = read(path, like)
    if x.ndim == 3 and like.train.x.ndim == 4:
        x = x[:, None]
    x, y = _samples(path, x), None if y is None else _labels(path, y).astype(str)
    if not len(x) or (y is not None and len(x) != len(y)):
        raise DataError(f"{path} has {len(x)} samples{'' if y is None else f' and {len(y)} labels'} to predict")
    return Samples(x, y, files)


def _readers(path: Path) -> Readers:
    """What reads a file of this kind. A file of an unknown kind may be an image. Raises DataError without one."""
    if not path.exists():
        raise DataError(f"there is no data at {path}")
    return READERS.get("a folder" if path.is_dir() else path.suffix.lower(), (None, _new_images))


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
    if not names and "tree" in at:
        raise DataError(
            f"{path} is the checkpoint of a run, no data: `minidl predict` and parallel.Checkpoint.load read it"
        )
    if not names:
        raise DataError(f"{path} has the arrays {', '.join(at)}: {advice}")
    for name, array in zip(names, arrays, strict=True):
        if array.ndim == 0:
            raise DataError(f"{path}: {name} has one element and no rows: give an array with a row for each sample")
    return arrays


def _arrays(path: Path) -> Splits:
    x, y, *test = _load(path, ARRAYS, "name them x_train, y_train, x_test, y_test, or x, y")
    return _splits(path, (x, y), (test[0], test[1]) if test else None)


def _new_arrays(path: Path, like: Splits) -> Samples:
    pairs = [names[-2:] for names in ARRAYS]
    x, *labels = _load(path, [*pairs, *((x,) for x, _ in pairs)], "name that of the samples x", any_name=True)
    return Samples(x, labels[0] if labels else None)


def _table(path: Path) -> Splits:
    rows = read_table(path)
    at = place_of_label(rows.names)
    for line, cells in rows.cells:
        if cells[at].strip().lower() in MISSING:
            raise DataError(f"{path}, line {line}: the class is {cells[at]!r}, which is none: remove the row")
    places = [place for place in range(len(rows.names)) if place != at]
    if not places:
        raise DataError(f"{path} is no table: expected rows of numbers and a class, separated by commas")
    if rows.names[at] not in LABELS and (ones := rows.one_hot()):
        raise DataError(
            f"{path} has a single 1 in each row of its last columns, {', '.join(ones)}: if they stand for classes, "
            "write the name of the class in one column, label"
        )
    x = rows.numbers(places)
    counts_rows = len(x) > 1 and (np.diff(x[:, 0]) == 1).all()
    is_kept = [rows.names[place] not in ROW_NUMBERS and not (place == 0 and counts_rows) for place in places]
    if not any(is_kept):
        is_kept = [True] * len(places)
    columns = *(rows.names[place] for place in np.array(places)[is_kept]), rows.names[at]
    splits = _splits(path, (x[:, is_kept], rows.classes(at)), standardise=True)
    return replace(splits, columns=columns if len(set(columns)) == len(columns) else ())


def _new_rows(path: Path, like: Splits) -> Samples:
    """The columns that a model reads, in its order, and the classes if they are there."""
    rows, count = read_table(path), int(np.prod(like.train.x.shape[1:]))
    is_bare = len(rows.names) == count  # without a column of classes
    if like.columns:
        *wanted, label = like.columns
        by_place = numbered(len(rows.names))
        known = [rows.names, by_place, *([wanted] if is_bare and not rows.is_named else [])]
        names = next((names for names in known if set(wanted) <= set(names)), None)
        if names is None:
            missing = next(name for name in wanted if name not in rows.names)
            raise DataError(
                f"{path} has no column {missing}, which the model was trained on: name its columns as there"
            )
        places, at = [names.index(name) for name in wanted], names.index(label) if label in names else None
    else:
        at = None if is_bare else place_of_label(rows.names)
        places = [place for place in range(len(rows.names)) if place != at]
    has_classes = at is not None and all(cells[at].strip().lower() not in MISSING for _, cells in rows.cells)
    return Samples(rows.numbers(places), rows.classes(at) if at is not None and has_classes else None)


def _text(path: Path) -> Splits:
    text = text_of(path)
    vocabulary, tokens = np.unique(np.array(list(text)), return_inverse=True)
    classes, last = tuple(map(str, vocabulary)), len(tokens) - len(tokens) // 10
    if len(tokens) // 10 <= BLOCK_SIZE:
        raise DataError(f"{path} has {len(tokens)} characters: a text needs more than {10 * BLOCK_SIZE + 10}")
    return Splits(
        Windows(tokens[:last], BLOCK_SIZE, BLOCK_SIZE, f"{path.name}, training set", classes),
        Windows(tokens[last:], BLOCK_SIZE, BLOCK_SIZE, f"{path.name}, test set", classes),
        classes,
    )


def _images(path: Path) -> Splits:
    train = path / "train"
    if not train.is_dir() or images_among(train.iterdir()):  # a train is a class, too
        return _splits(path, images_by_class(path)[:2])
    test = next((path / name for name in TESTS if (path / name).is_dir()), None)
    x, y, _ = images_by_class(train)
    return _splits(path, (x, y), images_by_class(test, x.shape[1])[:2] if test else None)


def _new_images(path: Path, like: Splits) -> Samples:
    """An image, the images in a folder, or those in its folders, which are classes."""
    channels = like.train.x.shape[1] if like.train.x.ndim == 4 else None
    files = images_among(path.iterdir()) if path.is_dir() else [path]
    if not files:
        return Samples(*images_by_class(path, channels))
    return Samples(pixels_of(files, channels), None, tuple(file.name for file in files))


READERS: dict[str, Readers] = {
    ".npz": (_arrays, _new_arrays),
    ".npy": (None, _new_arrays),
    ".csv": (_table, _new_rows),
    ".tsv": (_table, _new_rows),
    ".txt": (_text, None),
    "a folder": (_images, _new_images),
}
"""What reads each kind of file: whole data sets, and samples to predict."""


def _splits(path: Path, train: Pair, test: Pair | None = None, standardise: bool = False) -> Splits:
    """The Splits of samples and labels as they came.

    standardise: columns get the mean 0 and the standard deviation 1 in the training set
    """
    sets = [train, test] if test else [train]
    as_bytes = _are_images([x for x, _ in sets])
    sets = [(_samples(path, x.astype(np.uint8) if as_bytes else x), _labels(path, y)) for x, y in sets]
    train, test = sets[0], sets[1] if test else None
    for x, y in sets:
        if len(x) != len(y):
            raise DataError(f"{path} has {len(x)} samples but {len(y)} labels: each sample needs one")
    if len(train[0]) < (1 if test else 2) or (test and not len(test[0])):
        raise DataError(f"{path} has too few samples: {len(train[0])}, and {len(test[0]) if test else 0} for testing")
    count = len(np.unique(train[1]))
    if count < 2:
        raise DataError(f"{path} has the class {train[1][0]} alone: a model needs two or more to tell apart")
    if train[1].dtype.kind in "iu" and count > max(10, len(train[1]) // SHARE_A_NUMBER):
        raise DataError(
            f"{path} has {count} numbers as labels of {len(train[1])} samples, which look like a quantity, but "
            "minidl's models classify: name the column label if another one has the classes, or write these as words"
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


def _are_images(sets: list[Array]) -> bool:
    """Whether these are images in whole numbers of 0..255, of any type."""
    if not all(x.ndim > 2 and x.dtype.kind in "iuf" and are_pixels(x, brightest=0) for x in sets):
        return False
    return max(int(x.max()) for x in sets) >= 128


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
        if np.abs(y).max(initial=0) > EXACT:
            raise DataError(f"{path}: label {np.abs(y).max():.0f} is not exact in {y.dtype}: give int64 or words")
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
    if path.is_dir():
        described = (f"{file.relative_to(path)} {file.stat().st_size}" for file in images_below(path))
        return hashlib.sha256("\n".join(described).encode()).hexdigest()
    with open(path, "rb") as file:  # 0.7 s for a GB, at most a sixth of what loading takes (measured)
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_path(name: str) -> bool:
    """Whether a name that is no data set's is a file or a folder: it has an ending or a separator, or it exists."""
    return bool(Path(name).suffix) or "/" in name or os.sep in name or Path(name).is_dir()
