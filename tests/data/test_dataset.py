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


def test_splits_unpack_into_train_and_test_and_survive_pickling() -> None:
    splits = Splits(Dataset(X, Y, "a"), Dataset(X[:2], Y[:2], "b"), ("cat", "dog"), np.ones(2, np.float32))
    train, test = pickle.loads(pickle.dumps(splits))
    assert (len(train), len(test)) == (6, 2)
    assert repr(splits) == "a: 6 samples of 2 (float64)\nb: 2 samples of 2 (float64)"
