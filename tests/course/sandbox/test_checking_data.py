"""What comes back from a student's process is plain data, whole, and nothing else; and it comes back in time."""

from __future__ import annotations

import enum
import json
import math
import os
import threading
import time
import tracemalloc
from itertools import product
from typing import Any

import numpy as np
import pytest

from course.sandbox.exchange.channel import LENGTH, Broken, Garbage, Receiver, Sender, read_message, write_message
from course.sandbox.exchange.plain_data import (
    DEEPEST,
    MOST_ITEMS,
    MOST_KEYS,
    DamagedError,
    Foreign,
    described,
    dumps,
    loads,
)


class Colour(enum.IntEnum):
    RED = 3


class Dressed(list):
    def __iter__(self):
        raise AssertionError("asked the object")


VALUES = [
    None, True, 0, -(2**70), 1.5, -0.0, math.inf, 2 + 3j, "text \ud800 ☃", b"bytes", [], [1, [2.5, None]], (1, (2,)),
    {1, 2}, {"a": [1], 2: {"b": ()}, (1, 2): "tuple"}, frozenset({("a", 1)}),
]  # fmt: skip


def test_plain_values_come_back_equal_and_of_the_same_type() -> None:
    for value in VALUES:
        back = loads(dumps(value))
        assert back == value
        assert type(back) is (set if isinstance(value, frozenset) else type(value)), value
    assert math.isnan(loads(dumps(math.nan)))


def test_arrays_come_back_with_type_shape_and_values_and_may_be_written_to() -> None:
    dtypes = ("f8", "f4", ">f8", "i4", "u1", "?", "c16", "U3", "S2", "M8[s]")
    for dtype, shape in product(dtypes, [(), (0,), (3,), (2, 0), (2, 3)]):
        array = np.arange(math.prod(shape)).reshape(shape).astype("U3" if dtype in ("U3", "S2") else "i8").astype(dtype)
        back = loads(dumps([array, array.T]))
        np.testing.assert_array_equal(back[0], array)
        np.testing.assert_array_equal(back[1], array.T)
        assert back[0].dtype == array.dtype
        back[0][...] = array


def test_a_subclass_of_a_plain_type_comes_back_as_the_plain_type() -> None:
    given = [Colour.RED, np.float64(1.5), np.int32(2), np.bool_(True), np.str_("x"), Dressed([1, 2])]
    back = loads(dumps(given))
    assert back == [3, 1.5, 2, True, "x", [1, 2]]
    assert [type(value) for value in back] == [int, float, int, bool, str, list]
    assert type(loads(dumps(np.arange(2).view(np.matrix)))) is np.ndarray
    assert loads(dumps(np.longdouble(1))) == 1.0


def test_other_values_come_back_as_the_name_of_their_type() -> None:
    back = loads(dumps([print, object(), np.array([None, 1], dtype=object), {print: 1}]))
    assert back[0] == Foreign("builtin_function_or_method", "<built-in function print>")
    assert str(back[1]) == "an object"
    assert str(back[2]) == "an ndarray of Python objects"
    assert back[3] == {"<built-in function print>": 1}


DAMAGED = [
    b"", b"garbage", dumps([1])[:-1], b"00000003[9]" + b"x", b'00000005[999]{}', b"00000003[2][]" * 3,
    b'00000004[25]{"foreign": ["a", "b", 3]}', b'00000007[31, 0]{"array": ["f8", [9999999], 0]}',
    b'00000007[28, 8]{"array": ["O", [1], 0]}   xxxxxxxx', b"00000009[4000000]" + b"[" * 4000000,
]  # fmt: skip


def test_anything_else_is_refused() -> None:
    for damaged in DAMAGED:
        with pytest.raises(DamagedError):
            loads(damaged)


def framed(tree: str, *buffers: bytes) -> bytes:
    """A message with that tree, as a student's code may write it itself."""
    sizes = json.dumps([len(tree), *map(len, buffers)]).encode()
    return b"".join([b"%08d" % len(sizes), sizes, tree.encode(), *buffers])


EIGHT = '{"array": ["<f8", [1000000], 0]}'
LARGE = {
    "many objects": framed("[" + ",".join(['{"foreign": ["", ""]}'] * 1_000_000) + "]"),
    "many lists": framed("[" + ",".join(["[]"] * 3_000_000) + "]"),
    "lists in lists": framed("[" * 900 + "]" * 900),
    "much text": framed('"' + "x" * 2**24 + '"'),
    "one array often": framed(f"[{EIGHT}, {EIGHT}]", bytes(8_000_000)),
    "elements of no size": framed('{"array": ["<U0", [1000000000], 0]}', b""),
    "many sizes": b"%08d" % 2_000_001 + b"[" + b"0," * 999_999 + b"0]",
    "many keys": framed('{"set": [' + ",".join(map(str, range(MOST_KEYS + 1))) + "]}"),
    "many digits": framed('{"int": "0x%s"}' % ("f" * 1_000_000)),
}


