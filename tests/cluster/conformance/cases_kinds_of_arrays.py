"""Arrays of every kind: each travels as it is or is refused in a sentence, and what comes back is nobody else's."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pytest

from minidl.cluster import Communicator
from tests.cluster.conformance.registry import case

RECORD = np.dtype([("a", "i4"), ("b", "f8")])


def memory_map(numbers: Any) -> Any:
    with tempfile.TemporaryFile() as file:
        mapped = np.memmap(file, np.float64, "w+", shape=numbers.shape)
    mapped[...] = numbers
    return mapped


def kinds(factor: int) -> dict[str, Any]:
    """Arrays of every kind, all zeros for the factor 0; the same dtypes and shapes for all factors."""
    return {
        "records": np.array([(3 * factor, 2.5 * factor)] * 3, RECORD),
        "large records": np.array([(3 * factor, 2.5 * factor)] * 9000, RECORD),
        "recarray": np.rec.array(np.array([(3 * factor, 2.5 * factor)] * 3, RECORD)),
        "objects": np.array([None, "x" * factor, [factor]], object),
        "memmap": memory_map(factor * np.arange(3.0)),
        "in Fortran's order": np.asfortranarray(factor * np.arange(6.0).reshape(2, 3)),
        "no dimensions": np.array(3.0 * factor),
        "masked": np.ma.masked_array([1.0 * factor, 2.0, 3.0], [False, bool(factor), False]),
        "dates": np.array(["2024-01-01", "NaT"] if factor else ["1970-01-01"] * 2, "datetime64[D]"),
        "durations": np.array([5 * factor, 2], "timedelta64[s]"),
        "no elements": np.zeros((0, 3)),
        "byte-swapped": (factor * np.arange(4)).astype(">i4"),
        "text": np.array(["abc" * factor, "longer"]),
        "text of any length": np.array(["abc" * factor, "x"], np.dtypes.StringDType()),
        "backwards, every other": (factor * np.arange(24.0)).reshape(4, 6)[::-1, ::2],
        "long double": factor * np.arange(3).astype(np.longdouble),
        "bytes": np.array([b"abc" * factor, b"x"], "V3"),
    }


SUBCLASSES = {"recarray": np.recarray, "masked": np.ma.MaskedArray}
NUMBERS = ("memmap", "in Fortran's order", "no dimensions", "no elements", "byte-swapped", "long double")


def check(name: str, received: Any, expected: Any) -> None:
    assert type(received) is SUBCLASSES.get(name, np.ndarray), name
    assert (received.dtype, received.shape) == (expected.dtype, expected.shape), name
    np.testing.assert_array_equal(received, expected, err_msg=name)
    assert received.flags.writeable, name


@case()
def a_broadcast_writes_into_arrays_of_every_kind(comm: Communicator) -> None:
    for name, x in kinds(int(comm.rank == 0)).items():
        expected = kinds(1)[name]
        assert comm.broadcast(x) is x, name
        np.testing.assert_array_equal(x, expected, err_msg=name)
        if name == "masked":
            assert x.mask.tolist() == expected.mask.tolist()
        new = comm.broadcast(expected if comm.rank == 0 else None)
        if comm.rank:
            check(name, new, expected)


@case()
def arrays_of_every_kind_go_through_all_collectives_and_come_back_as_copies(comm: Communicator) -> None:
    p = comm.size
    for name, x in kinds(1).items():
        items = [*comm.all_gather(x), *comm.all_to_all([x] * p), comm.scatter([x] * p if comm.rank == 0 else None)]
        items += comm.gather(x) or []
        items.append(comm.sendrecv(x, (comm.rank + 1) % p, (comm.rank - 1) % p))
        for item in items:
            check(name, item, x)
            assert not np.may_share_memory(item, x), name


@case()
def arrays_of_every_kind_are_received_into_one_that_is_contiguous(comm: Communicator) -> None:
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    outs = kinds(0)
    for name, x in kinds(1).items():
        out = outs[name]
        if out.flags.c_contiguous:
            assert comm.sendrecv(x, right, left, out=out) is out
            np.testing.assert_array_equal(out, x, err_msg=name)
        else:
            with pytest.raises(ValueError, match="a non-contiguous float64 array"):
                comm.sendrecv(x, right, left, out=out)


@case(at_least=2)
def a_message_that_is_refused_is_over_for_its_sender_too(comm: Communicator) -> None:
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for size in (10, 20_000):
        refused = (
            (np.ones(size), rf"was given a float32 array of shape \({size},\), but the message is float64 of shape"),
            ([np.ones(size)], "was given an array, but the message is a list: give it none"),
        )
        for message, sentence in refused:
            sent = comm.isend(message, right)
            with pytest.raises((ValueError, TypeError), match=sentence):
                comm.recv(left, out=np.ones(size, np.float32))
            sent.wait()
    assert comm.all_reduce(1) == comm.size


@case()
def numbers_of_every_kind_are_reduced_in_place_and_others_are_refused(comm: Communicator) -> None:
    for name, x in kinds(1).items():
        if name in NUMBERS or name == "backwards, every other":
            for algorithm in ("auto", "ring"):
                x = kinds(1)[name]
                assert comm.all_reduce(x, algorithm=algorithm) is x
                np.testing.assert_array_equal(np.asarray(x), comm.size * np.asarray(kinds(1)[name]), err_msg=name)
        else:
            with pytest.raises(TypeError, match=r"mask of a masked array|takes an array of numbers or a number, not"):
                comm.all_reduce(x)


@case(at_least=2)
def an_array_that_cannot_be_written_is_refused_where_it_would_be_and_may_be_sent(comm: Communicator) -> None:
    x = np.arange(3.0)
    x.flags.writeable = False
    for algorithm in ("auto", "ring"):
        sent = comm.bytes_sent
        with pytest.raises(ValueError, match="writes the result into x, but x is read-only: pass a copy"):
            comm.all_reduce(x, algorithm=algorithm)
        assert comm.bytes_sent == sent
    if comm.rank:
        with pytest.raises(ValueError, match="broadcast writes into x, but x is read-only"):
            comm.broadcast(x)
        with pytest.raises(ValueError, match="reduce writes the result into x, but x is read-only"):
            comm.reduce(x, dst=comm.rank)
    received = comm.broadcast(x if comm.rank == 0 else None)
    np.testing.assert_array_equal(received, x)
    comm.reduce(x if comm.rank else x.copy())
    if comm.rank == 1:
        comm.send(np.ones(3), 0)
    if comm.rank == 0:
        with pytest.raises(ValueError, match="a read-only float64 array"):
            comm.recv(1, out=x)


@case()
def what_a_call_returns_shares_no_memory_with_what_a_rank_has_passed_at_any_depth(comm: Communicator) -> None:
    p, mine = comm.size, [np.ones(3), {"inner": np.ones(2)}]
    received = [*comm.all_gather(mine), *comm.all_to_all([mine] * p), *(comm.gather(mine) or [])]
    received.append(comm.scatter([mine] * p if comm.rank == 0 else None))
    for outer, named in received:
        assert not np.may_share_memory(outer, mine[0])
        outer += 1
        named["inner"] += 1
        named["new"] = 1
    assert mine[0].tolist() == [1, 1, 1]
    assert list(mine[1]) == ["inner"]
    assert mine[1]["inner"].tolist() == [1, 1]
    x = np.arange(2.0 * p)
    comm.reduce_scatter(x)[...] = -1
    assert x.tolist() == list(range(2 * p))
