"""algorithm="ordered": every strategy whose nodes go together has the same bits on processes and in a simulation."""

from functools import partial

import pytest
from threadpoolctl import threadpool_limits

from minidl import compress, optim, parallel
from minidl.cluster.algorithm import NAMED, Algorithm
from minidl.cluster.collectives import ALL_REDUCE
from minidl.parallel import (
    ElasticAveraging,
    Gossip,
    LocalSGD,
    OneShotAveraging,
    SlowMo,
    Strategy,
    SufficientFactors,
    Synchronous,
)
from tests.parallel.jobs import assert_same_bits, blobs, dropout_job, small_job
from tests.parallel.test_synchronized_batch_norm import job as batch_norm_job
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

STRATEGIES: dict[str, Strategy] = {
    "synchronous": Synchronous(algorithm="ordered"),
    "synchronous, in buckets": Synchronous(bucket_mb=1e-4, algorithm="ordered"),
    "votes": Synchronous(compressor=compress.Signum(), algorithm="ordered"),
    "16 bits": Synchronous(compressor=compress.Half("bf16"), algorithm="ordered"),
    "random entries": Synchronous(compressor=compress.RandomK(0.3), algorithm="ordered"),
    "power iteration": Synchronous(compressor=compress.PowerSGD(1), algorithm="ordered"),
    "sufficient factors": SufficientFactors(algorithm="ordered"),
    "local": LocalSGD(period=4, algorithm="ordered"),
    "local, with outer momentum": SlowMo(period=4, algorithm="ordered"),
    "one shot": OneShotAveraging(algorithm="ordered"),
    "gossip among all": Gossip("full", algorithm="ordered"),
    "gossip in a ring": Gossip("ring"),
    "elastic": ElasticAveraging(alpha=0.3, variant="synchronous", algorithm="ordered"),
}


def assert_same_bits_on_both(job: parallel.Job, strategy: Strategy) -> None:
    with threadpool_limits(1):  # as processes have
        there = parallel.train(job, strategy, nodes=3, on="simulation")
    here = parallel.train(job, strategy, nodes=3, on="processes")
    assert_same_bits(here, there)


@pytest.mark.parametrize(
    "name",
    [
        "synchronous, in buckets",
        *exhaustively(
            "local, with outer momentum", "power iteration", "sufficient factors", "elastic", "gossip in a ring"
        ),
    ],
)
def test_ordered_sums_have_the_same_bits_on_processes_and_in_a_simulation(name):
    job = dropout_job(data=partial(blobs, 61), optimizer=partial(optim.SGD, lr=0.05), clip_norm=0.5)
    assert_same_bits_on_both(job, STRATEGIES[name])


def test_so_have_those_of_synchronized_batch_norm():
    assert_same_bits_on_both(batch_norm_job(epochs=1), Synchronous(algorithm="ordered", batch_norm="synchronized"))


@pytest.mark.parametrize(
    "strategy", [one for name, one in STRATEGIES.items() if name not in ("votes", "gossip in a ring")], ids=repr
)
def test_all_reduces_of_a_run_use_the_algorithm_that_was_asked_for(strategy, monkeypatch):
    """In a simulation ranks share this process; the loss, the evaluation and who has a gradient are summed as well."""
    used = set()

    def spy(name, function):
        def all_reduce(*arguments, **options):
            used.add(name)
            return function(*arguments, **options)

        return all_reduce

    for name, function in ALL_REDUCE.items():
        monkeypatch.setitem(NAMED, name, Algorithm(spy(name, function), name))
    parallel.train(small_job(epochs=1, optimizer=partial(optim.SGD, lr=0.05)), strategy, nodes=3, on="simulation")
    assert used == {"ordered"}
