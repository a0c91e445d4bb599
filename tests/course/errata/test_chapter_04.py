"""The errata of chapter 04 in course/errata.md: what is right instead."""

from __future__ import annotations

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster import cost
from minidl.cluster.comm import Communicator


def test_an_all_to_all_adds_nothing_up() -> None:
    def program(comm: Communicator) -> tuple[list[float], float]:
        x = np.arange(comm.size) + 10.0 * comm.rank
        return [float(chunk) for chunk in comm.all_to_all(list(x))], float(comm.all_reduce(x)[0])

    results = cluster.launch(program, nodes=3, on="simulation").results
    assert results[0] == ([0.0, 10.0, 20.0], 30.0)


@pytest.mark.parametrize("p", [2, 4, 8, 16])
def test_halving_and_doubling_has_fewer_rounds_than_the_ring_and_the_same_bytes(p: int) -> None:
    def program(comm: Communicator, algorithm: str) -> None:
        comm.all_reduce(np.zeros(16 * p, np.float32), algorithm=algorithm)

    sent = {}
    for algorithm in ("ring", "rabenseifner"):
        ledger = cluster.launch(program, (algorithm,), p, "simulation").trace.ledger()
        sent[algorithm] = {(rank["all_reduce"].messages, rank["all_reduce"].nbytes) for rank in ledger}
    nbytes = 2 * (p - 1) * 16 * 4
    assert sent["ring"] == {(2 * (p - 1), nbytes)}
    assert sent["rabenseifner"] == {(2 * (p.bit_length() - 1), nbytes)}


def test_the_bandwidth_term_of_goyal_s_all_reduce_is_more_than_nine_tenths_of_its_time() -> None:
    alpha, beta, nbytes = 20e-6, 8 / 50e9, 100_000_000
    total = cost.all_reduce("rabenseifner", 32, nbytes, alpha, beta)
    assert 2 * 31 / 32 * nbytes * beta > 0.9 * total
    assert 2 * nbytes * 8 / 0.125 == pytest.approx(12.8e9)
