"""autocast against PyTorch's on the CPU: the same types, and results within the roundings of the type."""

from __future__ import annotations

import numpy as np
import pytest

import minidl
from minidl import Tensor, amp, kernels, nn, optim
from minidl import functional as F

torch = pytest.importorskip("torch", reason="parity tests need the extra `parity`")
TYPES = ["float16", "bfloat16"]
EPSILON = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def theirs(y):
    return y.detach().float().numpy()


OPERATIONS = {
    "product": lambda y, x, m: y,
    "relu": lambda y, x, m: m.relu(y),
    "gelu": lambda y, x, m: m.gelu(y),
    "softmax": lambda y, x, m: m.softmax(y, -1),
    "log_softmax": lambda y, x, m: m.log_softmax(y, -1),
    "a number times it": lambda y, x, m: y * 2.5,
    "a sum with float32": lambda y, x, m: y + x,
    "a sum of all": lambda y, x, m: y.sum(),
    "a mean": lambda y, x, m: y.mean(),
    "exp": lambda y, x, m: y.exp(),
    "attention": lambda y, x, m: m.scaled_dot_product_attention(x, x, x),
}


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("dtype", TYPES)
def test_results_have_pytorch_s_type_and_value(dtype, kernel):
    x, w = (np.random.default_rng(seed).standard_normal((8, 8)).astype(np.float32) for seed in (0, 1))
    for name, operation in OPERATIONS.items():
        with kernels.use(kernel), amp.autocast(dtype=dtype):
            mine = operation(Tensor(x) @ Tensor(w), Tensor(x), F)
        with torch.autocast("cpu", dtype=getattr(torch, dtype)):
            peer = operation(torch.tensor(x) @ torch.tensor(w), torch.tensor(x), torch.nn.functional)
        assert str(mine.dtype) == str(peer.dtype).removeprefix("torch."), name
        error = 4 * EPSILON[dtype] * max(1.0, float(peer.abs().max()))
        np.testing.assert_allclose(mine.data.astype(np.float32), theirs(peer), rtol=0, atol=error, err_msg=name)


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("dtype", TYPES)
def test_loss_and_gradients_of_a_convolutional_network_are_near_pytorch_s(dtype, kernel):
    def network(m):
        return m.Sequential(
            m.Conv2d(1, 4, 3),
            m.BatchNorm2d(4),
            m.ReLU(),
            m.MaxPool2d(2),
            m.Flatten(),
            m.Linear(36, 10),
            m.GELU(),
            m.LayerNorm(10),
        )

    minidl.manual_seed(0)
    ours, peer = network(nn), network(torch.nn)
    peer.load_state_dict({name: torch.from_numpy(array) for name, array in ours.state_dict().items()})
    x, y = np.random.default_rng(0).standard_normal((16, 1, 8, 8)).astype(np.float32), np.arange(16) % 10
    with kernels.use(kernel):
        with amp.autocast(dtype=dtype):
            loss = F.cross_entropy(ours(x), y)
        loss.backward()
    with torch.autocast("cpu", dtype=getattr(torch, dtype)):
        expected = torch.nn.functional.cross_entropy(peer(torch.tensor(x)), torch.tensor(y))
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=8 * EPSILON[dtype])
    for (name, mine), other in zip(ours.named_parameters(), peer.parameters(), strict=True):
        error = np.linalg.norm(mine.grad - other.grad.numpy()) / max(float(other.grad.norm()), 1e-2)
        assert error < 32 * EPSILON[dtype], name


def test_scaler_follows_pytorch_s_through_any_row_of_steps():
    w, v = Tensor([1.0], requires_grad=True), torch.ones(1, requires_grad=True)
    options = {"init_scale": 64.0, "growth_interval": 3, "growth_factor": 4.0, "backoff_factor": 0.25}
    ours, peer = amp.GradScaler(**options), torch.amp.GradScaler("cpu", **options)
    mine, other = optim.SGD([w], lr=0.1), torch.optim.SGD([v], lr=0.1)
    for gradient in np.random.default_rng(0).choice([0.5, -1.0, np.inf], 200, p=[0.45, 0.45, 0.1]):
        for scaler, optimizer, parameter in ((ours, mine, w), (peer, other, v)):
            optimizer.zero_grad()
            scaler.scale((parameter * float(gradient)).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
        assert ours.get_scale() == peer.get_scale()
        np.testing.assert_allclose(w.data, v.detach().numpy(), rtol=1e-6)
    assert ours.state_dict() == pytest.approx(peer.state_dict())
