"""Layers over tiles of an image compute what one rank computes, and send the halo that the papers state, hidden."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from minidl import Tensor, cluster, nn, random
from minidl.cluster import Communicator
from minidl.parallel.spatial import SpatialConv2d, SpatialDropout, SpatialPool2d, Tile, gathered, halo_words
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

GRIDS = [(1, 8), (2, 4), (3, 1), *exhaustively(((2, 2),), ((1, 3),), ((4, 1),))]
CONVOLUTIONS = [
    {"kernel_size": 3, "padding": 1},
    {"kernel_size": (5, 3), "padding": (2, 1), "stride": (2, 1)},
    {"kernel_size": 3, "stride": 2, "dilation": 2, "padding": 1, "groups": 2},
    {"kernel_size": (4, 2), "padding": "same", "bias": False},
    {"kernel_size": 2, "stride": 3},
    {"kernel_size": 1, "stride": 2},
]
POOLINGS = [
    partial(nn.MaxPool2d, 3, 2, 1),
    partial(nn.MaxPool2d, 2, 1, dilation=2, ceil_mode=True),
    partial(nn.AvgPool2d, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    partial(nn.AvgPool2d, 2, divisor_override=3),
    partial(nn.AdaptiveAvgPool2d, (9, 11)),
    partial(nn.AdaptiveMaxPool2d, 10),
]


def assert_tiles_are_the_whole(
    layer: nn.Module, divided: Callable[..., nn.Module], grid: tuple[int, int], size=(25, 45)
) -> cluster.Run:
    """Each rank has its tile of the output and of x's gradient; the weights' gradients add up to the whole ones."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(3, 2, *size))
    whole = Tensor(x, requires_grad=True)
    y = layer(whole)
    g = rng.normal(size=y.shape)
    y.backward(g)
    out, of_x, of_weights = y.numpy(), whole.grad, [p.grad for p in layer.parameters()]

    def program(comm: Communicator) -> None:
        tile, mine = Tile(comm, grid), copy.deepcopy(layer)
        mine.zero_grad()
        inputs = Tensor(tile.cut(x).copy(), requires_grad=True)
        result = divided(mine, tile, size)(inputs)
        everything = gathered(result, tile, out.shape[2:])
        np.testing.assert_allclose(everything.numpy(), out, rtol=0, atol=1e-12)
        everything.backward(g)  # the same on every rank: each takes its tile
        np.testing.assert_allclose(inputs.grad, tile.cut(of_x), rtol=0, atol=1e-12)
        for parameter, expected in zip(mine.parameters(), of_weights, strict=True):
            np.testing.assert_allclose(comm.all_reduce(parameter.grad), expected, rtol=0, atol=1e-11)

    return cluster.launch(program, nodes=grid[0] * grid[1], on="simulation")


