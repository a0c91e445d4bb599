"""Gradients of layers on tiles are summed over tiles and replicas at once, while backward goes on."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from minidl import cluster, nn, optim, parallel
from minidl.cluster import cost
from minidl.data import Dataset, Splits
from minidl.parallel import Hybrid, Job
from tests.parallel.spatial import test_division as tiles
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

CHANNELS, LAYERS, CLASSES, BATCHES = 12, 3, 5, 3
LAYER, HEAD = 8 * CHANNELS**2, 8 * CHANNELS * CLASSES  # bytes of a layer's weights
ALPHA, BETA = 3e-6, 1.1e-9


def trained(strategy: Hybrid, nodes: int) -> parallel.Report:
    """Convolutions of one pixel, which exchange no halo. A node sums a layer sooner than backward computes the next."""

    def model() -> nn.Module:
        layers = [nn.Conv2d(CHANNELS, CHANNELS, 1, bias=False) for _ in range(LAYERS)]
        head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(CHANNELS, CLASSES, bias=False)
        return nn.Sequential(*layers, *head).double()

    rng, count = np.random.default_rng(7), 4 * BATCHES
    train, test = (Dataset(rng.normal(size=(n, CHANNELS, 13, 10)), np.arange(n) % CLASSES) for n in (count, 4))
    job = Job(model, Splits(train, test), partial(optim.SGD, lr=0.1), batch_size=4, epochs=1)
    node = cluster.Node(flops_per_s=2e7, bytes_per_s=1e12)
    return parallel.train(job, strategy, nodes, cluster.Simulation(cluster.Network(ALPHA, BETA), node))


@pytest.mark.parametrize(("dp", "spatial"), [(1, 3), (2, (1, 2))])
def test_sums_along_dp_and_spatial_take_no_time_but_the_last_and_are_as_many_bytes(dp, spatial):
    strategy = partial(Hybrid, dp=dp, spatial=spatial, bucket_mb=1e-6, algorithm="ring")
    nodes = dp * np.prod(spatial)
    hidden, exposed = (trained(strategy(overlap=overlap), nodes) for overlap in (True, False))
    assert hidden.trace.ledger() == exposed.trace.ledger()
    layer, head = (cost.all_reduce("ring", n, nbytes, ALPHA, BETA) for n, nbytes in ((nodes, LAYER), (dp, HEAD)))
    saved = BATCHES * ((LAYERS - 1) * layer + head)
    assert exposed.seconds - hidden.seconds == pytest.approx(saved, rel=1e-9)


def test_the_head_s_gradients_are_summed_first_and_over_the_replicas_only():
    trace = trained(Hybrid(dp=2, spatial=2, bucket_mb=1e-6, overlap=True, algorithm="ring"), 4).trace
    hidden = {(e.call, e.axis) for e in trace.events if e.rank == 0 and e.lane > 0 and e.operation == "all_reduce"}
    assert [axis for _, axis in sorted(hidden)] == BATCHES * ["dp", *["dp,spatial"] * (LAYERS - 1)]  # the last is not
    counts = LAYERS + 1  # of nodes that have a gradient, for each parameter: they travel with the last sum
    for axis, ranks, nbytes in (("dp", 2, HEAD), ("dp,spatial", 4, LAYERS * LAYER + 8 * counts)):
        sent = [ledger["all_reduce"].nbytes for ledger in trace.ledger(axis)]
        assert sum(sent) == BATCHES * 2 * (ranks - 1) * nbytes * 4 / ranks


@pytest.mark.parametrize("strategy", [Hybrid(dp=2, spatial=2), *exhaustively(
    Hybrid(dp=2, spatial=2, pp=2, micro_batches=2, schedule="zb-h1"),
    Hybrid(dp=2, spatial="1x2", micro_batches=2, recompute=True),
)], ids=str)  # fmt: skip
def test_a_replica_without_samples_sums_gradients_of_tiles_in_the_order_of_the_others(strategy):
    shape = 3, 19, 21
    job = tiles.job(tiles.resnet, shape, data=partial(tiles.images, shape, 9), epochs=1)  # the last minibatch has one
    tiles.assert_trains_as_one_node(job, tiles.replace(strategy, overlap=True, bucket_mb=1e-2))
