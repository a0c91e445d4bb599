"""One program, three engines, the same answers: every case on every engine, with 1 to 16 ranks (`--all`)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cluster.conformance.registry import CASES
from tests.cluster.conformance.runs import INSTALLED, outcome
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

WITHOUT_MPI = [engine for engine in INSTALLED if engine != "mpi"]  # where a rank more costs much


@pytest.mark.parametrize(
    ("size", "engines"),
    [
        (3, INSTALLED),  # no power of two, and ranks with two neighbours
        (1, ["processes", "simulation"]),
        *exhaustively((1, INSTALLED), (2, INSTALLED), (5, WITHOUT_MPI), (8, INSTALLED), (16, WITHOUT_MPI)),
    ],
    ids=str,
)
def test_every_rank_sees_what_it_should_in_every_engine_and_the_same_in_all(size: int, engines: list[str]) -> None:
    outcomes = {engine: outcome(engine, size) for engine in engines}
    failed = [
        f"{name} on {engine}: {str(error)[:2000]}"
        for engine, came in outcomes.items()
        for name, error in came.failures.items()
    ]
    assert not failed, "\n\n".join(failed)
    first, *others = outcomes.values()
    for name, case in CASES.items():
        if case.suits(size):
            expected = [result[name] for result in first.results]
            for came in others:
                np.testing.assert_equal([result[name] for result in came.results], expected, err_msg=name)
            if case.alike:
                np.testing.assert_equal(expected, [expected[0]] * size, err_msg=name)
