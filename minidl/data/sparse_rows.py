"""Generated sparse rows with labels: what texts look like as bags of words, where each has few of very many columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minidl.data.checks import at_least
from minidl.random import Purpose, stream


@dataclass(frozen=True)
class SparseRows:
    """Rows of a sparse matrix (CSR) with a label each.

    Row i has the numbers `values[starts[i]:starts[i + 1]]` (float32) in the columns `columns[starts[i]:starts[i + 1]]`
    (int32) of `features`. labels: -1 or 1 (float32).
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
    """`n` rows of `nonzeros` normal numbers each, labelled by a hidden weight vector with some chance.

    The columns are cut into `nonzeros` stripes, and a row has one column in each: with `nonzeros` = `features` the rows
    are dense. A label is 1 with the probability 1 / (1 + exp(-sharpness x.w / sqrt(nonzeros))), w the hidden weights.

    Errors: ValueError for a size below 1, or more nonzeros than features.

    >>> rows = sparse_rows(n=3, features=8, nonzeros=2)
    >>> rows.starts, bool((rows.columns[::2] < 4).all())
    (array([0, 2, 4, 6]), True)
    """
    at_least("n", n, 1)
    at_least("nonzeros", nonzeros, 1)
    at_least("seed", seed, 0)
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
