"""Messages and bytes of every rank are those of the collectives' algorithms, in every engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster import Communicator, collectives
from tests.cluster import rendezvous
from tests.cluster.conformance.runs import ENGINES, HAS_MPI
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

NAMED = [name for name in collectives.ALL_REDUCE if name not in ("pipelined_chain", "hierarchical")]
X = np.ones(241)  # no multiple of a number of ranks here

OTHERS = {
    "all_gather": lambda comm: collectives.all_gather_ring(comm, X),
    "reduce_scatter": lambda comm: collectives.reduce_scatter_ring(comm, X),
    "broadcast": lambda comm: collectives.broadcast_tree(comm, X.copy(), 0),
    "reduce": lambda comm: collectives.reduce_tree(comm, X, 0, "sum"),
    "all_to_all": lambda comm: collectives.all_to_all_pairwise(comm, [X] * comm.size),
    "barrier": lambda comm: collectives.barrier_dissemination(comm),
}


def program(comm: Communicator) -> list[int]:
    sent = [comm.bytes_sent]
    for algorithm in NAMED:
        comm.all_reduce(X.copy(), algorithm=algorithm)
        sent.append(comm.bytes_sent)
    for name in ("all_gather", "reduce_scatter", "broadcast", "reduce"):
        getattr(comm, name)(X.copy())
    comm.all_to_all([X] * comm.size)
    comm.barrier()
    return [int(nbytes) for nbytes in np.diff(sent)]


def counted(p: int, function: Any) -> list[tuple[int, int]]:
    """Messages and bytes that each rank sends on a network that only counts."""
    outcome = rendezvous.run(p, function)
    return [(outcome.messages(rank), outcome.nbytes(rank)) for rank in range(p)]


@pytest.mark.parametrize(
    ("engine", "p"),
    [("processes", 5), ("simulation", 4), *exhaustively(("simulation at once", 5), *[("mpi", 5)] * HAS_MPI)],
)
def test_messages_and_bytes_are_those_of_the_algorithms(engine: str, p: int) -> None:
    run = cluster.launch(program, nodes=p, on=ENGINES[engine](), timeout=20, deadline=150)
    ledger = run.trace.ledger()
    for number, algorithm in enumerate(NAMED):
        expected = counted(p, lambda comm: collectives.ALL_REDUCE[algorithm](comm, X.copy(), "sum"))  # noqa: B023
        assert [result[number] for result in run.results] == [nbytes for _, nbytes in expected], algorithm
    for name, function in OTHERS.items():
        assert [(rank[name].messages, rank[name].nbytes) for rank in ledger] == counted(p, function), name
    for operation in ledger[0]:
        sent = sum(rank[operation].nbytes for rank in ledger)
        assert sent == sum(rank[operation].nbytes_received for rank in ledger), operation