def test_data_that_would_become_large_is_refused_before_decoding() -> None:
    for name, message in LARGE.items():
        tracemalloc.start()
        try:
            with pytest.raises(DamagedError):
                loads(message)
            assert tracemalloc.get_traced_memory()[1] < 2 * len(message) + 20_000_000, name
        finally:
            tracemalloc.stop()


def test_as_many_items_as_are_allowed_come_back() -> None:
    for value in ([1 + 2j] * MOST_ITEMS, [Foreign("x", "y")] * 50_000, [np.ones((1, 1, 1))] * 5_000):
        assert loads(dumps(value)) == value
    nested: list[Any] = []
    for _ in range(DEEPEST - 1):
        nested = [{"a": (nested,)}] if len(str(nested)) < 300 else [nested]
    assert isinstance(loads(dumps(nested)), list)


def test_a_result_of_too_many_items_is_an_error() -> None:
    for value, says in (
        ("x" * 2**24, "characters of text"), (set(range(20_000)), "keys of dicts"), ([0] * 200_001, "items in lists"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=says):
            dumps(value)


def test_a_number_of_any_length_is_carried_and_described() -> None:
    assert loads(dumps([10**3000, -(2**70)])) == [10**3000, -(2**70)]
    back = loads(dumps([10**5000, -(7**100_000)]))
    assert str(back[0]) == "a whole number of 5,001 digits, 10000…"
    assert str(back[1]).startswith("a whole number of 84,510 digits, -6368")


def test_a_value_is_described_as_it_is_written_where_that_is_short() -> None:
    for value in ([1, "a", {"b": (1.5,)}], None, "text", (1,), [], {"a": None}, {1, 2}):
        assert described(value) == repr(value)
    assert described(10**5000) == "a whole number of 5,001 digits, 10000…"
    assert described([10**5000]) == "[a whole number of 5,001 digits, 10000…]"


def test_the_description_of_any_value_is_short() -> None:
    for value in ([[0] * 1000] * 1000, dict.fromkeys(range(100), "x" * 10**6), [10**4000] * 10**5, "x" * 10**8):
        assert len(described(value)) < 20_000


def test_random_bytes_are_refused_or_harmless() -> None:
    generator = np.random.default_rng(0)
    good = bytearray(dumps([np.arange(3), {"a": (1, 2)}, "text"]))
    for _ in range(2000):
        bad = bytearray(good)
        bad[generator.integers(len(bad))] = generator.integers(256)
        try:
            assert isinstance(loads(bytes(bad)), list | tuple | dict | str | int | float | set | np.ndarray | None)
        except DamagedError:
            continue


@pytest.fixture
def pipe():
    reads, writes = os.pipe()
    yield reads, writes
    for descriptor in (reads, writes):
        try:
            os.close(descriptor)
        except OSError:
            continue


def test_large_messages_go_through_in_pieces(pipe: tuple[int, int]) -> None:
    reads, writes = pipe
    message = os.urandom(3_000_000)
    thread = threading.Thread(target=write_message, args=(writes, message))
    thread.start()
    receiver = Receiver(reads, 10**7)
    assert receiver.receive(time.monotonic() + 20) == message
    thread.join()
    assert receiver.receive(time.monotonic()) is None


def test_a_sender_does_not_wait_for_a_reader_beyond_its_time_limit(pipe: tuple[int, int]) -> None:
    assert not Sender(pipe[1]).send(bytes(10**6), time.monotonic() + 0.1)


def test_an_incomplete_message_is_not_waited_for_and_one_too_long_is_garbage(pipe: tuple[int, int]) -> None:
    reads, writes = pipe
    receiver = Receiver(reads, 100)
    os.write(writes, LENGTH.pack(50) + b"begin")
    assert receiver.receive(time.monotonic() + 0.05) is None
    os.write(writes, b"x" * 45 + LENGTH.pack(101))
    assert receiver.receive(time.monotonic() + 60) == b"begin" + b"x" * 45
    with pytest.raises(Garbage):
        receiver.receive(time.monotonic() + 60)


def test_a_closed_end_is_noticed_on_both_sides() -> None:
    reads, writes = os.pipe()
    os.close(writes)
    with pytest.raises(Broken):
        Receiver(reads, 100).receive(time.monotonic() + 60)
    assert read_message(reads) is None
    os.close(reads)
    reads, writes = os.pipe()
    os.close(reads)
    with pytest.raises(Broken):
        Sender(writes).send(b"x", time.monotonic() + 60)
    os.close(writes)
