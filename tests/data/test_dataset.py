"""Datasets and their two parts."""

import pickle

import numpy as np
import pytest

from minidl.data import Dataset, Splits

X = np.arange(12.0).reshape(6, 2)
Y = np.arange(6)


def test_an_integer_a_slice_and_an_index_array_pick_samples_with_their_targets() -> None:
    dataset = Dataset(X, Y)
    for index in (3, -1, slice(1, 5, 2), np.array([5, 0, 0]), np.array([], dtype=int)):
        x, y = dataset[index]
        np.testing.assert_array_equal(x, X[index])
        np.testing.assert_array_equal(y, Y[index])
    assert [int(y) for _, y in dataset] == list(range(6))
    with pytest.raises(IndexError):
        dataset[6]


def test_unequal_lengths_are_refused_with_both_shapes() -> None:
    for x, y in [(X, Y[:5]), (X, np.array(1)), (np.array(1.0), Y)]:
        with pytest.raises(ValueError, match=r"x has shape \(.*\) and y has shape"):
            Dataset(x, y)


def test_a_dataset_describes_itself_in_a_line() -> None:
    described = repr(Dataset(np.zeros((1500, 1, 8, 8), np.float32), np.zeros(1500), "scans", "0123456789"))
    assert described == "scans: 1,500 samples of 1 x 8 x 8 (float32), 10 classes"
    assert repr(Dataset(Y, Y)) == "data: 6 samples of 1 (int64)"


def test_classes_are_the_names_of_all_labels() -> None:
    with pytest.raises(TypeError, match=r"classes are names, such as \('cat', 'dog'\), got 13"):
        Splits(Dataset(X, Y), Dataset(X, Y), classes=13)
    ten = tuple("abcdefghij")
    for train, test in ((Y, Y + 7), (Y + 7, Y)):
        with pytest.raises(ValueError, match="larger has labels up to 12, but classes names 10, which are 0 to 9"):
            names = ["larger" if y.max() > 9 else "right" for y in (train, test)]
            Splits(Dataset(X, train, names[0]), Dataset(X, test, names[1]), ten)
    Splits(Dataset(X, Y + 4), Dataset(X, np.full(6, -100)), ten)


def test_splits_unpack_into_train_and_test_and_survive_pickling() -> None:
    splits = Splits(Dataset(X, Y % 2, "a"), Dataset(X[:2], Y[:2], "b"), ("cat", "dog"), np.ones(2, np.float32))
    train, test = pickle.loads(pickle.dumps(splits))
    assert (len(train), len(test)) == (6, 2)
    assert repr(splits) == "a: 6 samples of 2 (float64)\nb: 2 samples of 2 (float64)"


R = np.random.default_rng(7)
CONTENTS = {
    "images": (R.random((9, 1, 3, 5)).astype(np.float32), Y.repeat(2)[:9], {"mean": np.full((1, 3, 5), 0.4)}),
    "a table": (
        R.normal(size=(9, 4)),
        Y.repeat(2)[:9],
        {"deviation": np.array([0.3, 2, 7, 1]), "columns": tuple("abcdy")},
    ),
    "tokens": (R.integers(0, 31, (9, 8)), R.integers(0, 31, (9, 8)), {"classes": tuple(map(chr, range(65, 96)))}),
    "quantities": (R.normal(size=(9, 2)), R.normal(size=(9, 1)), {}),
    "padding alone": (R.normal(size=(9, 2)), np.full(9, -100), {}),
    "words": (np.array(["to", "be"] * 4), np.array(["or", "not"] * 4), {}),
    "nothing": (X[:0], Y[:0], {}),
}


@pytest.mark.parametrize(("x", "y", "more"), CONTENTS.values(), ids=list(CONTENTS))
def test_an_outline_keeps_all_but_the_samples(x: np.ndarray, y: np.ndarray, more: dict) -> None:
    splits = Splits(Dataset(x, y), Dataset(x, y), **more)
    outline = splits.outline()
    if x.dtype.kind != "U":  # no model reads words
        again = Splits.from_outline(outline)
        assert {name: str(value) for name, value in again.outline().items()} == {
            name: str(value) for name, value in outline.items()
        }
        if len(x) and x.dtype.kind == "f":
            assert np.isnan(again.train.x).all()
            np.testing.assert_array_equal(again.prepared(x[:2]), splits.prepared(x[:2]))
        if len(x) and y.dtype.kind == "i" and y.max() > 0 and not splits.classes:
            assert again.train.y.max() == y.max()
