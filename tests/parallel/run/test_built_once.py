"""How often a training run calls the functions of its job."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from minidl import compress, nn, optim, parallel
from tests.parallel.jobs import blobs, decay, small_job, two_layers

NODES = 3
STRATEGIES = {
    "synchronous": parallel.Synchronous(),
    "compressed": parallel.Synchronous(compressor=compress.TopK(0.5)),
    "sufficient factors": parallel.SufficientFactors(),
    "parameter server": parallel.ParameterServer(servers=2),
    "hogwild": parallel.Hogwild(),
    "elastic averaging": parallel.ElasticAveraging(),
    "local": parallel.LocalSGD(2),
    "gossip": parallel.Gossip(),
    "ensemble": parallel.Ensemble(),
}


def counted(path: Path, name: str, function, *arguments):
    """Call the function, and note its name and the rank, -1 in the calling process, in the file.

    A file, since a simulation copies to the ranks what a job refers to.
    """
    frame, rank = sys._getframe(), -1
    while frame is not None:
        if frame.f_code.co_name == "_node":
            rank = frame.f_locals["comm"].rank
        frame = frame.f_back
    with path.open("a") as file:
        file.write(f"{name} {rank}\n")
    return function(*arguments)


def plain_sgd(parameters):
    return optim.SGD(parameters, lr=0.05)


def counted_job(path: Path, **changes) -> parallel.Job:
    functions = {"data": blobs, "model": two_layers, "optimizer": plain_sgd, "schedule": decay}
    functions |= {"batch_schedule": lambda epoch: 16} | changes
    return small_job(**{name: partial(counted, path, name, function) for name, function in functions.items()})


def calls(path: Path) -> Counter:
    return Counter(path.read_text().splitlines())


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_calling_process_and_every_rank_build_each_thing_of_a_job_once(name, tmp_path):
    strategy, path = STRATEGIES[name], tmp_path / "calls"
    parallel.train(counted_job(path), strategy, NODES, on="simulation")
    found = calls(path)
    for rank in range(NODES + strategy.servers):
        assert found.pop(f"data {rank}") == 1
        assert found.pop(f"model {rank}") == 1 + (name == "ensemble")  # of the job's seed, and of the member's
    assert found.pop("batch_schedule -1") == 3  # one per epoch
    assert set(found.values()) == {1}
    assert any(one.startswith("optimizer") for one in found)


def test_a_resumed_run_builds_each_thing_once_in_the_calling_process(tmp_path):
    path = tmp_path / "calls"
    parallel.train(small_job(optimizer=plain_sgd, epochs=1), on="simulation", folder=tmp_path)
    parallel.train(counted_job(path), on="simulation", resume=tmp_path / "checkpoint.npz")
    found = calls(path)
    assert {one: found[f"{one} -1"] for one in ("data", "model", "optimizer", "schedule")} == {
        "data": 0,
        "model": 1,
        "optimizer": 1,
        "schedule": 1,
    }


def test_the_batch_size_after_the_last_epoch_is_that_of_the_last():
    job = small_job(batch_schedule=lambda epoch: np.int64(8 * (epoch + 1)))
    assert [job.batch_size_of(epoch) for epoch in range(5)] == [8, 16, 24, 24, 24]
    assert [small_job().batch_size_of(epoch) for epoch in (0, 9)] == [16, 16]


@pytest.mark.parametrize("strategy", [parallel.LocalSGD(), parallel.ParameterServer(), parallel.Ensemble()])
def test_layers_made_outside_the_model_function_keep_their_weights_in_the_calling_process(strategy, tmp_path):
    layer = nn.Linear(5, 3).double()
    before = layer.weight.numpy().copy()
    job = small_job(model=lambda: nn.Sequential(layer))
    report = parallel.train(job, strategy, 2, "simulation", folder=tmp_path)
    assert not np.array_equal(report.model().state_dict()["0.weight"], before)
    parallel.train(replace(job, epochs=5), resume=tmp_path / "checkpoint.npz", on="simulation")
    np.testing.assert_array_equal(layer.weight.numpy(), before)
