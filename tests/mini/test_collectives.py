"""Collectives of the core against the workshop's: the same bits, messages, bytes and seconds on every rank."""

import numpy as np
import pytest

from minidl import cluster
from minidl.mini import collectives as core
from minidl.mini.cluster import processes, simulate
from tests.mini.jobs import ALPHA, BETA, NETWORK
from tests.tiers import exhaustively

WORKSHOP = {
    "broadcast": lambda comm, x: comm.broadcast(x),
    "reduce_scatter": lambda comm, x: comm.reduce_scatter(x),
    "all_gather": lambda comm, x: comm.all_gather(x),
    "all_reduce": lambda comm, x: comm.all_reduce(x, algorithm="ring"),
    "all_reduce_doubling": lambda comm, x: comm.all_reduce(x, algorithm="recursive_doubling"),
}
SIZES = [1_003, *exhaustively(1, 7, 64, 300_007)]  # below and above the size up to which the workshop sends eagerly


def vector(comm, n):
    return np.random.default_rng(comm.rank).normal(0.1, 3.7, n).astype(np.float32)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    ("name", "nodes"),
    [(name, nodes) for name in WORKSHOP for nodes in (1, 2, 3, 4, 8) if name != "all_reduce_doubling" or nodes != 3],
)
def test_a_collective_has_the_results_of_the_workshops(name, nodes, n):
    ours = simulate(lambda comm: getattr(core, name)(comm, vector(comm, n)), nodes, ALPHA, BETA)
    theirs = cluster.launch(
        lambda comm: WORKSHOP[name](comm, vector(comm, n)), nodes=nodes, on="simulation", network=NETWORK
    )
    for a, b in zip(ours.results, theirs.results, strict=True):
        np.testing.assert_array_equal(np.array(a), np.array(b))
    assert ours.seconds == pytest.approx(theirs.seconds, abs=1e-9)
    for rank, ledger in enumerate(theirs.trace.ledger()):
        sent = [message.nbytes for message in ours.messages if message.src == rank]
        traffic = ledger.get(name.removesuffix("_doubling"), cluster.Traffic())
        assert (len(sent), sum(sent)) == (traffic.messages, traffic.nbytes)


@pytest.mark.timeout(300)
def test_processes_have_the_bits_of_the_clock():
    def program(comm):
        x = vector(comm, 70_001)
        return [core.all_reduce(comm, x), core.broadcast(comm, x), *core.all_gather(comm, x[: comm.rank])]

    for a, b in zip(processes(program, 3), simulate(program, 3, ALPHA, BETA).results, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)
