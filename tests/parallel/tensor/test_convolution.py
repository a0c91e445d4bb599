"""A convolution divided over filters and channels is the whole one, with the collectives that Dryden's paper states."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, cluster, nn
from minidl.cluster import Communicator
from minidl.parallel.tensor import ColumnConv2d, GridConv2d, RowLinear, split_layers
from tests.parallel.tensor.test_hybrid import assert_trains_as_one_node, hybrid
from tests.parallel.test_split_models import JOBS

SHAPES = {
    "odd sizes": ((3, 12, 7, 9), nn.Conv2d(12, 24, (3, 2), stride=2, padding=1)),
    "dilation": ((5, 24, 9, 11), nn.Conv2d(24, 12, 3, padding="same", dilation=(1, 2), bias=False)),
    "one pixel": ((2, 12, 5, 3), nn.Conv2d(12, 12, 1, stride=(1, 3))),
}
STATIONARY = {"x": (3, 3), "y": (4, 1), "w": (6, 2), "w, wide": (6, 3), "alone": (1, 1)}
COLLECTIVES = {"x": ("reduce_scatter", "all_gather"), "y": ("all_gather", "reduce_scatter")}


def of_layer(layer: nn.Module, x: Any, g: Any) -> dict[str, Any]:
    inputs = Tensor(x, requires_grad=True)
    y = layer(inputs)
    y.backward(g)
    return {"y": y.numpy(), "x": inputs.grad, **{name: each.grad for name, each in layer.named_parameters()}}


def forward_and_backward(comm: Communicator, layer: nn.Conv2d, channels: int, x: Any, g: Any) -> None:
    whole = of_layer(layer, x, g)
    divided = GridConv2d(copy.deepcopy(layer).requires_grad_(), comm, channels)
    shards = {name: each.shard for name, each in divided.named_parameters()}
    x, g = (np.split(each, comm.size, 1)[comm.rank] for each in (x, g))
    for name, found in of_layer(divided, x, g).items():
        expected = shards[name].cut(whole[name]) if name in shards else np.split(whole[name], comm.size, 1)[comm.rank]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stationary", STATIONARY)
def test_stationary_x_y_and_w_are_the_whole_convolution_with_the_collectives_and_bytes_of_the_paper(shape, stationary):
    (p, channels), (size, layer) = STATIONARY[stationary], SHAPES[shape]
    rng, layer = np.random.default_rng(3), copy.deepcopy(layer).double()
    x = rng.normal(size=size)
    g = rng.normal(size=layer(x).shape)
    run = cluster.launch(forward_and_backward, (layer, channels, x, g), nodes=p, on=cluster.Simulation(), deadline=60)
    filters, itemsize = p // channels, 8
    sent = {"filters": x.size // p * (filters - 1) * itemsize, "channels": g.size // p * (channels - 1) * itemsize}
    for rank in range(p):
        for axis, nbytes in sent.items():
            ledger = run.trace.ledger(axis)[rank] if nbytes else {}
            assert {name: (traffic.calls, traffic.nbytes) for name, traffic in ledger.items()} == (
                {"all_gather": (1, nbytes), "reduce_scatter": (1, nbytes)} if nbytes else {}
            )
    if stationary in COLLECTIVES:
        names = [
            event.operation for event in run.trace.events if event.rank == 0 and event.operation in COLLECTIVES["x"]
        ]
        assert tuple(dict.fromkeys(names)) == COLLECTIVES[stationary]


def test_processes_divide_a_convolution_as_the_simulation_does():
    rng, (size, layer) = np.random.default_rng(4), SHAPES["odd sizes"]
    x, layer = rng.normal(size=size), copy.deepcopy(layer).double()
    g = rng.normal(size=layer(x).shape)
    cluster.launch(forward_and_backward, (layer, 2, x, g), nodes=4, on="processes", deadline=150)


GRID = {
    "conv1": ColumnConv2d,
    "layer*.conv?": partial(GridConv2d, channels=2),
    "layer*.downsample.0": GridConv2d,
    "fc": RowLinear,
}


def test_a_resnet_whose_activations_are_divided_by_channels_throughout_trains_as_one_node_and_its_checkpoint_is_whole():
    job = JOBS["ResNet"]
    report = assert_trains_as_one_node(job, hybrid(1, 1, 4, layout=GRID))
    model = job.build_model()
    assert {name: array.shape for name, array in report.checkpoint.model.items()} == {
        name: tensor.shape for name, tensor in model.state_dict().items()
    }
    assert "all_reduce" not in report.trace.ledger("channels")[0]


@pytest.mark.parametrize(
    ("layer", "channels", "message"),
    [
        (
            nn.Conv2d(8, 10, 3),
            2,
            r"0 cannot be divided by 4 ranks: .* dimension 0 of shape \(10, 8, 3, 3\) must be a mul",
        ),
        (
            nn.Conv2d(6, 8, 3),
            2,
            r"0 cannot be divided by 4 ranks: .* dimension 1 of shape \(8, 6, 3, 3\) must be a mult",
        ),
        (nn.Conv2d(8, 8, 3), 3, r"0 cannot be divided by 4 ranks: GridShard: channels must divide the 4 ranks, got 3"),
        (nn.Conv2d(8, 8, 3, groups=2), 2, r"0 cannot be divided by 4 ranks: its groups=2 read channels of their own"),
        (nn.Linear(8, 8), 2, r"0 cannot be divided by 4 ranks: GridConv2d divides a layer of type Conv2d, got Linear"),
    ],
)
def test_what_a_grid_cannot_divide_is_refused_by_name(layer, channels, message):
    def program(comm: Communicator) -> None:
        with pytest.raises(ValueError, match=message):
            split_layers(nn.Sequential(layer), comm, {"0": partial(GridConv2d, channels=channels)})

    cluster.launch(program, nodes=4, on="simulation", deadline=60)


def test_an_input_that_is_no_share_of_the_channels_is_refused_with_both_layers_that_give_one():
    def program(comm: Communicator) -> None:
        with pytest.raises(
            ValueError,
            match=r"2 features of axis -3, .* \(3, 8, 5, 5\): divide the layer before it by ColumnConv2d or Grid",
        ):
            GridConv2d(nn.Conv2d(8, 4, 3), comm)(np.ones((3, 8, 5, 5), np.float32))

    cluster.launch(program, nodes=4, on="simulation", deadline=60)
