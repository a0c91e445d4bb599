"""autocast: 2 bytes a number between the operations, and what loss scaling is for."""

from __future__ import annotations

import gc
import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import minidl
from minidl import Tensor, amp, data, kernels, nn, optim
from minidl import functional as F

TYPES = ["float16", "bfloat16"]
EPSILON = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def mlp(width: int, depth: int) -> nn.Sequential:
    minidl.manual_seed(0)
    return nn.Sequential(*(layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.GELU())))


# ---- types and values ----


@pytest.mark.parametrize("dtype", TYPES)
def test_losses_are_computed_in_float32(dtype: str) -> None:
    """In 16 bits a loss times a GradScaler's 65,536 would be inf."""
    model = mlp(4, 1)
    with amp.autocast(dtype=dtype):
        out = model(np.ones((3, 4), np.float32))
        assert str(out.dtype) == dtype
        losses = [
            F.mse_loss(out, out.detach()),
            F.l1_loss(out, out.detach()),
            F.binary_cross_entropy_with_logits(out, out.data > 0),
            F.nll_loss(F.log_softmax(out), [0, 1, 2]),
            F.cross_entropy(out, [0, 1, 2]),
        ]
    assert {str(loss.dtype) for loss in losses} == {"float32"}
    losses[2].backward()
    assert model[0].weight.grad.dtype == np.float32
    assert model[0].weight.grad.any()


