"""The all-reduces among which students are to find the rings, and what of a ring each of the others lacks."""

from __future__ import annotations

from itertools import product

import numpy as np

from course.checks.messages_and_collectives import ring_lookalikes
from course.checks.messages_and_collectives.ring_lookalikes import PROGRAMS, TRACES, broken_conditions

SIZES = [(2, 6), (3, 10), (4, 3), (6, 12)]
RINGS = {"ring", "ring_to_the_left", "ring_in_another_order"}


def test_every_rank_ends_with_the_sum():
    for name, (p, n) in product([name for name, program in PROGRAMS.items() if program.sums], SIZES):
        _, results = ring_lookalikes.run(name, p, n)
        for got in results:
            np.testing.assert_allclose(got, p * np.arange(n) + p * (p - 1) / 2, err_msg=f"{name}, {p} ranks")


def test_only_rings_fulfil_all_conditions():
    for name, (p, n) in product(PROGRAMS, [(4, 3), (6, 14)]):
        sends, _ = ring_lookalikes.run(name, p, n)
        is_ring = name in RINGS or (name == "one_fewer" and n >= p)  # without an empty chunk it leaves out nothing
        assert (broken_conditions(sends, p, n) == []) is is_ring, name


def test_every_group_has_a_ring_and_an_answer_without_one_condition_loses_half_of_the_groups():
    broken = [[broken_conditions(ring_lookalikes.run(*trace)[0], *trace[1:]) for trace in group] for group in TRACES]
    assert all([] in group for group in broken)
    for condition in (1, 2, 3):
        assert sum([condition] in group for group in broken) == 2


def test_each_condition_is_broken_alone_on_all_ranks_and_on_one():
    """By a program of each kind; of those on one rank, the messages of rank 0 are a ring's."""
    p, n = 5, 13
    names = {
        1: ("chunks_in_halves", "one_chunk_in_two"),
        2: ("there_and_back", "last_messages_swapped", "two_rings", "one_behind_the_ring"),
        3: ("rest_in_one_chunk", "one_long_message"),
    }
    for condition, programs in names.items():
        for name in programs:
            assert broken_conditions(ring_lookalikes.run(name, p, n)[0], p, n) == [condition], name
    ring = [send for send in ring_lookalikes.run("ring", p, n)[0] if send[0] == 0]
    for name in ("one_chunk_in_two", "last_messages_swapped", "one_long_message"):
        messages = [send for send in ring_lookalikes.run(name, p, n)[0] if send[0] == 0]
        assert len(messages) == len(ring)
        assert {to for _, to, _ in messages} == {1}
        assert max(nbytes for *_, nbytes in messages) == max(nbytes for *_, nbytes in ring)


def test_one_message_more_and_one_fewer_have_the_message_count_of_a_ring():
    sends, _ = ring_lookalikes.run("one_more_one_fewer", 4, 3)
    assert broken_conditions(sends, 4, 3) == [1]
    assert len(sends) == len(ring_lookalikes.run("ring", 4, 3)[0])


def test_chunks_of_uneven_lengths_have_the_bytes_of_a_ring():
    sends, _ = ring_lookalikes.run("rest_in_one_chunk", 5, 13)
    assert sum(nbytes for *_, nbytes in sends) == 2 * 4 * 13 * 8


def test_in_two_rings_each_rank_has_one_destination():
    for name in ("two_rings", "one_behind_the_ring"):
        sends, results = ring_lookalikes.run(name, 6, 12)
        assert len({(source, to) for source, to, _ in sends}) == 6
        assert not np.allclose(results[0], 6 * np.arange(12) + 15)
