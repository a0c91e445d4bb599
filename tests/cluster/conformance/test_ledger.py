"""Messages and bytes of every rank are those of the formulas, in every engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster import Communicator
from tests.cluster.conformance.runs import ENGINES, HAS_MPI
from tests.tiers import exhaustively

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

N = 240  # float64 numbers, divisible by every number of ranks here

# For p ranks and lg p: the messages of each rank, and the numbers in all of these together.
Formula = Callable[[int, int], tuple[int, int]]
EACH: dict[str, Formula] = {
    "ring": lambda p, lg: (2 * (p - 1), 2 * (p - 1) * N // p),
    "ordered": lambda p, lg: (2 * (p - 1), 2 * (p - 1) * N // p),
    "recursive_doubling": lambda p, lg: (lg, lg * N),
    "rabenseifner": lambda p, lg: (2 * lg, 2 * (p - 1) * N // p),
    "all_gather": lambda p, lg: (p - 1, (p - 1) * N),
    "reduce_scatter": lambda p, lg: (p - 1, (p - 1) * N // p),
    "all_to_all": lambda p, lg: (p - 1, (p - 1) * N),
}
POWERS_OF_TWO = {"recursive_doubling", "rabenseifner"}
ALL_TOGETHER: dict[str, Formula] = {
    "tree": lambda p, lg: (2 * (p - 1), 2 * (p - 1) * N),
    "parameter_server": lambda p, lg: (2 * (p - 1), 2 * (p - 1) * N),
    "broadcast": lambda p, lg: (p - 1, (p - 1) * N),
    "reduce": lambda p, lg: (p - 1, (p - 1) * N),
}


def program(comm: Communicator) -> None:
    for algorithm in ("ring", "ordered", "recursive_doubling", "rabenseifner", "tree", "parameter_server"):
        comm.mark(algorithm)
        comm.all_reduce(np.ones(N), algorithm=algorithm)
    for name in ("all_gather", "reduce_scatter", "broadcast", "reduce"):
        comm.mark(name)
        getattr(comm, name)(np.ones(N))
    comm.mark("all_to_all")
    comm.all_to_all([np.ones(N)] * comm.size)
    comm.mark("barrier")
    comm.barrier()


@pytest.mark.parametrize(
    ("engine", "p"),
    [
        *(("processes", 5), ("simulation", 4)),
        *exhaustively(
            ("processes", 8), ("simulation", 1), ("simulation at once", 5), *([("mpi", 5)] if HAS_MPI else [])
        ),
    ],
)
def test_messages_and_bytes_are_those_of_the_formulas(engine: str, p: int) -> None:
    trace = cluster.launch(program, nodes=p, on=ENGINES[engine](), timeout=20, deadline=150).trace
    messages: Counter[tuple[str, int]] = Counter()
    nbytes: Counter[tuple[str, int]] = Counter()
    for event in trace.events:
        if event.kind == "send" and event.nbytes > 0:
            messages[event.label, event.rank] += 1
            nbytes[event.label, event.rank] += event.nbytes
    lg = (p - 1).bit_length()
    for name, formula in EACH.items():
        if p == 1 << lg or name not in POWERS_OF_TWO:
            count, numbers = formula(p, lg)
            assert [messages[name, rank] for rank in range(p)] == [count] * p, name
            assert [nbytes[name, rank] for rank in range(p)] == [8 * numbers] * p, name
    for name, formula in ALL_TOGETHER.items():
        count, numbers = formula(p, lg)
        assert sum(messages[name, rank] for rank in range(p)) == count, name
        assert sum(nbytes[name, rank] for rank in range(p)) == 8 * numbers, name
    assert [messages["parameter_server", rank] for rank in range(p)] == [p - 1] + [1] * (p - 1)
    for rank in trace.ledger():
        traffic = rank["barrier"]
        assert traffic[:4] == (lg, 0, lg, 0), "a message of no bytes a round"
    ledger = trace.ledger()
    for operation in ledger[0]:
        sent = sum(rank[operation].nbytes for rank in ledger)
        assert sent == sum(rank[operation].nbytes_received for rank in ledger), operation
