"""Halo words are those that a brute-force count of needed rows gives."""

from __future__ import annotations

from typing import Any

import pytest

from minidl.parallel.spatial import halo_rows, halo_words


def rows_across(kernel: int, stride: int, height: int = 240) -> int:
    """Input rows that output rows on one side of a cut in the middle need from the other side, both ways together."""
    cut = height // 2
    needed = set()
    for start in range(0, height - kernel + 1, stride):  # windows [start, start + kernel)
        own = start + max(kernel - stride, 0) // 2 < cut  # the side on which more of the window lies
        for row in range(start, start + kernel):
            if (row < cut) != own:
                needed.add((own, row))
    return len(needed)


@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5, 7, 11])
def test_at_stride_1_the_rows_are_those_that_windows_across_the_cut_need(kernel: int) -> None:
    assert halo_rows(kernel) == rows_across(kernel, 1)
    if kernel % 2:
        assert halo_rows(kernel) == 2 * (kernel // 2)


@pytest.mark.parametrize(("kernel", "stride"), [(4, 2), (6, 2), (2, 2), (3, 3), (1, 2), (6, 3), (8, 4)])
def test_with_strides_they_are_kernel_less_stride(kernel: int, stride: int) -> None:
    assert halo_rows(kernel, stride) == rows_across(kernel, stride)


def test_words_are_rows_times_width_channels_and_samples() -> None:
    assert halo_words(3, width=10, channels=4, samples=5) == 2 * 10 * 4 * 5
    assert halo_words(1, width=10, channels=4, samples=5) == 0


@pytest.mark.parametrize("bad", [{"kernel": 0}, {"width": 0}, {"channels": -1}, {"samples": 1.5}, {"stride": 0}])
def test_bad_numbers_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match="halo_"):
        halo_words(**({"kernel": 3, "width": 8, "channels": 2} | bad))
