"""Global average pooling of tiles sums their means, instead of gathering the maps; what reads more gathers them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from minidl import Tensor, nn, parallel
from minidl.parallel import Hybrid
from minidl.parallel.spatial import division_of
from tests.parallel.spatial.test_division import assert_trains_as_one_node, job
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)


class Pooled(nn.Module):
    """A convolution, and a head of the model's own code, which has a global average pooling."""

    def __init__(self, head: Callable[[Pooled, Tensor], Tensor]) -> None:
        self.conv, self.pool, self.fc, self.head = nn.Conv2d(2, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Linear(4, 5), head
        self.double()

    def forward(self, x: Any) -> Tensor:
        return nn.run_stages(self.stages(), x)

    def stages(self) -> list[nn.Stage]:
        return [nn.Stage(self.conv, self.conv), nn.Stage(partial(self.head, self), self.pool, self.fc)]


def means(model: Pooled, maps: Tensor) -> Tensor:
    return model.fc(model.pool(maps).flatten(1))


def highest(model: Pooled, maps: Tensor) -> Tensor:
    return model.fc(model.pool(maps).flatten(1) + maps.max(axis=(2, 3)))


def squares(model: Pooled, maps: Tensor) -> Tensor:
    return model.fc(model.pool(maps * maps).flatten(1))


def halves(model: Pooled, maps: Tensor) -> Tensor:
    return model.fc(nn.AdaptiveAvgPool2d((2, 1))(maps).flatten(2).max(axis=2))


@pytest.mark.parametrize(
    ("head", "pools"), [(means, True), (highest, False), (squares, False), *exhaustively((halves, False))]
)
def test_a_head_gets_the_means_of_maps_if_it_reads_nothing_else_of_them(head, pools):
    shape = 2, 13, 11
    assert division_of(Pooled(head), shape, (2, 3)).pools == pools
    assert_trains_as_one_node(job(partial(Pooled, head), shape, epochs=1), Hybrid(dp=1, spatial=(2, 3)))


def test_a_number_is_summed_for_each_channel_and_sample_and_no_map_is_gathered():
    channels, samples, evaluated = 3, 11, 4
    layers = nn.Conv2d(2, channels, 1, bias=False), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 5)
    pooled = job(lambda: nn.Sequential(*layers).double(), (2, 7, 9), epochs=1, batch_size=samples, clip_norm=None)
    trace = parallel.train(pooled, Hybrid(dp=1, spatial=2), 2, "simulation").trace
    of_weight = 2 * channels + 1  # with the number of ranks that have a gradient of it
    for ledger in trace.ledger("spatial"):  # in an all-reduce of two ranks, each sends what there is
        assert ledger["all_reduce"].nbytes == 8 * (channels * (samples + evaluated) + of_weight)
        assert ledger["all_gather"].calls == 1  # of the digests of the weights
