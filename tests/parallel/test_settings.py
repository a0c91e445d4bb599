"""Settings of strategies with servers or averages: numpy's numbers are taken, what is none is refused."""

import numpy as np
import pytest

from minidl.parallel import (
    BackupWorkers,
    DiLoCo,
    Downpour,
    EagerSGD,
    ElasticAveraging,
    Ensemble,
    Gossip,
    Hogwild,
    Hybrid,
    LocalSGD,
    OneShotAveraging,
    ParameterServer,
    Pipeline,
    PostLocalSGD,
    SandblasterLBFGS,
    SlowMo,
    SufficientFactors,
    Synchronous,
    train,
)
from tests.parallel.jobs import blobs, small_job, weights

WHOLE = [
    *((ParameterServer, name, lowest) for name, lowest in {"servers": 1, "staleness": 0}.items()),
    *((Downpour, name, lowest) for name, lowest in {"fetch_every": 1, "push_every": 1, "warm_start": 0}.items()),
    (BackupWorkers, "backups", 0),
    (EagerSGD, "quorum", 1),
    (ElasticAveraging, "period", 1),
    (LocalSGD, "period", 1),
    (PostLocalSGD, "post_local_after", 0),
    (SandblasterLBFGS, "shards", 1),
    (SandblasterLBFGS, "history", 1),
]
REAL = [  # with values outside of the range
    (ElasticAveraging, "alpha", (0.0, 1.5)),
    (ElasticAveraging, "momentum", (-0.1, 1.0)),
    (SlowMo, "outer_lr", (0, -1.0)),
    (SlowMo, "outer_momentum", (-0.1, 1.0)),
    (DiLoCo, "outer_lr", (0, -1.0)),
    (DiLoCo, "outer_momentum", (0.0, 1.0)),
]
FLAGS = [
    (BackupWorkers, "abandon"),
    (EagerSGD, "coordinator"),
    (ElasticAveraging, "overlap"),
    (Gossip, "asynchronous"),
    (Hogwild, "locked"),
    (SandblasterLBFGS, "backups"),
]
CHOICES = [
    (EagerSGD, "quorum", "most"),
    (ElasticAveraging, "variant", "chaotic"),
    (Ensemble, "data", "none"),
    (Gossip, "topology", "star"),
]


@pytest.mark.parametrize(("strategy", "name", "lowest"), WHOLE)
def test_whole_numbers_are_kept_as_pythons_and_what_is_none_or_too_small_is_refused(strategy, name, lowest):
    value = getattr(strategy(**{name: np.int64(lowest)}), name)
    assert (value, type(value)) == (lowest, int)
    for value in (True, 1.5, np.float64(2), None if name != "staleness" else 0.5):
        with pytest.raises(TypeError, match=f"{strategy.__name__}: {name} must be a whole number of at least {lowest}"):
            strategy(**{name: value})
    with pytest.raises(ValueError, match=f"{strategy.__name__}: {name} must be at least {lowest}, got {lowest - 1}"):
        strategy(**{name: lowest - 1})


@pytest.mark.parametrize(("strategy", "name", "outside"), REAL)
def test_what_is_no_number_or_out_of_range_is_refused(strategy, name, outside):
    for value in (True, "x", [0.5]):
        with pytest.raises(TypeError, match=f"{strategy.__name__}: {name} must be a number"):
            strategy(**{name: value})
    for value in (*outside, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"{strategy.__name__}: {name} must be .* got {value}"):
            strategy(**{name: value})
    assert getattr(strategy(**{name: np.float32(0.5)}), name) == 0.5


def test_what_is_neither_true_nor_false_or_none_of_the_choices_is_refused():
    for strategy, name in FLAGS:
        for value in ("no", 1, None):
            with pytest.raises(TypeError, match=f"{strategy.__name__}: {name} must be True or False"):
                strategy(**{name: value})
    for strategy, name, value in CHOICES:
        with pytest.raises(ValueError, match=f"{strategy.__name__}: {name} must be .* or .*, got '{value}'"):
            strategy(**{name: value})


def test_every_strategy_refuses_an_all_reduce_that_does_not_exist():
    of_servers, of_averages = [EagerSGD], [ElasticAveraging, Gossip, LocalSGD, OneShotAveraging]
    for strategy in (*of_servers, *of_averages, Hybrid, Pipeline, SufficientFactors, Synchronous):
        with pytest.raises(ValueError, match=f"{strategy.__name__}: algorithm must be .*did you mean 'ring'"):
            strategy(algorithm="rign")


def test_every_strategy_refuses_more_nodes_than_there_are_samples_for():
    job = small_job(data=lambda: blobs(3), batch_size=3)
    for strategy in (
        *(kind() for kind in (BackupWorkers, EagerSGD, Gossip, Hogwild, LocalSGD, OneShotAveraging, ParameterServer)),
        *(ElasticAveraging(variant=variant) for variant in ("synchronous", "round_robin", "asynchronous")),
        *(Gossip(asynchronous=True), SufficientFactors(), Synchronous(), Hybrid(dp=5)),
    ):
        said = r"cannot be (dealt to 5 nodes: use at most 3|shared by 5 (nodes|replicas))"
        with pytest.raises(ValueError, match=said):
            strategy.check(job, 5)


def through_rank_0(comm, x, op="sum"):
    """An all-reduce of one's own: rank 0 adds up, and sends the sum to all."""
    if comm.rank:
        comm.send(x, 0)
        x[...] = comm.recv(0)
        return
    others = range(1, comm.size)
    for other in others:
        comm.reduce_into(x, comm.recv(other), op)
    for other in others:
        comm.send(x, other)


def test_the_all_reduce_of_a_strategy_may_be_a_function():
    job = small_job(epochs=1)
    for kind in (Synchronous, LocalSGD):
        own = train(job, kind(algorithm=through_rank_0), nodes=3, on="simulation")
        named = train(job, kind(algorithm="ordered"), nodes=3, on="simulation")
        assert np.abs(weights(own) - weights(named)).max() < 1e-12
    with pytest.raises(TypeError, match=r"all_reduce by .*<lambda>"):
        LocalSGD(algorithm=lambda comm: None)
