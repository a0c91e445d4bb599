"""Shared memory by descriptor: nothing in any folder, reused, and there also where the kernel has no memfd."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from minidl.cluster.engines.processes.frames import SMALLEST, Segment, SegmentPool


@pytest.mark.parametrize("has_memfd", [True, False])
def test_two_mappings_of_one_descriptor_are_the_same_memory(
    has_memfd: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if not has_memfd:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    names = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    mine = Segment.create(SMALLEST, 1)
    descriptor = os.dup(mine.descriptor)
    theirs = Segment(descriptor, SMALLEST, 1)
    mine.bytes[:5] = np.arange(5)
    assert theirs.bytes[:5].tolist() == [0, 1, 2, 3, 4]
    assert os.listdir(tmp_path) == []
    assert not os.path.isdir("/dev/shm") or set(os.listdir("/dev/shm")) <= names
    os.close(descriptor)
    os.close(mine.descriptor)


def test_a_segment_that_was_given_back_serves_again_and_the_smallest_that_fits_is_taken() -> None:
    pool = SegmentPool()
    small, large = pool.take(100_000), pool.take(1_000_000)
    assert (small.bytes.size, large.bytes.size) == (1 << 17, 1 << 20)
    pool.give_back(large)
    pool.give_back(small)
    assert pool.take(70_000) is small
    assert pool.take(70_000) is large
    assert pool.take(70_000).number == 3
