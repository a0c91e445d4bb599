"""Sparse rows: their shape, their stripes, and labels that can be learned."""

import numpy as np
import pytest

from minidl import data
from minidl.kernels import jit


def test_every_row_has_one_column_in_each_stripe():
    rows = data.sparse_rows(n=100, features=50, nonzeros=7)
    columns = rows.columns.reshape(100, 7)
    edges = np.arange(8) * 50 // 7
    assert ((columns >= edges[:-1]) & (columns < edges[1:])).all()
    assert (rows.starts == 7 * np.arange(101)).all()
    assert set(rows.labels.tolist()) == {-1.0, 1.0}
    assert (len(rows), len(rows.values)) == (100, 700)


def test_as_many_nonzeros_as_features_are_dense_rows():
    rows = data.sparse_rows(n=4, features=5, nonzeros=5)
    assert (rows.columns.reshape(4, 5) == np.arange(5)).all()


def test_a_seed_fixes_the_rows():
    first, second, other = (data.sparse_rows(10, 100, 3, seed=seed) for seed in (1, 1, 2))
    assert (first.values == second.values).all()
    assert (first.columns == second.columns).all()
    assert (first.values != other.values).any()


def test_the_labels_can_be_learned():
    rows = data.sparse_rows(n=20_000, features=20, nonzeros=20)
    weights = np.zeros(20, np.float32)
    of = (rows.values, rows.columns, rows.starts, rows.labels)
    assert jit.sparse_logistic_epoch(weights, *of, 0.02) / 20_000 < 0.5
    assert jit.sparse_logistic_epoch(weights, *of, 0.0) / 20_000 < 0.4  # log 2 = 0.69 before


def test_more_nonzeros_than_features_are_refused():
    with pytest.raises(ValueError, match="a row of 3 features cannot have 4 nonzeros: use at most 3"):
        data.sparse_rows(n=1, features=3, nonzeros=4)
