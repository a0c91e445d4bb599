"""nn.count says what a forward pass has, keeps and computes, and takes no memory for it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, kernels, nn
from minidl import functional as F
from minidl.kept_arrays import kept_bytes
from minidl.kernels import shapes
from minidl.nn.counts import without_contents
from minidl.tape import node_of
from minidl.tensor import backward

M = nn.models


class Everything(nn.Module):
    """Layers and operations that the models do not have."""

    def __init__(self) -> None:
        self.conv = nn.Conv2d(3, 6, (3, 2), stride=2, padding=1, dilation=(1, 2), groups=3)
        self.norm = nn.GroupNorm(2, 6)
        self.pool, self.act = nn.AvgPool2d(2), nn.SiLU()
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True)
        self.frozen = nn.Linear(10, 4).requires_grad_(False)

    def forward(self, x: Any) -> Tensor:
        maps = self.act(self.pool(F.max_pool2d(self.norm(self.conv(x)), 2, stride=1)))
        rows = maps.reshape(*maps.shape[:2], -1).transpose(1, 2).contiguous()
        mixed, _ = self.attention(rows, rows, rows)
        out, _ = self.lstm(F.cat([mixed[:, :1], F.softmax(mixed, -1)[:, 1:]], 1))
        best = F.clamp(self.frozen(out).exp().sqrt(), 0.1, 3.0)
        return F.where(best > 1.0, best, -best).mean(axis=1)


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...] | np.ndarray]] = {
    "LeNet": (lambda: M.LeNet(), (3, 1, 28, 28)),
    "ResNet-8": (lambda: M.ResNet(8), (3, 3, 19, 17)),
    "ResNet-50": (lambda: M.ResNet(50, 7), (1, 3, 33, 40)),
    "GPT": (lambda: M.GPT(65, 48, 2, 3, 24), np.arange(2 * 37).reshape(2, 37) % 65),
    "GPT with attention in blocks": (lambda: M.GPT(65, 1100, 1, 2, 6), np.arange(1100).reshape(1, 1100) % 65),
    "MLP, checkpointed": (lambda: nn.checkpointing(M.MLP(31, 48, 24, 48, 10), 2), (5, 31)),
    "everything": (Everything, (2, 3, 13, 18)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_model_counts_without_contents_as_it_does_with_numbers(name: str) -> None:
    make, x = CASES[name]
    real = np.random.default_rng(5).standard_normal(x).astype(np.float32) if isinstance(x, tuple) else x
    model = make()
    with kernels.use("numpy"), kernels.counted() as work:
        out = model(real)
    counts, built = nn.count(model, x), nn.count(make, x)
    assert counts.layers == built.layers
    assert counts.flops == work.flops > 0
    assert counts.parameters == sum(parameter.numel() for parameter in model.parameters())
    kept = kept_bytes([node_of(out)], [real, *model.parameters(), *model.buffers()])
    if name == "everything":  # numpy copies three transposed arrays to reshape them
        assert 0.9 * kept < counts.activation_bytes < kept
    else:
        assert counts.activation_bytes == kept


@pytest.mark.parametrize("name", ["LeNet", "ResNet-8", "GPT"])
def test_backward_too_has_the_flops_and_gradients_of_numbers(name: str) -> None:
    make, x = CASES[name]
    samples = [np.ones(x, np.float32), shapes.empty(x)] if isinstance(x, tuple) else [x, x]
    model = make()
    with kernels.counted() as work, kernels.use("numpy"):
        out = model(samples[0])
        backward([out], [np.ones_like(out.data)])
    expected = [None if each.grad is None else each.grad.shape for each in model.parameters()]
    with kernels.counted() as counted, without_contents(model):
        out = model(samples[1])
        backward([out], [shapes.empty(out.shape)])
        assert all(isinstance(each.grad, shapes.Hollow | None) for each in model.parameters())
        assert [None if each.grad is None else each.grad.shape for each in model.parameters()] == expected
    assert counted.flops == work.flops


PUBLISHED = {
    "AlexNet": (lambda: M.AlexNet(), 61_100_840, 0.71e9),
    "VGG-16": (lambda: M.VGG16(), 138_357_544, 15.47e9),
    "ResNet-50": (lambda: M.ResNet(50), 25_557_032, 4.09e9),
    "WideResNet-50-2": (lambda: M.ResNet(50, width=2), 68_883_240, 11.4e9),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_networks_for_imagenet_have_the_published_size_and_multiply_adds(name: str) -> None:
    make, parameters, multiply_adds = PUBLISHED[name]
    counts = nn.count(make, (1, 3, 224, 224))
    assert counts.parameters == parameters
    assert counts.multiply_adds == pytest.approx(multiply_adds, rel=0.01)
    if name == "VGG-16":
        assert round(counts.parameter_bytes / 2**20, 1) == 527.8


def test_gpt_3_is_counted_in_a_few_megabytes() -> None:
    tracemalloc.start()
    try:
        counts = nn.count(lambda: M.GPT(50257, 2048, 4, 96, 12288), np.zeros((1, 2048), np.int64))
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    block = next(layer for layer in counts.layers if layer.name == "transformer.h.1.mlp.c_fc")
    assert block.parameters == 4 * 12288**2 + 4 * 12288
    whole = counts.parameters + 92 * 12 * 12288**2 + 92 * 13 * 12288  # of the other 92 blocks
    assert whole == 174_604_259_328


def test_windows_of_thousands_of_images_are_counted_in_the_memory_of_a_few() -> None:
    tracemalloc.start()
    counts = nn.count(nn.MaxPool2d(3, 2, 1), (8192, 64, 113, 111))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counts.layers[0].shape == (8192, 64, 57, 56)
    assert peak < 1e6


@pytest.mark.parametrize("indices", [1, 2])
@pytest.mark.parametrize(
    "before", [(), (slice(None),), (...,), (slice(None), slice(1, 3)), (0,), (..., 0, slice(None))]
)
def test_an_array_without_contents_is_indexed_as_numpy_does(before: tuple[Any, ...], indices: int) -> None:
    key = (*before, *(np.array([[0], [2]]), np.array([1, 2, 0]))[:indices])
    assert shapes.empty((3, 5, 7, 6))[key].shape == np.zeros((3, 5, 7, 6))[key].shape


def test_work_and_parameters_of_a_layer_count_once_where_it_is_used_first() -> None:
    shared = nn.Linear(7, 7, bias=False)
    counts = nn.count(nn.Sequential(shared, nn.Tanh(), shared), (5, 7))
    assert [(layer.name, layer.parameters, layer.multiply_adds) for layer in counts.layers] == [
        ("0", 49, 2 * 5 * 49),
        ("1", 0, 0),
    ]


def test_parameters_of_a_layer_that_is_not_called_count_too() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            self.embed, self.aside = nn.Linear(6, 4, bias=False), nn.Linear(3, 5)

        def forward(self, x: Any) -> Tensor:
            return F.linear(x, self.embed.weight)

    counts = nn.count(Tied(), (2, 6))
    assert [(layer.name, layer.parameters, layer.multiply_adds) for layer in counts.layers] == [
        ("", 0, 2 * 24),
        ("embed", 24, 0),
        ("aside", 20, 0),
    ]


def test_a_counted_model_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5), nn.Dropout(0.3))
    before = {name: (id(value), value.copy()) for name, value in model.state_dict().items()}
    parameters = list(model.parameters())
    nn.count(model, (2, 3, 9, 9))
    with pytest.raises(ValueError, match="channels"):
        nn.count(model, (2, 4, 9, 9))
    assert all(one is other for one, other in zip(model.parameters(), parameters, strict=True))
    assert all((value == before[name][1]).all() for name, value in model.state_dict().items())
    assert "forward" not in vars(model[0])
    assert not isinstance(model(np.ones((2, 3, 9, 9), np.float32)).data, shapes.Hollow)


class Deciding(nn.Linear):
    def forward(self, x: Any) -> Tensor:
        y = super().forward(x)
        return y if y.sum().item() > 0 else y * 2


@pytest.mark.parametrize(
    ("model", "x", "error", "text"),
    [
        (3, (2, 4), TypeError, "a function that makes one, expected, not int"),
        (lambda: 3, (2, 4), ValueError, "one model must be made in the block and kept, it has none"),
        (nn.Linear(3, 2), (2, 4), ValueError, "linear: x has shape"),
        (nn.Linear(3, 2), (-2, 3), ValueError, "count: each length in the shape x must be at least 0, got -2"),
        (nn.Linear(3, 2), (2.5, 3), TypeError, "count: each length in the shape x"),
        (Deciding(3, 2), (5, 3), RuntimeError, "nothing may depend on the values"),
    ],
)
def test_what_cannot_be_counted_is_refused(model: Any, x: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        nn.count(model, x)
    assert kernels.counting.active.get() is None


def test_samples_may_be_a_shape_a_list_an_array_or_a_tensor_of_the_parameters_type() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh()).double()
    rows = np.full((4, 3), 0.7)
    found = [nn.count(model, x) for x in ((4, 3), rows, Tensor(rows))]
    assert len({repr(counts) for counts in found}) == 1
    assert found[0].activation_bytes == 4 * 2 * 8
    assert nn.count(model.float(), rows.tolist()).flops == found[0].flops
