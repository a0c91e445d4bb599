"""Programs of random communicator calls, the same from the same seed: for comparing two ways to play them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minidl import cluster

ALGORITHMS = (
    *("ring", "tree", "recursive_doubling", "rabenseifner"),
    *("parameter_server", "pipelined_chain", "hierarchical", "ordered", "auto"),
)
OPS = ("sum", "mean", "prod", "max", "min")
DTYPES = ("float32", "float64", "float16", "int64", "int8", "bool", "complex64")

Step = tuple[Callable[..., None], dict[str, Any]]


class Player:
    """Plays the steps on one rank; `seen` is what the program gets to see, as bytes and times."""

    def __init__(self, comm: cluster.Communicator, seed: int) -> None:
        self.comm = comm
        self.half = comm.split(comm.rank % 2)
        self.seen: list[Any] = []
        self.unfinished: list[cluster.Work] = []
        self.values = np.random.default_rng([seed, comm.rank])

    def note(self, x: Any) -> None:
        arrays = x if isinstance(x, list) else [x]
        self.seen.append([np.asarray(a).tobytes() if not isinstance(a, cluster.Phantom) else a.nbytes for a in arrays])
        self.seen.append(self.comm.now())

    def array(self, size: int, dtype: str) -> Any:
        if dtype == "phantom":
            return cluster.Phantom(4 * size)
        x = 50 * self.values.normal(size=size)
        return (x + 1j * x[::-1] if dtype.startswith("complex") else x).astype(dtype)

    def compute(self, scale: float) -> None:
        self.comm.compute(seconds=scale * self.values.exponential())

    def all_reduce(self, size: int, dtype: str, op: str, algorithm: str, group: bool, async_op: bool) -> None:
        comm = self.half if group else self.comm
        if dtype != "phantom" and not dtype.startswith(("float", "complex")) and op == "mean":
            op = "sum"
        with np.errstate(all="ignore"):
            result = comm.all_reduce(self.array(size, dtype), op, algorithm=algorithm, async_op=async_op)
        if async_op:
            self.unfinished.append(result)
        else:
            self.note(result)

    def reduce_scatter(self, size: int, dtype: str, group: bool) -> None:
        comm = self.half if group else self.comm
        self.note(comm.reduce_scatter(self.array(size, dtype)))

    def rows_scattered(self, size: int) -> None:
        self.note(self.comm.reduce_scatter(self.values.normal(size=(size, 3))))

    def all_gather(self, dtype: str, group: bool) -> None:
        comm = self.half if group else self.comm
        self.note(comm.all_gather(self.array(int(self.values.integers(9)), dtype)))

    def all_gather_constants(self) -> None:
        word, number = "é" * int(self.values.integers(300)), int(self.values.integers(1 << 40))
        self.seen.append(self.comm.all_gather((self.comm.rank, (word, None), -0.5, number)))

    def split(self, colors: int) -> None:
        self.half = self.comm.split(int(self.values.integers(colors)), key=int(self.values.integers(3)))
        self.seen.append((self.half.rank, self.half.size, self.comm.now()))

    def along_a_mesh(self, size: int, dtype: str) -> None:
        rows = 2 if self.comm.size % 2 == 0 else 1
        mesh = self.comm.mesh((rows, self.comm.size // rows), ("rows", "columns"))
        for axis in mesh.names:
            self.note(mesh[axis].all_reduce(self.array(size, dtype), "max"))

    def all_gather_objects(self) -> None:
        self.seen.append(self.comm.all_gather({"rank": self.comm.rank, "x": self.values.normal()}))

    def all_to_all(self, dtype: str) -> None:
        items = [self.array(int(self.values.integers(5)), dtype) for _ in range(self.comm.size)]
        self.note(self.comm.all_to_all(items))

    def barrier(self, group: bool) -> None:
        (self.half if group else self.comm).barrier()

    def broadcast(self, size: int, src: int) -> None:
        self.note(self.comm.broadcast(self.values.normal(size=size), src=src))

    def message(self, src: int, dst: int, size: int) -> None:
        if self.comm.rank == src:
            self.comm.send(self.values.normal(size=size), dst)
        if self.comm.rank == dst:
            self.note(self.comm.recv(src))

    def unfinished_message(self, src: int, dst: int, size: int, first: bool) -> None:
        """A message that is finished later, or on its receiver: posted before or after the sender's."""
        if self.comm.rank == src:
            if not first:
                self.comm.compute(seconds=self.values.exponential())
            self.unfinished.append(self.comm.isend(self.values.normal(size=size), dst, tag=7))
        if self.comm.rank == dst:
            if first:
                self.unfinished.append(self.comm.irecv(src, tag=7))
            else:
                self.comm.compute(seconds=self.values.exponential())
                self.note(self.comm.recv(src, tag=7))

    def fail(self, culprit: int, size: int, algorithm: str, scale: float) -> None:
        """A rank of one half fails while the other half is in a collective."""
        if self.comm.rank == culprit:
            self.compute(min(scale, 0.3))
            raise ZeroDivisionError("of this program")
        for _ in range(3):
            self.half.all_reduce(self.array(size, "float32"), algorithm=algorithm)

    def finish(self) -> None:
        while self.unfinished:
            x = self.unfinished.pop(0).wait()
            if x is not None:
                self.note(x)


def program(comm: cluster.Communicator, seed: int, calls: int) -> tuple[list[Any], float]:
    """Random steps, the same on all ranks; returns what the rank has seen."""
    rng = np.random.default_rng(seed)
    player = Player(comm, seed)
    slow = rng.random() < 0.5

    def flip() -> bool:
        return bool(rng.random() < 0.5)

    def chosen(some: Any) -> Any:
        return some[int(rng.integers(len(some)))]

    for _ in range(calls):
        kind, group, dtype, size = rng.random(), flip(), str(chosen((*DTYPES, "phantom"))), int(rng.integers(60))
        src, dst = (int(i) for i in rng.choice(comm.size, 2, replace=False))
        op, algorithm, is_async = str(chosen(OPS)), str(chosen(ALGORITHMS)), rng.random() < 0.15
        large, first, scale = flip(), flip(), float(10.0 ** rng.uniform(-3, 1))
        if rng.random() < 0.03:
            player.fail(src, size, algorithm, scale)
        if slow:
            player.compute(scale)
        if kind < 0.4:
            player.all_reduce(size, dtype, op, algorithm, group, is_async)
        elif kind < 0.5:
            player.reduce_scatter(size, dtype, group)
        elif kind < 0.53:
            player.rows_scattered(size)
        elif kind < 0.6:
            player.all_gather(dtype, group)
        elif kind < 0.62:
            player.all_gather_objects()
        elif kind < 0.63:
            player.all_gather_constants()
        elif kind < 0.64:
            player.split(int(rng.integers(1, 4)))
        elif kind < 0.65:
            player.along_a_mesh(size, dtype)
        elif kind < 0.7:
            player.all_to_all(dtype)
        elif kind < 0.75:
            player.barrier(group)
        elif kind < 0.8:
            player.broadcast(size, src)
        elif kind < 0.85:
            player.message(src, dst, 10_000 if large else size)
        elif kind < 0.93:
            player.unfinished_message(src, dst, 10_000 if large else size, first)
        else:
            player.finish()
    player.finish()
    return player.seen, comm.now()
