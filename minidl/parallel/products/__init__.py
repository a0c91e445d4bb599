"""Matrix products over several ranks: one algorithm in full, and the words that others need.

summa      a product on a grid of ranks, with its gradients
volumes    the words that a rank needs, by grid; lower bounds; model and batch parallelism together
"""

from minidl.parallel.products.summa import Grid, block, bounds, summa
from minidl.parallel.products.volumes import (
    best_grid,
    faces,
    lower_bound,
    memory,
    model_and_batch,
    recursive,
    volume,
)

__all__ = [
    "Grid",
    "best_grid",
    "block",
    "bounds",
    "faces",
    "lower_bound",
    "memory",
    "model_and_batch",
    "recursive",
    "summa",
    "volume",
]
