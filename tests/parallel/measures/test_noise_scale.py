"""The noise scale: exact on a data set, and estimated without bias from two minibatch sizes."""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pytest

from minidl import cluster, data, nn, parallel, random
from minidl.parallel import Session
from minidl.parallel.measures import noise_scale
from minidl.parallel.measures.noise_scale import Noise
from tests.parallel.jobs import blobs, small_job, two_layers, weights


@pytest.fixture
def model() -> nn.Module:
    random.manual_seed(3)
    return two_layers()


def test_of_a_linear_model_it_is_the_variance_of_the_inputs():
    """Loss w.x has the gradient x: G is the mean of x, Sigma its covariance."""
    rng = np.random.default_rng(0)
    x = rng.normal(1.0, 2.0, size=(50, 4))
    model = nn.Linear(4, 1, bias=False).double()
    noise = noise_scale.exact(model, data.Dataset(x, np.zeros(50)), lambda outputs, targets: outputs.mean())
    assert noise.squared_norm == pytest.approx(float(x.mean(axis=0) @ x.mean(axis=0)))
    assert noise.trace == pytest.approx(float(x.var(axis=0).sum()))
    assert noise.scale == pytest.approx(noise.trace / noise.squared_norm)


def test_the_estimators_are_unbiased(model):
    """Over all ways to draw two small minibatches of one sample, with replacement, that make a large one."""
    dataset = blobs(7).train
    singles = [noise_scale.gradient(model, dataset, [i]) for i in range(7)]
    exact = noise_scale.exact(model, dataset)
    estimates = []
    for i, j in product(range(7), repeat=2):
        small = (np.square(singles[i]).sum() + np.square(singles[j]).sum()) / 2
        large = np.square((singles[i] + singles[j]) / 2).sum()
        estimates.append(noise_scale.from_two_sizes(1, small, 2, large))
    average = noise_scale.mean(estimates)
    assert average.squared_norm == pytest.approx(exact.squared_norm, rel=1e-10)
    assert average.trace == pytest.approx(exact.trace, rel=1e-10)


@pytest.mark.parametrize(("small", "large"), [(1, 2), (2, 5), (5, 6)])
def test_over_all_minibatches_of_different_samples_the_estimates_are_unbiased(model, small, large):
    dataset = blobs(6).train
    singles = np.array([noise_scale.gradient(model, dataset, [i]) for i in range(6)])
    exact = noise_scale.exact(model, dataset)

    def square(subset: tuple[int, ...]) -> float:
        return float(np.square(singles[list(subset)].mean(axis=0)).sum())

    average = noise_scale.mean(
        noise_scale.from_two_sizes(small, square(part), large, square(whole), population=6)
        for whole in combinations(range(6), large)
        for part in combinations(whole, small)
    )
    assert average.squared_norm == pytest.approx(exact.squared_norm, rel=1e-9)
    assert average.trace == pytest.approx(exact.trace, rel=1e-9)


def test_near_the_whole_training_set_the_scale_is_finite_and_right():
    """The gradient is small against the noise: the formula for draws with replacement puts its square below 0."""
    singles = np.random.default_rng(5).normal(0.0, 1.0, size=(40, 3))
    singles += 0.02 - singles.mean(axis=0)
    gradient = singles.mean(axis=0)
    exact = Noise(float(gradient @ gradient), float(singles.var(axis=0).sum()))
    parts = singles.reshape(4, 10, 3).mean(axis=1)
    small, large = float(np.square(parts).sum(axis=1).mean()), float(gradient @ gradient)
    assert noise_scale.from_two_sizes(10, small, 40, large).scale == float("inf")
    estimate = noise_scale.from_two_sizes(10, small, 40, large, population=40)
    assert estimate.squared_norm == pytest.approx(exact.squared_norm, rel=1e-12)
    assert 0.3 * exact.scale < estimate.scale < 3 * exact.scale  # one draw of four parts


