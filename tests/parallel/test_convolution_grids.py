"""The model of grids counts the bytes that runs send, and finds the fastest grid of every layer."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from minidl import cluster, nn, parallel
from minidl import functional as F
from minidl.cluster import Communicator, Network, Node
from minidl.parallel import Hybrid
from minidl.parallel.convolution_grids import (
    LASSEN,
    ConvolutionGrid,
    Hardware,
    LayerShape,
    fastest_grids,
    grid_seconds,
    grid_words,
    layer_shapes,
    possible_grids,
)
from minidl.parallel.gradients.flat_vector import gradient
from minidl.parallel.tensor import layout_of, split_layers, vocabulary_cross_entropy
from tests.parallel.tensor.test_convolution import GRID
from tests.parallel.tensor.test_one_weird_trick import NarrowAlexNet
from tests.parallel.test_split_models import JOBS
from tests.tiers import exhaustively

FLOAT64 = 8


def test_layers_have_the_weights_and_shapes_of_the_model():
    layers = layer_shapes(partial(nn.models.ResNet, 50), (64, 3, 224, 224))
    assert len(layers) == 54
    norms = 2 * 26560  # weight and bias of each channel
    assert sum(layer.weights for layer in layers.values()) == 25_557_032 - norms
    previous = (64, 64, 56, 56)  # after the pooling
    for block in range(3):
        for conv in range(1, 4):
            layer = layers[f"layer1.{block}.conv{conv}"]
            assert layer.x == previous
            previous = layer.y


@pytest.mark.parametrize("replicas", [2, *exhaustively(3)])
def test_the_segmented_all_reduce_of_a_mesh_sends_the_bytes_of_the_formula(replicas: int):
    """Each of 4 ranks along "tp" has a shard of every weight, which the ranks along "dp" sum."""
    job = replace(JOBS["ResNet"], epochs=1, model=resnet)
    train, model = job.build_data().train, job.build_model()
    layers = layer_shapes(model, train.x.shape)
    others = sum(p.size for p in model.parameters()) - sum(layer.weights for layer in layers.values())

    def words_of_a_step(strategy: Hybrid, nodes: int) -> float:
        trace = parallel.train(job, strategy, nodes, on="simulation").trace
        return trace.ledger("dp")[0]["all_reduce"].nbytes / FLOAT64 / math.ceil(len(train.x) / job.batch_size)

    def formula(grid: ConvolutionGrid) -> float:
        of_norms = 2 * (grid.replicas - 1) / grid.replicas * others / (grid.channels * grid.filters)
        return sum(grid_words(layer, grid).weights for layer in layers.values()) + of_norms

    segmented = words_of_a_step(Hybrid(dp=replicas, tp=4, layout=GRID, algorithm="ring"), 4 * replicas)
    whole = words_of_a_step(Hybrid(dp=4 * replicas, algorithm="ring"), 4 * replicas)
    unsharded, more = layers["conv1"].weights, 100  # the bias of fc; the loss and what else a step counts
    assert 0 <= segmented - formula(ConvolutionGrid(samples=replicas, channels=2, filters=2)) < more < unsharded
    assert 0 <= whole - formula(ConvolutionGrid(samples=4 * replicas)) < more
    assert whole / segmented == pytest.approx((4 * replicas - 1) / (replicas - 1), rel=0.01)  # more than 4 times


def resnet() -> nn.Module:
    return nn.models.ResNet(8, in_channels=1).double()


@pytest.mark.parametrize("p", [2, 3])
def test_one_weird_trick_sends_the_bytes_of_the_formula_and_so_do_data_and_model_parallelism(p: int):
    """In a step: gradients are summed over the ranks where each has a term of them."""
    n = 6
    rng = np.random.default_rng(5)
    x, labels, model = rng.normal(size=(n, 3, 224, 224)), rng.integers(6, size=n), NarrowAlexNet().eval()
    layers = layer_shapes(model, x.shape)

    def sent(program: Any) -> float:
        run = cluster.launch(program, nodes=p, on="simulation", deadline=100)
        return sum(traffic.nbytes for traffic in run.trace.ledger()[0].values()) / FLOAT64

    def data_parallel(comm: Communicator) -> None:
        mine = copy.deepcopy(model)
        F.cross_entropy(mine(np.split(x, p)[comm.rank]), np.split(labels, p)[comm.rank]).backward()
        comm.all_reduce(gradient(list(mine.parameters())), algorithm="ring")

    def trick(comm: Communicator) -> None:
        mine = copy.deepcopy(model)
        split_layers(mine, comm, layout_of(mine, sample_slices=True))
        mine.classifier.train()  # so that each rank has the logits of its classes
        for layer in mine.modules():
            if isinstance(layer, nn.Dropout):
                layer.p = 0.0
        vocabulary_cross_entropy(mine(x), labels, comm).backward()
        comm.all_reduce(gradient([each for each in mine.parameters() if each.shard is None]), algorithm="ring")

    def loss_alone(comm: Communicator) -> None:
        vocabulary_cross_entropy(np.zeros((n, 6 // p)), labels, comm)

    def model_parallel(comm: Communicator) -> None:
        mine = copy.deepcopy(model)
        split_layers(mine, comm, layout_of(mine))
        F.cross_entropy(mine(x), labels).backward()

    def formula(grid_of: Any) -> float:
        return sum(sum(grid_words(layer, grid_of(name))) for name, layer in layers.items())

    by_samples, by_channels, by_filters = (
        ConvolutionGrid(**{extent: p}) for extent in ("samples", "channels", "filters")
    )
    turns = dict(zip(layers, [by_filters, by_channels] * 3, strict=True))
    of_the_trick = {"classifier.1": by_filters, "classifier.4": by_channels, "classifier.6": by_filters}
    row_bias = 2 * (p - 1) / p * 12  # of classifier.4, which every rank has whole
    rounding = 2 * (p - 1)  # chunks of a ring differ by one number
    assert sent(data_parallel) == pytest.approx(formula(lambda name: by_samples), abs=rounding)
    if p == 2:  # three ranks add up activations by an algorithm that sends more than a ring
        assert sent(model_parallel) == pytest.approx(formula(turns.__getitem__), abs=rounding)
    found = sent(trick) - sent(loss_alone) - row_bias
    assert found == pytest.approx(formula(lambda name: of_the_trick.get(name, by_samples)), abs=2 * rounding)


def test_for_alexnet_the_trick_sends_less_than_data_and_model_parallelism_and_is_what_the_model_chooses():
    layers, ranks = layer_shapes(nn.models.AlexNet, (1024, 3, 224, 224)), 8
    data = {name: ConvolutionGrid(samples=ranks) for name in layers}
    model = {name: ConvolutionGrid(**{("filters", "channels")[i % 2]: ranks}) for i, name in enumerate(layers)}
    trick = data | {name: grid for name, grid in model.items() if name.startswith("classifier")}
    words = [sum(sum(grid_words(layers[name], grid)) for name, grid in each.items()) for each in (data, model, trick)]
    assert words[2] < 0.4 * words[0] < 0.4 * words[1]
    chosen = fastest_grids(layers, ranks).grids
    assert {name: grid.replicas for name, grid in chosen.items() if name.startswith("cla")}["classifier.1"] == 1
    assert all(grid.replicas == ranks for name, grid in chosen.items() if name.startswith("features"))


SLOW = Hardware(Node(3e8, 5e8), near=Network(2e-5, 3e-9), far=Network(7e-5, 5e-9), per_node=2)


@pytest.mark.parametrize("ranks", [4, 6])
def test_the_fastest_grids_are_those_of_an_exhaustive_search(ranks: int):
    convolutions = nn.Conv2d(3, 12, 3), nn.Conv2d(12, 24, 5, stride=2, padding=2)
    model = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(24 * 25, 12))
    layers = layer_shapes(model, (6, 3, 12, 12))
    choices = [list(possible_grids(layer, ranks)) for layer in layers.values()]

    def seconds(grids: tuple[ConvolutionGrid, ...]) -> float:
        total = sum(grid_seconds(layer, grid, SLOW).total for layer, grid in zip(layers.values(), grids, strict=True))
        for layer, before, grid in zip(list(layers.values())[1:], grids, grids[1:], strict=False):
            if before.activations != grid.activations:
                pairs = zip(grid.activations, before.activations, strict=True)
                network = SLOW.network(SLOW.per_node, ranks)
                messages = math.prod(math.ceil(now / then) for now, then in pairs)
                total += 2 * (messages * network.alpha + 4 * math.prod(layer.x) / ranks * network.beta)
        return total

    found = fastest_grids(layers, ranks, SLOW)
    assert found.seconds == pytest.approx(min(map(seconds, product(*choices))), rel=1e-12)
    assert found.seconds == pytest.approx(seconds(tuple(found.grids.values())), rel=1e-12)
    assert len(set(found.grids.values())) > 1


def test_one_rank_only_computes_and_a_grid_divides_work_and_weights():
    layer = LayerShape((6, 12, 14, 14), (6, 24, 14, 14), (3, 3), (1, 1), 2592, 3_048_192, False)
    alone = grid_seconds(layer, ConvolutionGrid(), SLOW)
    assert alone.total == alone.compute == pytest.approx(3 * 2 * 3_048_192 / 3e8)
    for grid in (ConvolutionGrid(2, 1, 1, 3, 2), ConvolutionGrid(1, 7, 1, 1, 2)):
        assert grid_seconds(layer, grid, SLOW).compute == pytest.approx(alone.compute / grid.ranks)


def test_every_grid_that_fits_is_considered_once_and_none_that_does_not():
    layer = LayerShape((6, 12, 14, 14), (6, 24, 14, 14), (7, 3), (1, 1), 2592, 3_048_192, False)
    found = list(possible_grids(layer, 12))
    assert len(found) == len(set(found))
    everything = (ConvolutionGrid(*extents) for extents in product(range(1, 13), repeat=5) if math.prod(extents) == 12)
    assert set(found) == {
        grid
        for grid in everything
        if grid.samples <= 6 and grid.rows <= 2 and 12 % (grid.channels * grid.filters) == 0 and grid.columns <= 7
    }  # halos of 6 rows fit tiles of 7 rows, of 2 columns tiles of 2


SOURCE = {"ResNet-50": (1, 8192, 4, 1.71), "WRN-50-2": (2, 4096, 8, 2.35), "WRN-50-4": (4, 2048, 8, 4.12)}
MODEL = {"ResNet-50": (2.58, 2.74), "WRN-50-2": (3.28, 3.49), "WRN-50-4": (3.72, 3.78)}


@pytest.mark.parametrize("name", ["WRN-50-4", *exhaustively("ResNet-50", "WRN-50-2")])
def test_the_speed_of_the_second_sources_networks_is_the_one_that_the_page_states(name: str):
    width, batch, ways, _ = SOURCE[name]
    layers = layer_shapes(partial(nn.models.ResNet, 50, width=width), (batch, 3, 224, 224))
    before = fastest_grids(layers, 256, LASSEN, lambda grid: grid.samples == 256).seconds
    within = fastest_grids(layers, 256 * ways, LASSEN, lambda grid: grid.samples <= 256)
    free = fastest_grids(layers, 256 * ways)
    assert (before / within.seconds, before / free.seconds) == pytest.approx(MODEL[name], abs=0.005)
    last = within.grids["layer4.2.conv2"]
    assert last.channels * last.filters > 1 or name == "ResNet-50"
    assert within.grids["layer1.0.conv1"].rows > 1


def test_a_layer_that_no_grid_divides_is_named_and_so_is_one_that_the_model_does_not_know():
    layers = layer_shapes(nn.models.LeNet, (3, 1, 28, 28))
    with pytest.raises(ValueError, match=r"conv1 cannot be divided by 97 ranks: no allowed grid fits \(3, 6, 28, 28\)"):
        fastest_grids(layers, 97)
    with pytest.raises(ValueError, match=r"features.3 has groups=2: a grid divides convolutions of all channels"):
        layer_shapes(partial(nn.models.AlexNet, groups=2), (4, 3, 224, 224))
    with pytest.raises(ValueError, match="at least one layer expected, got none"):
        fastest_grids({}, 2)
    with pytest.raises(ValueError, match="fastest_grids: ranks must be at least 1, got 0"):
        fastest_grids(layers, 0)
