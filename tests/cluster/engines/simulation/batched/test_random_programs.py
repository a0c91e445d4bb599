"""Random programs see the same in every respect, whether collectives are played at once or message by message."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from minidl import cluster
from tests.cluster.engines.simulation.batched.of_two_ranks import AtOnce, counted
from tests.cluster.engines.simulation.batched.random_programs import program
from tests.tiers import exhaustively

PROGRAMS = 40  # of one test


def all_that_is_seen(seed: int, engine: type[cluster.Simulation], batched: bool) -> Any:
    """Results, times and the trace; of a run that fails, the error without the lines of our own files."""
    rng = np.random.default_rng([1, seed])
    nodes, calls = int(rng.integers(2, 10)), int(rng.integers(1, 14))
    alpha, beta = (rng.choice([0.0, 10**exponent], p=[0.2, 0.8]) for exponent in rng.uniform((-3, -5), (-1, -3)))
    network = cluster.Network(alpha, beta, rng.choice([0, 1e-4]))
    node = None if rng.random() < 0.5 else cluster.Node(1e9, 1e9, jitter=rng.choice([0, 0.3]))
    simulation = engine(network, node=node, batched=batched, trace=("full", "ledger")[seed % 2])
    faults = cluster.FaultPlan().slow(0, 3.0) if rng.random() < 0.3 else None
    timeout = float(rng.choice([1e4, 8.0]))  # virtual seconds, of which some programs wait for more
    try:
        run = cluster.launch(program, (seed, calls), nodes=nodes, on=simulation, faults=faults, timeout=timeout)
    except cluster.ClusterError as error:
        lines = [line for line in str(error).splitlines() if not line.startswith("  ")]
        return type(error), (lines, error.trace and (error.trace.events, error.trace.ledger()))
    trace = run.trace
    shares = [trace.shares(rank) for rank in range(nodes)]
    return run.results, run.seconds, trace.events, trace.dropped, trace.ledger(), shares


@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", [0, *exhaustively(*range(PROGRAMS, 5 * PROGRAMS, PROGRAMS))])
def test_everything_is_the_same_at_once_and_message_by_message(first: int) -> None:
    with counted() as count, warnings.catch_warnings(action="ignore"):
        for seed in range(first, first + PROGRAMS):
            by_messages = all_that_is_seen(seed, cluster.Simulation, batched=False)
            batched = all_that_is_seen(seed, AtOnce, batched=True)
            assert repr(batched) == repr(by_messages), f"program {seed}"  # repr: a NaN equals itself
    assert count["played"] > PROGRAMS
    assert count["dissolved"] > PROGRAMS / 2
    assert first or count["cut off"] > 0
