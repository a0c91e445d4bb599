"""Collectives with the seconds that `cost` says they take: for every engine whose clock follows the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minidl.cluster import collectives, cost

ALPHA, BETA, GAMMA = 3e-6, 7e-10, 2e-10

FUNCTIONS = {
    "broadcast": collectives.broadcast_tree,
    "reduce": collectives.reduce_tree,
    "all_gather": collectives.all_gather_ring,
    "reduce_scatter": collectives.reduce_scatter_ring,
    "all_to_all": collectives.all_to_all_pairwise,
    "gather": collectives.gather,
    "scatter": collectives.scatter,
    "barrier": collectives.barrier_dissemination,
}


@dataclass(frozen=True)
class Case:
    """One collective among p ranks on n elements in all."""

    operation: str
    p: int
    n: int
    dtype: str
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        options = "-".join(f"{value}" for value in self.options.values())
        return "-".join(filter(None, [self.operation, options, f"p{self.p}", f"n{self.n}", self.dtype]))

    def argument(self, rank: int) -> tuple[Any, ...]:
        """What rank `rank` passes to the collective."""
        x = np.ones(self.n, self.dtype)
        if self.operation == "barrier":
            return ()
        if self.operation in ("all_gather", "gather"):
            return (np.array_split(x, self.p)[rank],)
        if self.operation == "all_to_all":
            return (np.array_split(x, self.p),)
        if self.operation == "scatter":
            return (np.array_split(x, self.p) if rank == 0 else None,)
        return (x,)

    def on_messages(self, comm: Any) -> None:
        """The plain function, over a PointToPoint."""
        if self.operation == "all_reduce":
            options = {name: value for name, value in self.options.items() if name != "algorithm"}
            collectives.ALL_REDUCE[self.options["algorithm"]](comm, *self.argument(comm.rank), **options)
        else:
            FUNCTIONS[self.operation](comm, *self.argument(comm.rank))

    def on_communicator(self, comm: Any) -> None:
        """The communicator's method, as a program calls it."""
        getattr(comm, self.operation)(*self.argument(comm.rank), **self.options)

    def seconds(self, alpha: float = ALPHA, beta: float = BETA, gamma: float = GAMMA) -> float:
        """What the formula says."""
        itemsize = np.dtype(self.dtype).itemsize
        sizes: dict[str, Any] = {"p": self.p, "nbytes": self.n * itemsize, "alpha": alpha, "beta": beta}
        if self.operation == "barrier":
            return cost.barrier(self.p, alpha)
        if self.operation in ("all_reduce", "reduce", "reduce_scatter"):
            sizes["gamma"] = gamma
        if self.operation not in ("broadcast", "reduce"):
            sizes["itemsize"] = itemsize
        return getattr(cost, self.operation)(**self.options, **sizes)


def cases(ranks: tuple[int, ...], sizes: tuple[int, ...], dtypes: tuple[str, ...] = ("float32",)) -> Iterator[Case]:
    """Every collective and every all-reduce, with its options, for these p, n and dtypes."""
    for p, n, dtype in ((p, n, dtype) for p in ranks for n in sizes for dtype in dtypes):
        for operation in FUNCTIONS:
            yield Case(operation, p, n, dtype)
        for algorithm in collectives.ALL_REDUCE:
            yield Case("all_reduce", p, n, dtype, {"algorithm": algorithm})
        for segments in (1, 3, 8):
            yield Case("all_reduce", p, n, dtype, {"algorithm": "pipelined_chain", "segments": segments})
        for per_group in (size for size in range(1, p + 1) if p % size == 0):
            yield Case("all_reduce", p, n, dtype, {"algorithm": "hierarchical", "per_group": per_group})