@pytest.mark.parametrize("settings", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_a_convolution_of_tiles_is_the_whole_one_forward_and_both_ways_backward(grid, settings):
    assert_tiles_are_the_whole(nn.Conv2d(2, 4, **settings).double(), SpatialConv2d, grid)


@pytest.mark.parametrize("make", POOLINGS, ids=lambda make: f"{make.func.__name__}{make.args}")
@pytest.mark.parametrize("grid", GRIDS[1:], ids=str)
def test_a_pooling_of_tiles_is_the_whole_one(grid, make):
    assert_tiles_are_the_whole(make(), SpatialPool2d, grid)


@pytest.mark.parametrize("kernel", [3, 5])
def test_a_halo_may_be_as_wide_as_a_slab(kernel):
    layer = nn.Conv2d(2, 4, kernel, padding=kernel // 2).double()
    assert_tiles_are_the_whole(layer, SpatialConv2d, (1, 8), size=(16, 16))


def test_windows_from_padding_to_padding_between_those_that_need_a_neighbour():
    """Some read nothing, before some that read the neighbour's pixels: the interior is not in one run."""
    layer = nn.Conv2d(2, 4, 3, padding=6, dilation=4).double()
    assert_tiles_are_the_whole(layer, SpatialConv2d, (2, 2), size=(6, 6))


def test_every_rank_drops_its_tile_of_the_mask_of_one_node():
    layer = nn.Dropout(0.4)
    x = np.random.default_rng(1).normal(size=(3, 2, 7, 9))

    def begin(layer: nn.Module) -> None:
        random.begin_forward(random.ForwardPass({layer: "drop"}, 3, 0, 0, 0, 0))

    begin(layer)
    whole = layer(x).numpy()
    random.begin_forward(None)

    def program(comm: Communicator) -> None:
        tile = Tile(comm, (2, 2))
        mine = SpatialDropout(layer, tile, (7, 9))
        begin(mine)
        np.testing.assert_array_equal(mine(tile.cut(x)).numpy(), tile.cut(whole))
        random.begin_forward(None)

    cluster.launch(program, nodes=4, on="simulation")


def sent(run: cluster.Run) -> list[int]:
    """Bytes that each rank has sent to its neighbours."""
    return [ledger["isend"].nbytes if "isend" in ledger else 0 for ledger in run.trace.ledger()]


def forward(layer: nn.Conv2d, grid: tuple[int, int], size: tuple[int, int], comm: Communicator) -> None:
    tile = Tile(comm, grid)
    SpatialConv2d(layer, tile, size)(tile.cut(np.zeros((3, 2, *size))))


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (5, 1), (1, 1), (7, 2), (4, 2), (2, 2)])
def test_an_interior_slab_receives_the_rows_of_the_formula(kernel, stride):
    size, layer = (56, 11), nn.Conv2d(2, 5, kernel, stride, padding=(kernel - 1) // 2).double()
    run = cluster.launch(partial(forward, layer, (4, 1), size), nodes=4, on="simulation")
    received = [ledger["irecv"].nbytes_received if "irecv" in ledger else 0 for ledger in run.trace.ledger()]
    words = halo_words(kernel, width=size[1], channels=2, samples=3, stride=stride)
    assert received[1:3] == [words * 8] * 2
    if stride == 1:
        assert words == 2 * (kernel // 2) * size[1] * 2 * 3
        assert received[0] == received[3] == words * 8 // 2


def test_a_tile_sends_its_corners_with_the_columns_and_only_rows_that_windows_read():
    layer = nn.Conv2d(2, 5, 3, padding=1).double()
    run = cluster.launch(partial(forward, layer, (3, 3), (9, 15)), nodes=9, on="simulation")
    inner = run.trace.ledger()[4]["isend"]
    assert (inner.messages, inner.nbytes) == (4, 8 * 3 * 2 * (2 * 5 + 2 * (3 + 2)))
    dilated = nn.Conv2d(2, 5, 2, stride=4, dilation=5, padding=2).double()  # reads rows 4 i - 2 and 4 i + 3
    run = cluster.launch(partial(forward, dilated, (4, 1), (32, 5)), nodes=4, on="simulation")
    assert sent(run) == [8 * 3 * 2 * 5 * rows for rows in (1, 1, 1, 0)]


@pytest.mark.parametrize(
    ("grid", "size", "both_ways"),
    [((4, 1), (64, 33), False), ((4, 1), (64, 33), True), ((1, 4), (33, 64), True), ((2, 2), (66, 66), False)],
)
def test_the_halo_is_hidden_behind_the_interior_and_its_gradient_behind_the_weights(grid, size, both_ways):
    """The virtual time is that of a network that takes no time, until the halo takes longer than the interior."""
    layer = nn.Conv2d(2, 8, 3, padding=1).double()

    def program(comm: Communicator) -> None:
        tile = Tile(comm, grid)
        x = Tensor(tile.cut(np.zeros((3, 2, *size))).copy(), requires_grad=both_ways)
        y = SpatialConv2d(layer, tile, size)(x)
        if both_ways:
            y.backward(np.zeros(y.shape))

    node = cluster.Node(1e9, 1e30)

    def seconds(network: cluster.Network | None) -> float:
        return cluster.launch(program, nodes=4, on=cluster.Simulation(network, node)).seconds

    computed = seconds(None)
    halo = 2 * 8 * 3 * 2 * 33  # bytes that an inner rank sends, one row after the other
    interior = computed * 14 / 16 / (3 if both_ways else 1)  # each gradient takes as many flops as the output
    assert seconds(cluster.Network(alpha=0, beta=0.9 * interior / halo)) == pytest.approx(computed, rel=1e-9)
    assert seconds(cluster.Network(alpha=0, beta=2 * interior / halo)) > computed + 0.8 * interior


@pytest.mark.parametrize(
    ("layer", "grid", "size", "sentence"),
    [
        (nn.Conv2d(1, 1, 11, padding=5), (4, 1), (12, 12), r"wider than a slab: along the height of 12 pixels, rank 0"),
        (nn.Conv2d(1, 1, 3), (1, 4), (9, 3), r"an image of width 3 cannot be divided by 4 ranks: use at most 3"),
        (nn.MaxPool2d(4), (1, 4), (9, 9), r"MaxPool2d: an output of width 2 cannot be divided by 4 ranks"),
        (nn.MaxPool2d(2, return_indices=True), (4, 1), (9, 9), r"no rank knows the positions"),
        (nn.Conv2d(1, 1, 3), (2, 1), (9, 9), r"a grid of 2 x 1 needs 2 ranks, comm has 4"),
    ],
)
def test_what_cannot_be_divided_is_refused_by_a_sentence(layer, grid, size, sentence):
    divided = SpatialConv2d if isinstance(layer, nn.Conv2d) else SpatialPool2d

    def program(comm: Communicator) -> None:
        divided(layer, Tile(comm, grid), size)

    with pytest.raises(cluster.RankFailed, match=sentence):
        cluster.launch(program, nodes=4, on="simulation")


def test_another_tile_is_refused():
    def program(comm: Communicator) -> None:
        SpatialConv2d(nn.Conv2d(1, 1, 3), Tile(comm, 2), (9, 9))(np.zeros((1, 1, 9, 9), np.float32))

    sentence = r"rank \(0, 0\) of .* \(2, 1\) has tiles \(n, c, 5, 9\) of images \(n, c, 9, 9\), got \(1, 1, 9, 9\)"
    with pytest.raises(cluster.RankFailed, match=sentence):
        cluster.launch(program, nodes=2, on="simulation")
