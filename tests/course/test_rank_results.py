"""The causes that messages about results on ranks name."""

from __future__ import annotations

import numpy as np

from course.checks.messages_and_collectives import rank_results


def test_a_sum_of_short_numbers_is_told_from_a_wrong_one():
    total = np.random.default_rng(0).standard_normal(20)
    assert "float32" in rank_results.less_exact(total.astype(np.float32), total)
    assert rank_results.less_exact(total + 0.01, total) == ""


def test_the_first_wrong_chunk_is_taken_apart():
    vectors = [np.random.default_rng(rank).standard_normal(8) for rank in range(2)]
    wrong = vectors[0] + vectors[1]
    wrong[4:] = vectors[0][4:]
    cause = rank_results.chunk_made_of(wrong, vectors)
    assert cause == "Look at chunk 1 of np.array_split(x, 2) here. Missing in this sum: what rank 1 had."
    assert rank_results.chunk_made_of(np.ones(8), vectors) == ""
