"""Backward in two halves: what other operations wait for, and later what only the weights need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, backward, kernels, manual_seed, nn, no_grad
from minidl import functional as F
from minidl.recomputation import tensors_in

rng = np.random.default_rng(0)


def images(channels: int, size: int) -> np.ndarray:
    return rng.normal(size=(2, channels, size, size))


def gpt() -> nn.Module:
    return nn.models.GPT(vocab_size=7, block_size=5, n_layer=2, n_head=2, n_embd=8)


TOKENS = rng.integers(0, 7, (2, 5))
MODELS: dict[str, tuple[Callable[[], nn.Module], np.ndarray]] = {
    "MLP": (lambda: nn.models.MLP(6, 5, 4, 3), rng.normal(size=(4, 6))),
    "LeNet": (lambda: nn.models.LeNet(), images(1, 28)),
    "ResNet": (lambda: nn.models.ResNet(8), images(3, 8)),
    "GPT": (gpt, TOKENS),
    "GPT, checkpointed": (lambda: nn.checkpointing(gpt(), 3), TOKENS),  # a tie of the first segment and the last
    "norms": (lambda: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2)), rng.normal(size=(3, 5, 3))),
}


def loss_of(make: Callable[[], nn.Module], x: np.ndarray) -> tuple[nn.Module, Tensor, Tensor | None]:
    manual_seed(0)
    model = make().double()
    leaf = None if x.dtype.kind == "i" else Tensor(x, requires_grad=True)
    return model, (model(x if leaf is None else leaf) ** 2).mean(), leaf


@pytest.mark.parametrize("name", MODELS)
def test_the_two_halves_are_backward_to_the_bit_and_in_flops(name: str):
    model, loss, leaf = loss_of(*MODELS[name])
    with kernels.counted() as whole:
        loss.backward()
    want = [None if p.grad is None else p.grad.copy() for p in model.parameters()]

    model, loss, again = loss_of(*MODELS[name])
    with kernels.counted() as of_inputs:
        rest = backward(loss, defer=True)
    if leaf is not None and again is not None:
        np.testing.assert_array_equal(again.grad, leaf.grad)
    assert rest is not None
    assert rest.nbytes > 0
    assert any(p.grad is None for p in model.parameters())
    with kernels.counted() as of_weights:
        rest.run()
    for parameter, gradient in zip(model.parameters(), want, strict=True):
        np.testing.assert_array_equal(parameter.grad, gradient)
    assert of_inputs.flops > 0 < of_weights.flops
    assert of_inputs.flops + of_weights.flops == whole.flops
    assert rest.nbytes == 0


def test_hooks_are_called_once_when_the_gradient_is_final():
    layer, called = nn.Linear(3, 3).double(), []
    layer.weight.register_post_accumulate_grad_hook(lambda weight: called.append(weight.grad.copy()))
    x = Tensor(rng.normal(size=(2, 3)), requires_grad=True)
    tied = layer(layer(x)).sum() + (layer.weight * 2.0).sum()  # the last use is not deferred
    rest = backward(tied, defer=True)
    assert called == []
    assert layer.weight.grad is None
    rest.run()
    assert len(called) == 1
    fused = nn.Linear(3, 3).double()
    fused.load_state_dict(layer.state_dict())
    (fused(fused(Tensor(x.numpy()))).sum() + (fused.weight * 2.0).sum()).backward()
    np.testing.assert_allclose(called[0], fused.weight.grad, rtol=1e-12)


def test_gradients_are_added_to_those_that_are_there_once():
    """Until then the input and the gradient of the output are kept."""
    layer, x = nn.Linear(2, 1, bias=False), Tensor([[1.0, 2.0]])
    layer(x).sum().backward()
    rest = backward(F.relu(layer(x) + 9.0).sum(), defer=True)
    assert rest.nbytes == 4 * (2 + 1)
    rest.run()
    assert layer.weight.grad.tolist() == [[2.0, 4.0]]
    with pytest.raises(RuntimeError, match="computed already: call it once for each backward"):
        rest.run()


def test_an_input_that_was_overwritten_meanwhile_is_an_error():
    layer, x = nn.Linear(2, 1), Tensor([[1.0, 2.0]])
    rest = backward(layer(x).sum(), defer=True)
    with no_grad():
        x.copy_([[3.0, 4.0]])
    with pytest.raises(RuntimeError, match="was overwritten in place"):
        rest.run()


LAYERS: dict[str, tuple[Callable[[], nn.Module], Any]] = {
    "Linear": (lambda: nn.Linear(4, 3), (5, 4)),
    "Linear without bias, on texts": (lambda: nn.Linear(4, 3, bias=False), (2, 5, 4)),
    "Conv2d": (lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1), (2, 3, 7, 6)),
    "Embedding": (lambda: nn.Embedding(7, 4), TOKENS),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3), (2, 3, 4, 4)),
    "BatchNorm1d in evaluation": (lambda: nn.BatchNorm1d(4).eval(), (5, 4)),
    "LayerNorm": (lambda: nn.LayerNorm(4), (5, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (5, 4, 3)),
    "LSTM": (lambda: nn.LSTM(4, 3), (5, 2, 4)),
    "MultiheadAttention": (lambda: SelfAttention(), (2, 5, 4)),
}
AT_ONCE = ("BatchNorm", "LayerNorm", "GroupNorm", "LSTM")
"""Layers whose operations compute all gradients at once: they leave nothing to W."""


class SelfAttention(nn.MultiheadAttention):
    def __init__(self) -> None:
        super().__init__(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x, x, x, need_weights=False)[0]


@pytest.mark.parametrize("needs", ["input and weights", "weights alone", "input alone"])
def test_the_flops_of_i_and_of_w_are_those_of_backward_for_every_layer(needs: str):
    for name, (make, given) in LAYERS.items():
        layer = make().double()
        x = given if isinstance(given, np.ndarray) else Tensor(rng.normal(size=given), requires_grad="input" in needs)
        layer.requires_grad_("weights" in needs)
        if not (whole := [out for out in tensors_in(layer(x)) if out.requires_grad]):
            continue  # nobody needs a gradient: an embedding that is frozen
        with kernels.counted() as both:
            backward(whole, [np.ones(out.shape) for out in whole])
        layer.zero_grad()
        if isinstance(x, Tensor):
            x.grad = None
        halves = [out for out in tensors_in(layer(x)) if out.requires_grad]
        with kernels.counted() as i:
            rest = backward(halves, [np.ones(out.shape) for out in halves], defer=True)
        assert rest is not None
        with kernels.counted() as w:
            rest.run()
        assert i.flops + w.flops == both.flops, name
        assert (w.flops > 0) == ("weights" in needs and not name.startswith(AT_ONCE)), name
