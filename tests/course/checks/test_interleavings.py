"""Interleavings of increments: which lose something, and how much."""

from __future__ import annotations

import pytest

from course.checks.asynchrony.interleavings import interleaving, lost, stale_writes

KINDS = ("locked", "apart", "racing", "at_once", "all_cells", "late", "falling")


def test_no_increment_is_lost_with_a_lock_or_with_a_cell_per_worker():
    for seed in range(5):
        assert lost(interleaving("locked", 4, 6, 2, seed)) == 0
        assert lost(interleaving("apart", 4, 6, 4, seed)) == 0


def test_of_workers_that_read_at_the_same_time_one_increment_survives():
    assert lost(interleaving("at_once", 3, 4, 1, 0)) == 4 * 2


def test_a_late_write_loses_all_increments_since_its_read():
    events = interleaving("late", 4, 3, 1, 0)
    assert lost(events) == 3 * 3
    assert stale_writes(events) == 1


def test_with_all_cells_the_workers_lose_one_increment_a_cell_for_each_but_one():
    assert lost(interleaving("all_cells", 3, 4, 2, 0)) == 2 * 2


@pytest.mark.parametrize("kind", KINDS)
def test_every_write_follows_a_read_of_the_same_worker_and_cell(kind):
    pending: set[tuple[int, int]] = set()
    for worker, action, cell in interleaving(kind, 3, 4, 3, 7):
        if action == "read":
            pending.add((worker, cell))
        else:
            pending.remove((worker, cell))
    assert not pending