def part_of_a_node(comm: cluster.Communicator, population: int | None = None) -> Noise:
    random.manual_seed(3)
    model, dataset = two_layers(), blobs(12).train
    mine = range(comm.rank, 12, comm.size)
    mean_gradient = noise_scale.gradient(model, dataset, list(mine))
    return noise_scale.over_nodes(comm, mean_gradient, 12 // comm.size, population)


def test_the_nodes_own_gradients_give_the_estimate(model):
    nodes = 3
    dataset = blobs(12).train
    parts = [noise_scale.gradient(model, dataset, range(node, 12, nodes)) for node in range(nodes)]
    small = float(np.mean([np.square(part).sum() for part in parts]))
    large = float(np.square(noise_scale.gradient(model, dataset, range(12))).sum())
    expected = noise_scale.from_two_sizes(12 // nodes, small, 12, large)
    for noise in cluster.launch(part_of_a_node, nodes=nodes, on="simulation").results:
        assert noise.squared_norm == pytest.approx(expected.squared_norm, rel=1e-9)
        assert noise.trace == pytest.approx(expected.trace, rel=1e-9)


@dataclass(frozen=True)
class RecordsNoise(parallel.Strategy):
    """Synchronous, with an estimate before each sum of the gradients."""

    def run(self, session: Session) -> None:
        for batch in session.batches():
            session.model.zero_grad()
            session.local_loss(batch).backward()
            mine = session.gradient()
            population = len(session.job.build_data().train)
            session.record("noise", noise_scale.over_nodes(session.comm, mine, len(batch.x), population))
            session.set_gradient(session.comm.all_reduce(mine * batch.weight))
            session.update()


def test_a_strategy_may_record_it_as_it_trains():
    job = small_job()
    truth, report = parallel.train(job, on="simulation"), parallel.train(job, RecordsNoise(), 4, "simulation")
    assert np.abs(weights(report) - weights(truth)).max() < 1e-10
    first, *others = report.recorded["noise"]
    assert len(first) == report.history[-1]["steps"]
    assert all(other == first for other in others)  # every node has the same estimates
    assert 0 < noise_scale.mean(first).scale < float("inf")


def test_sizes_and_data_without_an_estimate_are_refused(model):
    for small, large in ((8, 8), (8, 4), (0, 4)):
        with pytest.raises(ValueError, match=f"got small={small} and large={large}"):
            noise_scale.from_two_sizes(small, 1.0, large, 1.0)
    with pytest.raises(ValueError, match="8 different samples cannot come from a population of 7"):
        noise_scale.from_two_sizes(2, 1.0, 8, 1.0, population=7)
    x, y = blobs(6).train[np.arange(6)]
    with pytest.raises(ValueError, match="the data set has no samples"):
        noise_scale.exact(model, data.Dataset(x[:0], y[:0]))
    with pytest.raises(ValueError, match="one sample at least, got none"):
        noise_scale.gradient(model, blobs(6).train, [])
    with pytest.raises(cluster.ClusterError, match="the noise needs two nodes or more"):
        cluster.launch(part_of_a_node, nodes=1, on="simulation")
    with pytest.raises(ValueError, match="there is no estimate"):
        noise_scale.mean([])


def test_nodes_with_different_numbers_of_samples_are_refused_on_every_rank():
    def program(comm: cluster.Communicator) -> str:
        with pytest.raises(ValueError) as error:
            noise_scale.over_nodes(comm, np.ones(3), 3 - comm.rank)
        return str(error.value)

    sentences = cluster.launch(program, nodes=2, on="simulation").results
    assert [sentence.split(":")[0] for sentence in sentences] == [
        f"the nodes have different numbers of samples, {samples} on rank {rank} and 2.5 on average"
        for rank, samples in enumerate((3, 2))
    ]


def test_without_a_gradient_the_scale_is_infinite_and_of_one_that_is_no_number_none():
    assert Noise(0.0, 1.0).scale == Noise(-0.1, 1.0).scale == float("inf")
    assert np.isnan(Noise(float("nan"), 1.0).scale)
    assert np.isnan(Noise(0.0, float("nan")).scale)
    assert np.isnan(noise_scale.from_two_sizes(1, float("inf"), 2, float("inf")).scale)
