"""`algorithm=` of an all-reduce: what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.algorithm import chosen


def without_an_op(comm: Any, x: Any) -> None: ...


def with_an_option(comm: Any, x: Any, op: str, halves: int = 2) -> None: ...


def in_a_new_array(comm: Any, x: Any, op: str) -> Any:
    return x + 1


def test_a_function_is_named_with_its_line_and_options() -> None:
    line = with_an_option.__code__.co_firstlineno
    assert chosen(with_an_option, "sum", {"halves": 3}).name == f"with_an_option(halves=3) at test_algorithm.py:{line}"


def test_a_function_that_cannot_be_called_is_refused_with_its_parameters() -> None:
    with pytest.raises(
        TypeError, match=r"without_an_op at .* calls it with \(comm, x, op\), but its parameters are \(com"
    ):
        chosen(without_an_op, "sum", {})
    with pytest.raises(TypeError, match=r"\(comm, x, op, thirds=3\), .* unexpected keyword argument 'thirds'"):
        chosen(with_an_option, "sum", {"thirds": 3})


def test_what_is_neither_a_name_nor_a_function_is_refused() -> None:
    with pytest.raises(TypeError, match=r"algorithm must be 'auto', .*or pass a function f\(comm, x, op\)"):
        chosen(3, "sum", {})
    with pytest.raises(ValueError, match=r"algorithm must be 'auto', .* did you mean 'ring'"):
        chosen("rings", "sum", {})
    with pytest.raises(ValueError, match="'ring' has no option 'segments': its options are none"):
        chosen("ring", "sum", {"segments": 3})


def test_a_result_in_a_new_array_would_be_lost_and_is_refused() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.all_reduce(np.ones(3), algorithm=in_a_new_array)

    with pytest.raises(
        cluster.RankFailed, match=r"in place and return nothing, but it returned ndarray: write x\[...\] ="
    ):
        cluster.launch(program, nodes=2, on="simulation")
