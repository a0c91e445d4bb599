"""Generated sparse rows with labels, similar to bags of words: few nonzero numbers among many columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minidl.arguments import whole_number
from minidl.random import Purpose, stream


@dataclass(frozen=True)
class SparseRows:
    """A sparse matrix in CSR format, with one label per row.

    Row i has the numbers `values[starts[i]:starts[i + 1]]` in the columns `columns[starts[i]:starts[i + 1]]`.

    Attributes
        values      nonzero numbers of all rows, float32
        columns     column of each number, int32
        starts      index of each row's first number, and the total (n + 1,), int64
        labels      -1 or 1 for each row, float32
        features    number of columns
    """

    values: NDArray[np.float32]
    columns: NDArray[np.int32]
    starts: NDArray[np.int64]
    labels: NDArray[np.float32]
    features: int

    def __len__(self) -> int:
        return len(self.labels)


def sparse_rows(
    n: int = 400_000, features: int = 200_000, nonzeros: int = 20, sharpness: float = 4.0, seed: int = 0
) -> SparseRows:
    """Return rows of normally distributed numbers, with random labels that follow a hidden weight vector w.

    Parameters
        n            number of rows
        features     number of columns
        nonzeros     nonzero numbers per row: one in each of `nonzeros` ranges of columns
        sharpness    factor s of the margin: row x has label 1 with probability 1 / (1 + exp(-s x.w / sqrt(nonzeros)))
        seed         seed of the random numbers

    With nonzeros = features the rows are dense.

    Raises
        ValueError    a size below 1, more nonzeros than features

    >>> rows = sparse_rows(n=3, features=8, nonzeros=2)
    >>> rows.starts, bool((rows.columns[::2] < 4).all())
    (array([0, 2, 4, 6]), True)
    """
    whole_number("n", n, at_least=1)
    whole_number("nonzeros", nonzeros, at_least=1)
    whole_number("seed", seed, at_least=0)
    whole_number("features", features, at_least=1)
    if features < nonzeros:
        raise ValueError(f"a row of {features} features cannot have {nonzeros} nonzeros: use at most {features}")
    random = stream(Purpose.SPARSE_ROWS, seed)
    edges = np.arange(nonzeros + 1) * features // nonzeros
    columns = random.integers(edges[:-1], edges[1:], (n, nonzeros), dtype=np.int32)
    values = random.standard_normal((n, nonzeros), dtype=np.float32)
    hidden = random.standard_normal(features, dtype=np.float32)
    margins = sharpness * (values * hidden[columns]).sum(axis=1) / np.sqrt(nonzeros)
    labels = np.where(random.random(n) < 1 / (1 + np.exp(-margins)), 1, -1).astype(np.float32)
    return SparseRows(values.reshape(-1), columns.reshape(-1), np.arange(n + 1) * nonzeros, labels, features)
