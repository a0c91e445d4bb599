"""All-reduce in shared memory: the bits of rank order on every rank, and an end also when ranks fail."""

import os
import time
from typing import Any

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.channel import REDUCE
from minidl.cluster.engines.processes import shared_reduction, slots
from minidl.cluster.engines.processes.shared_reduction import WHOLE_BYTES
from minidl.cluster.engines.processes.slots import CROWDED_BLOCK_BYTES, TAG
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

SIZES = (0, 1, 2, 3, 1000, WHOLE_BYTES // 8, WHOLE_BYTES // 8 + 1, 4 * CROWDED_BLOCK_BYTES // 8 + 5)
DTYPES = ("float64", "float32", "float16", "int8", "uint16", "int64", "bool", "complex128", ">i4")


def share_of(rank: int, n: int, dtype: str) -> Any:
    generator = np.random.default_rng(rank)
    if np.dtype(dtype).kind in "fc":
        return generator.standard_normal(n).astype(dtype)
    return generator.integers(0, 2 if dtype == "bool" else 4, n).astype(dtype)


def in_rank_order(n: int, dtype: str, op: str, ranks: Any) -> Any:
    """What a loop over the ranks gives on one node."""
    result, *others = (share_of(rank, n, dtype) for rank in ranks)
    for other in others:
        result = REDUCE[op](result, other)
    return result.astype(dtype)


def natively(comm: Any, x: Any, op: str, ranks: Any, tag: int) -> Any:
    assert comm._owner.endpoint.native_all_reduce(x, op, tuple(ranks), tag, comm._owner.recorder)
    return x


@pytest.mark.parametrize("nodes", [2, 3, *exhaustively(1, 5)])
def test_every_rank_gets_the_bits_of_rank_order_for_any_size_dtype_and_op(nodes: int) -> None:
    cases = [(n, "float64", "sum") for n in SIZES]
    cases += [(n, dtype, op) for dtype in DTYPES for op in ("sum", "prod") for n in (5, 9001)]
    cases += [(9001, dtype, op) for dtype in ("float32", "int64") for op in ("max", "min", "mean")]

    def program(comm: cluster.Communicator) -> list[bytes]:
        results = []
        for number, (n, dtype, op) in enumerate(cases):
            x = natively(comm, share_of(comm.rank, n, dtype), op, range(comm.size), (1 << 63) + number + (1 << 31))
            results.append(x.tobytes())
        return results

    want = [in_rank_order(*case, range(nodes)).tobytes() for case in cases]
    for got in cluster.launch(program, nodes=nodes, deadline=150).results:
        assert [case for case, a, b in zip(cases, got, want, strict=True) if a != b] == []


def test_auto_takes_it_and_takes_the_cost_model_where_messages_are_to_be_slow() -> None:
    def program(comm: cluster.Communicator) -> int:
        comm.all_reduce(np.ones(100_000))
        comm.all_reduce(np.ones(10))
        return len(comm._owner.endpoint._slots._slots[comm.rank])

    assert min(cluster.launch(program, nodes=2, deadline=150).results) > 0
    assert cluster.launch(program, nodes=2, deadline=150, network=cluster.Network(1e-6, 0.0)).results == [0, 0]


@pytest.mark.parametrize("spin", [0.0, 5e-4])
def test_ranks_that_sleep_are_woken_and_slots_serve_again(spin: float) -> None:
    def program(comm: cluster.Communicator) -> tuple[int, bool]:
        shared_reduction.SPIN_SECONDS = spin
        right = True
        for step in range(150):
            if step % 10 == comm.rank:
                time.sleep(0.005)
            n = (1, 5000)[step % 2]
            right &= bool((comm.all_reduce(np.full(n, comm.rank + step)) == 3 * step + 3).all())
        return len(comm._owner.endpoint._slots._slots[comm.rank]), right

    for used, right in cluster.launch(program, nodes=3, deadline=150, timeout=20).results:
        assert right
        assert used <= 3


def test_a_slot_is_not_taken_again_before_all_have_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "BLOCK_BYTES", 4096)
    descriptor = os.memfd_create("test")
    ours, theirs = (slots.Slots(slots.SharedArrays(descriptor, 1.0), rank, 3) for rank in (0, 1))
    first = ours.take([1, 2], tag=7)
    first.words[TAG] = 7
    first.is_taken = False
    assert theirs.find(0, 8) is None
    seen = theirs.find(0, 7)
    assert seen is not None
    seen.words[seen.read + 1] = 7
    assert ours.take([1], tag=8) is not first
    seen.words[seen.read + 2] = 7
    assert ours.take([1], tag=10) is first
    os.close(descriptor)


def test_a_slot_is_found_also_where_the_others_do_not_look_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "BLOCK_BYTES", 4096)
    descriptor = os.memfd_create("test")
    ours, theirs = (slots.Slots(slots.SharedArrays(descriptor, 1.0), rank, 2) for rank in (0, 1))
    taken = [ours.take([1], tag) for tag in (4, 6, 8)]
    for slot in taken:
        slot.words[TAG] = slot.tag
    found = [theirs.find(0, slot.tag) for slot in taken]
    assert [slot.number for slot in found if slot is not None] == [0, 1, 2]
    os.close(descriptor)
