"""Sufficient factors: the gradient of a linear layer, rebuilt from what it is a sum of."""

from functools import partial

import numpy as np
import pytest

from minidl import cluster, data, nn, parallel
from minidl import functional as F
from minidl.parallel import SufficientFactors, Synchronous
from tests.parallel.jobs import blobs, small_job, weights


def one_layer(inputs: int, outputs: int, bias: bool = False) -> nn.Module:
    return nn.Linear(inputs, outputs, bias).double()


def wide(n: int, inputs: int, outputs: int) -> data.Splits:
    rng = np.random.default_rng(0)
    made = data.Dataset(rng.normal(size=(n, inputs)), np.arange(n) % outputs)
    return data.Splits(made, made)


def test_each_node_sends_its_pairs_to_all_others():
    nodes, k, n, m, steps = 5, 3, 20, 7, 2
    job = small_job(
        model=partial(one_layer, n, m), data=partial(wide, k * nodes * steps, n, m), batch_size=k * nodes, epochs=1
    )
    report = parallel.train(job, SufficientFactors(), nodes, "simulation")
    sent = [traffic["all_gather"].nbytes for traffic in report.trace.ledger()]
    assert sent == [steps * k * (nodes - 1) * (m + n) * 8] * nodes


def step_bytes(report: parallel.Report) -> int:
    return sum(
        traffic[name].nbytes
        for traffic in report.trace.ledger()
        for name in ("all_gather", "all_reduce")
        if name in traffic
    )


def one_linear() -> nn.Module:
    return nn.Linear(5, 3).double()


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_model_that_is_itself_a_linear_layer_trains_as_on_one_node(hybrid):
    truth = parallel.train(small_job(model=one_linear), on="simulation")
    report = parallel.train(small_job(model=one_linear), SufficientFactors(hybrid), 3, "simulation")
    assert np.abs(weights(report) - weights(truth)).max() < 1e-10
    assert list(report.checkpoint.model) == ["weight", "bias"]


@pytest.mark.parametrize(("samples", "by_factors"), [(10, True), (11, False)])
def test_each_layer_takes_what_sends_less(samples, by_factors):
    """Factors where the samples of a minibatch are fewer than 2 M N / (M + N), 10.37 for 20 x 7."""
    job = small_job(
        model=partial(one_layer, 20, 7), data=partial(wide, 40 * samples, 20, 7), batch_size=samples, epochs=1
    )
    hybrid = parallel.train(job, SufficientFactors(hybrid=True), 2, "simulation")
    factors = parallel.train(job, SufficientFactors(), 2, "simulation")
    ring = parallel.train(job, Synchronous(algorithm="ring"), 2, "simulation")
    assert ("all_gather" in hybrid.trace.ledger()[0]) == by_factors
    assert (step_bytes(factors) < step_bytes(ring)) == by_factors
    assert step_bytes(hybrid) <= min(step_bytes(factors), step_bytes(ring))


class Mixed(nn.Module):
    """Positions, a convolution-like reshape, a layer used twice, a frozen one, a tied one, one that is not used."""

    def __init__(self) -> None:
        self.first = nn.Linear(5, 6)
        self.unused = nn.Linear(4, 4)
        self.frozen = nn.Linear(6, 6).requires_grad_(False)
        self.twice = nn.Linear(3, 3, bias=False)
        self.tied, self.other = nn.Linear(6, 6), nn.Linear(6, 6)
        self.other.weight = self.tied.weight
        self.norm = nn.LayerNorm(6)
        self.last = nn.Linear(6, 3)
        self.double()

    def forward(self, x):
        x = self.frozen(self.first(x).tanh()).tanh()
        x = self.twice(self.twice(x.reshape(-1, 2, 3)).tanh()).reshape(-1, 6)  # two positions a sample
        return self.last(self.norm(self.other(self.tied(x).tanh())))


@pytest.mark.parametrize(("hybrid", "nodes"), [(False, 3), (True, 3), (False, 5)])
def test_positions_shared_frozen_and_unused_layers_train_as_on_one_node(hybrid, nodes):
    job = small_job(model=Mixed, data=partial(blobs, 34))  # the last minibatch has 2 samples
    truth, start = parallel.train(job, on="simulation"), job.build_model().state_dict()
    report = parallel.train(job, SufficientFactors(hybrid), nodes, "simulation")
    assert np.abs(weights(report) - weights(truth)).max() < 1e-10
    assert report.history[-1]["loss"] == pytest.approx(truth.history[-1]["loss"], rel=1e-10)
    assert len(set(report.digests)) == 1
    for name, array in report.checkpoint.model.items():
        assert (array == start[name]).all() == name.startswith(("unused", "frozen"))


class Outside(nn.Module):
    def __init__(self) -> None:
        self.layer = nn.Linear(5, 3)
        self.double()

    def forward(self, x):
        return self.layer(x) + F.linear(x, self.layer.weight)


def test_a_weight_that_is_used_outside_of_its_layer_is_an_error_and_not_a_wrong_gradient():
    with pytest.raises(cluster.ClusterError, match=r"uses the weight of a Linear layer .* outside of it"):
        parallel.train(small_job(model=Outside), SufficientFactors(), 2, "simulation")


def test_a_model_without_a_linear_layer_is_refused():
    job = small_job(model=lambda: nn.Sequential(nn.LayerNorm(5), nn.Tanh()).double())
    with pytest.raises(ValueError, match=r"SufficientFactors needs a model with an nn.Linear .* use Synchronous"):
        parallel.train(job, SufficientFactors(), 2)
