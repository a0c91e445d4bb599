"""The collectives that can be played at once: their rounds of messages and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from minidl.cluster import collectives
from minidl.cluster.channel import REDUCE
from minidl.cluster.collectives import rounds
from minidl.cluster.collectives.partition import split
from minidl.cluster.engines.payload import encode, is_plain
from minidl.cluster.engines.simulation.batched.blocks import Block, blocks, kept_for_few
from minidl.cluster.engines.simulation.batched.values import all_reduced
from minidl.cluster.phantom import Phantom

LEAST = {"ring": 5, "ordered": 5, "hierarchical": 8, "recursive_doubling": 16, "rabenseifner": 16}  # others: 32
CONSTANTS = frozenset({type(None), bool, int, float, complex, str, bytes})


class Plan(NamedTuple):
    """How a collective is played at once; the contents are what each rank passes.

    least     ranks; fewer send fewer than about 50 messages, which takes no longer than numpy takes for all rounds
    suits     whether it can be played with this content of one rank
    rounds    its rounds, with bytes; the arguments are the contents and the options
    results   what each rank returns; the arguments are the contents, the op of a reduction, and the options
    """

    least: int
    suits: Callable[[Any], bool]
    rounds: Callable[..., Iterable[Block]]
    results: Callable[..., Sequence[Any]]


class OnLeaving(Sequence[Any]):
    """The results of p ranks, each made when its rank takes it: the lists of 16,384 ranks together would take 2 GB."""

    def __init__(self, p: int, result: Callable[[int], Any]) -> None:
        self._p, self._result = p, result

    def __len__(self) -> int:
        return self._p

    def __getitem__(self, rank: Any) -> Any:
        return self._result(rank)


def is_array(x: Any) -> bool:
    """Whether x is an array of numbers or a Phantom: the bytes of its message are known."""
    return type(x) is Phantom or (type(x) is np.ndarray and is_plain(x.dtype))


def are_arrays(items: Sequence[Any]) -> bool:
    """Whether every item is an array of numbers or a Phantom."""
    return all(map(is_array, items))


def is_item(x: Any) -> bool:
    """Whether x is an array, or a constant, which ranks may share and whose pickle has one size after every hop."""
    return is_array(x) or is_constant(x)


def is_constant(x: Any) -> bool:
    """Whether x is a Python number, a string, None, or a tuple of such: nobody can change it."""
    return type(x) in CONSTANTS or (type(x) is tuple and all(map(is_constant, x)))


def is_nothing(content: None) -> bool:
    """Whether a rank passes nothing, as in a barrier."""
    return content is None


def _all_reduce(name: str) -> Plan:
    @kept_for_few
    def of_sizes(p: int, elements: int, itemsize: int, **options: Any) -> Iterable[Block]:
        as_data = rounds.all_reduce(name, p, elements, itemsize, **options)
        return blocks(p, as_data.rounds, as_data.sizes * itemsize)

    def of_vectors(vectors: Sequence[Any], **options: Any) -> Iterable[Block]:
        return of_sizes(len(vectors), len(vectors[0]), vectors[0].itemsize, **options)

    def results(vectors: Sequence[Any], op: str = "sum", **options: Any) -> list[None]:
        if not isinstance(vectors[0], Phantom):
            total = all_reduced(name, vectors, REDUCE[op], **options)
            for vector in vectors:
                vector[...] = total
        return [None] * len(vectors)

    return Plan(LEAST.get(name, 32), is_array, of_vectors, results)


@kept_for_few
def _ring(p: int, rounds_of_ring: Callable[..., rounds.Rounds], sizes: tuple[int, ...]) -> Iterable[Block]:
    return blocks(p, rounds_of_ring(np.arange(p), np.arange(p)), np.array(sizes))


@kept_for_few
def _of_all(p: int, rounds_of_all: Callable[[int], rounds.Rounds], sizes: tuple[Any, ...]) -> Iterable[Block]:
    return blocks(p, rounds_of_all(p), np.array(sizes))


def _reduce_scatter_rounds(arrays: Sequence[Any]) -> Iterable[Block]:
    p, x = len(arrays), arrays[0]
    bytes_per_row = x.nbytes // len(x) if len(x) else 0
    return _ring(p, rounds.reduce_scatter_ring, tuple(len(chunk) * bytes_per_row for chunk in split(range(len(x)), p)))


def _reduce_scatter_results(arrays: Sequence[Any], op: str = "sum") -> Sequence[Any]:
    if isinstance(arrays[0], Phantom):
        return np.array_split(cast(Any, arrays[0]), len(arrays))
    return [chunk.copy() for chunk in split(all_reduced("ring", arrays, REDUCE[op]), len(arrays))]


def _all_gather_rounds(items: Sequence[Any]) -> Iterable[Block]:
    return _ring(len(items), rounds.all_gather_ring, _bytes(items))


def _all_gather_results(items: Sequence[Any]) -> Sequence[list[Any]]:
    kept = _received(items)
    return OnLeaving(len(items), lambda rank: _received(kept))


def _all_to_all_rounds(items: Sequence[Sequence[Any]]) -> Iterable[Block]:
    return _of_all(len(items), rounds.all_to_all_pairwise, tuple(map(_bytes, items)))


def _all_to_all_results(items: Sequence[Sequence[Any]]) -> Sequence[list[Any]]:
    kept = [_received(of_rank) for of_rank in items]
    return OnLeaving(len(items), lambda rank: [of_rank[rank] for of_rank in kept])


def _barrier_rounds(nothing: Sequence[None]) -> Iterable[Block]:
    return _of_all(len(nothing), rounds.barrier_dissemination, (0,))


def _bytes(items: Sequence[Any]) -> tuple[int, ...]:
    """The bytes of each item's message."""
    return tuple(item.nbytes if is_array(item) else encode(item)[3] for item in items)


def _received(items: Sequence[Any]) -> list[Any]:
    """A list of copies of the arrays and of what cannot change; ranks may share the latter."""
    if any(type(item) is np.ndarray for item in items):
        return [item.copy() if type(item) is np.ndarray else item for item in items]
    return list(items)


PLANS: dict[Callable[..., Any], Plan] = {
    **{function: _all_reduce(name) for name, function in collectives.ALL_REDUCE.items()},
    collectives.reduce_scatter_ring: Plan(8, is_array, _reduce_scatter_rounds, _reduce_scatter_results),
    collectives.all_gather_ring: Plan(8, is_item, _all_gather_rounds, _all_gather_results),
    collectives.all_to_all_pairwise: Plan(8, are_arrays, _all_to_all_rounds, _all_to_all_results),
    collectives.barrier_dissemination: Plan(16, is_nothing, _barrier_rounds, lambda nothing: nothing),
}