def test_a_wrong_type_within_autocast_is_answered_with_a_type_that_numpy_has() -> None:
    for dtype, wrong in itertools.product(TYPES, (np.ones((3, 4)), np.ones((3, 4), np.int64))):
        for product in (lambda x: nn.Linear(4, 2)(x), lambda x: Tensor(x) @ np.ones((4, 2), np.float32)):
            with amp.autocast(dtype=dtype), pytest.raises(TypeError, match=r"give (x|a)\.astype\(np\.float32\)"):
                product(wrong)
    with pytest.raises(TypeError, match=r"give a\.astype\('bfloat16'\)"):
        Tensor(np.ones((2, 3), np.int64)) @ np.ones((3, 2), bfloat16)


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("dtype", TYPES)
def test_activations_have_16_bits_and_weights_and_their_gradients_32(dtype: str, kernel: str) -> None:
    seen: list[Any] = []

    class Watch(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            seen.append(str(x.dtype))
            return x

    layers = [nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(18, 4)]
    model = nn.Sequential(*(module for layer in layers for module in (layer, Watch())))
    with kernels.use(kernel):
        with amp.autocast(dtype=dtype):
            loss = F.cross_entropy(model(np.ones((5, 1, 8, 8), np.float32)), np.zeros(5, int))
        loss.backward()
    assert seen == [dtype] * 6
    assert loss.dtype == np.float32
    assert {str(p.dtype) for p in model.parameters()} == {str(p.grad.dtype) for p in model.parameters()} == {"float32"}
    assert {str(buffer.dtype) for buffer in model.buffers() if buffer.ndim} == {"float32"}


def test_autocast_is_over_after_the_block_and_can_be_nested_and_switched_off() -> None:
    layer, x = nn.Linear(3, 2), np.ones((1, 3), np.float32)
    cast = amp.autocast(dtype="float16")
    with cast:
        assert layer(x).dtype == np.float16
        with amp.autocast(enabled=False):
            assert layer(x).dtype == np.float32
        with cast:
            assert layer(x).dtype == np.float16
        assert layer(x).dtype == np.float16
    assert layer(x).dtype == np.float32
    assert cast(layer)(x).dtype == np.float16


def test_float64_and_integers_are_not_converted() -> None:
    with amp.autocast(dtype="float16"):
        assert nn.Linear(3, 2).double()(np.ones((1, 3))).dtype == np.float64
        with pytest.raises(TypeError, match="x is int64, weight is float16"):
            nn.Linear(3, 2)(np.ones((1, 3), int))


def test_other_types_and_devices_are_refused() -> None:
    with pytest.raises(ValueError, match="dtype 'float16' or 'bfloat16' expected, got 'float32'"):
        amp.autocast(dtype="float32")
    with pytest.raises(ValueError, match="the first argument is the device, 'cpu', not 'float16': pass dtype by name"):
        amp.autocast("float16")


# ---- memory ----


def live_bytes_of_a_forward_pass(model: nn.Module, x: np.ndarray, dtype: str | None) -> int:
    """What lives between forward and backward, on top of the model and its input."""
    gc.collect()
    tracemalloc.start()
    with amp.autocast(dtype=dtype or "float16", enabled=dtype is not None):
        out = model(x)
    live, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert out.size
    return live


@pytest.mark.parametrize("dtype", TYPES)
def test_the_activations_of_a_network_take_half_the_memory(dtype: str) -> None:
    """6 layers of 64 features for 2,000 samples: 2 arrays a layer; autocast adds 16-bit copies of x and the weights."""
    model, x = mlp(64, 6), np.ones((2000, 64), np.float32)
    with kernels.use("numpy"):
        model(x)
        plain, half = (live_bytes_of_a_forward_pass(model, x, each) for each in (None, dtype))
    activation, copies = 2000 * 64, (2000 * 64 + 6 * 64 * 65) * 2
    assert plain == pytest.approx(12 * 4 * activation, rel=0.02)
    assert half == pytest.approx(12 * 2 * activation + copies, rel=0.02)


# ---- loss scaling ----


def small_gradient(scale: float, dtype: str) -> float:
    """The gradient of a weight through a product whose gradient is 2e-8, after division by the scale."""
    w = Tensor(np.ones((1, 1), np.float32), requires_grad=True)
    with amp.autocast(dtype=dtype):
        y = Tensor(np.ones((1, 1), np.float32)) @ w
    (y * Tensor(np.full((1, 1), 2e-8, np.float32)) * scale).sum().backward()
    return float(w.grad[0, 0] / scale)


def test_gradients_below_3e_8_vanish_in_float16_but_not_with_a_scaled_loss_or_in_bfloat16() -> None:
    assert small_gradient(1.0, "float16") == 0.0
    assert small_gradient(2.0**16, "float16") == pytest.approx(2e-8, rel=2**-10)
    assert small_gradient(1.0, "bfloat16") == pytest.approx(2e-8, rel=2**-8)


def trained(dtype: str | None, scaler: amp.GradScaler, steps: int = 150, shrink: float = 1.0) -> float:
    """The accuracy of an MLP on digits; `shrink` makes the loss and with it all gradients smaller, and lr larger."""
    train, test = data.digits()
    minidl.manual_seed(0)
    model = nn.models.MLP(64, 32, 10)
    optimizer = optim.SGD(model.parameters(), lr=0.5 / shrink)
    loader = data.DataLoader(train, 64, shuffle=True)
    done = 0
    while done < steps:
        for x, y in loader:
            optimizer.zero_grad()
            with amp.autocast(dtype=dtype or "float16", enabled=dtype is not None):
                loss = F.cross_entropy(model(Tensor(x)), y) * shrink
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            done += 1
    return float((model(Tensor(test.x)).data.argmax(axis=1) == test.y).mean())


def test_training_in_float16_with_a_scaler_reads_digits_as_well_as_float32() -> None:
    """Also where its factor is far too large in the beginning."""
    plain = trained(None, amp.GradScaler(enabled=False))
    assert plain > 0.9
    scaler = amp.GradScaler(init_scale=2.0**40)
    assert trained("float16", scaler, steps=180) > plain - 0.04
    assert scaler.get_scale() < 2.0**30


def test_training_on_small_gradients_fails_in_float16_without_a_scaler_and_works_with_it_or_in_bfloat16() -> None:
    """With gradients 2^20 times as small (1e-9 to 1e-7) float16 keeps hardly any; a factor of 2^20 brings them back."""
    off, shrink = amp.GradScaler(enabled=False), 2.0**-20
    assert trained("float16", off, shrink=shrink) < 0.5
    assert trained("float16", amp.GradScaler(init_scale=2.0**20), shrink=shrink) > 0.9
    assert trained("bfloat16", off, shrink=shrink) > 0.9
