"""Messages travel while backward goes on: seen in the trace, in the time, and in nothing else."""

from functools import partial

import numpy as np
import pytest

from benchmarks.reproductions import overlap as experiment
from minidl import cluster, compress, nn, parallel
from minidl.parallel import Serial, Synchronous
from tests.parallel.jobs import blobs, small_job, weights
from tests.parallel.test_strategies import Uneven
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("on", ["simulation", *exhaustively("processes")])
def test_buckets_travel_in_a_lane_of_their_own_while_backward_goes_on(on):
    network = cluster.Network(1e-6, 1e-9) if on == "simulation" else None
    job = experiment.timed_job(steps=1, layers=4, width=16, samples=2)
    events = parallel.train(job, experiment.Timed(1e-6, "ring", overlap=True), 2, on, network).trace.events
    backward = [e for e in events if e.rank == 0 and e.kind == "compute" and e.label == "backward" and e.end > e.start]
    beside = [e for e in events if e.rank == 0 and e.lane > 0 and e.operation == "all_reduce"]
    assert {e.operation for e in events if e.lane > 0} == {"all_reduce"}
    assert len({e.call for e in beside}) == 3  # of four buckets: the last one has nothing to hide behind
    assert min(e.start for e in beside) < max(e.end for e in backward)
    without = parallel.train(job, experiment.Timed(1e-6, "ring", overlap=False), 2, on, network).trace.events
    assert all(e.lane == 0 for e in without)


@pytest.mark.parametrize("network", [cluster.Network(1e-6, 1e-9), None], ids=["network", "none"])
def test_by_default_messages_travel_during_backward_where_there_is_a_network_to_hide(network):
    trace = parallel.train(small_job(epochs=1), Synchronous(bucket_mb=1e-6), 2, "simulation", network).trace
    assert any(event.lane > 0 for event in trace.events) == (network is not None)


@pytest.mark.parametrize(("bucket_layers", "overlap"), [(1, True), (3, True), (3, False)])
def test_a_simulated_step_takes_what_the_model_says(bucket_layers, overlap):
    network = experiment.network_of(1.0, alpha=30e-6)
    step = experiment.step_seconds(network, bucket_layers, overlap)
    assert step == pytest.approx(experiment.model_seconds(network, bucket_layers, overlap), rel=1e-9)


def test_reductions_beside_backward_take_the_core_from_it():
    """gamma: what is reduced while backward goes on makes that last longer by just so much."""
    gamma, network = 1e-9, experiment.network_of(1 / 2)
    network = cluster.Network(network.alpha, network.beta, gamma)
    step = experiment.step_seconds(network, 1, True)
    layers, nodes, chunk = experiment.LAYERS, experiment.NODES, experiment.LAYER_BYTES / experiment.NODES
    hidden = (layers - 1) * (nodes - 1) * chunk * gamma  # of all buckets but the last
    nbytes = experiment.LAYER_BYTES + 4 * layers
    last = cluster.cost.all_reduce("ring", nodes, nbytes, network.alpha, network.beta, gamma)
    compute = layers * (experiment.FORWARD + experiment.BACKWARD)
    assert step == pytest.approx(compute + hidden + last, rel=1e-9)


def test_overlap_changes_no_bit():
    job = small_job(model=Uneven, data=partial(blobs, 34))  # parameters without gradient, and an empty part
    with_overlap, without = (
        parallel.train(job, Synchronous(1e-4, "ordered", overlap=overlap), 3, on="simulation")
        for overlap in (True, False)
    )
    assert with_overlap.digests == without.digests
    assert [row["bytes"] for row in with_overlap.history] == [row["bytes"] for row in without.history]


class Branching(nn.Module):
    """Backward completes the branches in different orders, or not at all, depending on the samples of the node."""

    def __init__(self):
        self.branches = nn.ModuleList([nn.Linear(5, 3) for _ in range(4)])
        self.double()

    def forward(self, x):
        order = np.argsort(x[:, :4].sum(axis=0))[:3]
        return sum(self.branches[int(i)](x) for i in order)


@pytest.mark.parametrize(
    ("strategy", "on"),
    [
        (Synchronous(1e-6, "ordered", overlap=True), "simulation"),
        (Synchronous(1e-6, compressor=compress.TopK(1.0), overlap=True), "processes"),
    ],
    ids=["buckets", "compressor"],
)
def test_however_backward_runs_all_is_reduced_in_one_order(strategy, on):
    job = small_job(model=Branching)
    report = parallel.train(job, strategy, 3, on)
    truth = parallel.train(job, Serial(shards=3), on="simulation")
    assert len(set(report.digests)) == 1
    assert np.abs(weights(report) - weights(truth)).max() < 1e-12
