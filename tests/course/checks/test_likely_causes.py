"""The cause that a check names is true of the answer, also where several mistakes look alike."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from course.checks.gradient_compression import sent_entries, sparse_rounds
from course.checks.parallel_convolution import cut_bytes
from course.judging import Wrong


def test_a_mistake_that_sends_what_is_right_is_not_the_likely_cause() -> None:
    gradient, residual = np.array([2.0, 0.5], np.float32), np.zeros(2, np.float32)
    indices, values, kept = sent_entries.sent(gradient, residual, 1.0)
    seen = {"returned": [(indices, values.astype(np.float64))], "held": [[kept]]}
    seen |= {"is_overwritten": False, "is_gradient_changed": False}
    with pytest.raises(Wrong, match="expected an array of float32, got one of float64") as wrong:
        sent_entries.compare_bits(sent_entries.Run([gradient], [residual], 1.0, seen))
    assert wrong.value.cause == ""


def test_a_message_with_the_bytes_of_two_mistakes_names_both() -> None:
    indices = [np.array(each) for each in ([0, 1], [1, 2], [3, 4], [4, 5])]
    values = [np.ones(2, np.float32)] * 4
    sends: list[tuple[Any, ...]] = [(rank, rank ^ 1, 16) for rank in range(4)] + [
        (rank, rank ^ 2, 32) for rank in range(4)
    ]
    run: Any = SimpleNamespace(operations=[["sendrecv"]] * 4, sends=sends)
    with pytest.raises(Wrong, match="expected a message of 24 bytes, got 32") as wrong:
        sparse_rounds.compare_bytes(sparse_rounds.Sum(8, indices, values, run))
    assert "The whole vector is sent" in wrong.value.cause
    assert "Or: The same entry is sent several times" in wrong.value.cause


def test_a_halo_that_is_wrong_in_the_forward_is_the_cause_in_the_backward_too() -> None:
    case = (2, 3, 17, 7, 5, 3, 2, 1, 3, 1)  # the halo is 336 bytes, the all-reduce 2,240
    for forward, cause in ((672, "wrong as in the forward"), (336, "The backward comes without the forward")):
        with pytest.raises(Wrong, match="backward: expected 2576, got 2912") as wrong:
            cut_bytes.compare_tiles(lambda *layer, there=forward: (there, 2912), case, 1)
        assert cause in wrong.value.cause
