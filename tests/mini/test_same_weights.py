"""The core trains the weights that the rest of minidl trains, in every way that is exact, and stays short."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from minidl import data, mini, nn, optim, parallel
from minidl.mini import data_parallel, model_parallel
from minidl.mini.cluster import processes, simulate
from minidl.mini.nn import SGD, mlp

SIZES = (64, 32, 32, 32, 10)
SCHEDULES = {each.__name__: each for each in (model_parallel.gpipe, model_parallel.one_f_one_b)}
WAYS = {
    "synchronous": data_parallel.synchronous,
    "sharded_states": data_parallel.sharded_states,
    "everything_sent": partial(data_parallel.compressed, density=1.0),
}


def network():
    return mlp(*SIZES, rng=np.random.default_rng(0))


def train(way, comm):
    loader = data.DataLoader(data.digits().train, batch_size=64, shuffle=True)
    batches = [(x.reshape(len(x), -1), y) for _ in range(2) for x, y in loader]
    return way(comm, network(), SGD(lr=0.1, momentum=0.9), batches)


@pytest.fixture(scope="module")
def weights():
    """Those that `parallel.train` trains, from the same first weights with the same minibatches."""
    model = nn.models.MLP(*SIZES)
    for parameter, first in zip(model.parameters(), network().parameters(), strict=True):
        parameter.data[...] = first.data
    job = parallel.Job(model, data.digits, partial(optim.SGD, lr=0.1, momentum=0.9), batch_size=64, epochs=2)
    return np.concatenate([each.reshape(-1) for each in parallel.train(job).checkpoint.model.values()])


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("way", WAYS)
def test_replicas_train_the_same_weights(way, ranks, weights):
    for result in simulate(partial(train, WAYS[way]), ranks, alpha=50e-6, beta=8e-9).results:
        np.testing.assert_allclose(result, weights, rtol=0, atol=1e-6)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_stages_of_a_pipeline_train_the_same_weights(schedule, weights):
    way = partial(model_parallel.pipeline, schedule=SCHEDULES[schedule], micro_batches=8)
    stages = simulate(partial(train, way), 4, alpha=50e-6, beta=8e-9).results
    np.testing.assert_allclose(np.concatenate(stages), weights, rtol=0, atol=1e-6)


def test_ranks_with_a_share_of_each_matrix_train_their_share_of_the_same_weights(weights):
    def untrained(comm):
        whole = network()
        whole.set_weights(weights)
        return model_parallel.tensor_parallel(comm, whole, None, [])

    shares, trained = simulate(untrained, 4, 0, 0), simulate(partial(train, model_parallel.tensor_parallel), 4, 0, 0)
    np.testing.assert_allclose(trained.results, shares.results, rtol=0, atol=1e-6)


def test_processes_train_the_weights_of_the_simulation_to_the_bit():
    program = partial(train, data_parallel.synchronous)
    np.testing.assert_array_equal(processes(program, 2), simulate(program, 2, alpha=0, beta=0).results)


def test_the_core_is_read_in_one_sitting():
    files = sorted(Path(mini.__file__).parent.glob("*.py"))
    assert len(files) == 8
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= 700
