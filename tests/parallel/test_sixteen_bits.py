"""Models whose weights are float16 or bfloat16: all strategies train them, and their files can be read."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from ml_dtypes import bfloat16

from minidl import nn, optim, parallel
from minidl.parallel.gradients import flat_vector as vector
from tests.parallel.jobs import blobs, small_job


def linear(dtype):
    return nn.Linear(5, 3).to(dtype)


def job(dtype, **changes):
    settings = {
        "model": partial(linear, dtype),
        "data": partial(blobs, dtype=dtype),
        "optimizer": partial(optim.SGD, lr=0.1, momentum=0.5),
        "schedule": None,
        "batch_size": 8,
    }
    return small_job(**(settings | changes))


STRATEGIES = {
    "synchronous": parallel.Synchronous(),
    "one shot": parallel.OneShotAveraging(),
    "elastic, synchronous": parallel.ElasticAveraging(variant="synchronous"),
    "gossip among all": parallel.Gossip("full"),
    "sufficient factors": parallel.SufficientFactors(),
    "sharded": parallel.Sharded(stage=2),
    "local": parallel.LocalSGD(period=4),
    "elastic": parallel.ElasticAveraging(),
    "gossip": parallel.Gossip(),
    "gossip in pairs": parallel.Gossip(asynchronous=True),
    "server": parallel.ParameterServer(),
    "backup workers": parallel.BackupWorkers(),
    "eager": parallel.EagerSGD(coordinator=False),
    "hogwild": parallel.Hogwild(),
}


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=list(STRATEGIES))
def test_every_strategy_trains_weights_of_sixteen_bits(strategy):
    report, reference = (
        parallel.train(job(dtype, epochs=2), strategy, 3, on="simulation") for dtype in ("bfloat16", "float32")
    )
    assert {str(array.dtype) for array in report.checkpoint.model.values()} == {"bfloat16"}
    assert abs(report.history[-1]["test_loss"] - reference.history[-1]["test_loss"]) < 0.05


def test_a_run_in_sixteen_bits_is_resumed_to_the_same_bits(tmp_path):
    dtype = "bfloat16"
    whole = parallel.train(job(dtype, epochs=2), on="simulation")
    parallel.train(job(dtype, epochs=1), on="simulation", folder=tmp_path)
    resumed = parallel.train(job(dtype, epochs=2), on="simulation", resume=tmp_path / "checkpoint.npz")
    assert resumed.digests == whole.digests


@pytest.mark.parametrize(("dtype", "number"), [(np.float16, 60_000.0), (bfloat16, 1.5), (np.float64, 0.1)])
def test_the_mean_of_many_equal_weights_is_these_weights(dtype, number):
    weights = np.full(3, number, dtype)
    mean = parallel.Strategy().combine([weights] * 512)[0]
    assert mean.dtype == dtype
    assert abs(mean.astype(float) - weights.astype(float)).max() < 1e-14


@pytest.mark.parametrize("size", [1e-5, 1e3])
def test_the_norm_of_float16_is_finite_and_above_zero_where_its_square_is_not(size):
    assert vector.norm(np.full(4, size, np.float16)) == pytest.approx(2 * size, rel=0.02)


@dataclass(frozen=True)
class Far(parallel.ElasticAveraging):
    """The worker begins with weights far from the centre's."""

    def run(self, session):
        session.set_weights(session.weights() + 300)
        super().run(session)


@pytest.mark.parametrize("strategy", [Far(), Far(variant="round_robin")], ids=["asynchronous", "round robin"])
def test_the_distance_to_the_centre_in_float16_may_exceed_256(strategy):
    report = parallel.train(job("float16", optimizer=partial(optim.SGD, lr=0.0)), strategy, 1, on="simulation")
    distance = next(of_rank for of_rank in report.recorded["distance"] if of_rank)[0]
    assert distance == pytest.approx(300 * np.sqrt(18), rel=1e-3)
