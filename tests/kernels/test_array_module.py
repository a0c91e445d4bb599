"""All of minidl runs on an array module that is not numpy's: no call bypasses the array's own module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, functional, grad, kernels, manual_seed, nn, no_grad, optim
from minidl import functional as F
from tests.functional.cases import CASES, Case, three_of_each_operation
from tests.kernels import stand_in
from tests.together import naming


@pytest.fixture(autouse=True)
def cupy() -> Iterator[Any]:
    with stand_in.installed() as module:
        yield module


# ---- the stand-in is as strict as CuPy ----

FORBIDDEN: dict[str, Callable[[Any, Any], Any]] = {
    "numpy.asarray": lambda cupy, x: np.asarray(x),
    "array + numpy's": lambda cupy, x: x + np.ones(3),
    "numpy's + array": lambda cupy, x: np.ones(3) + x,
    "array + list": lambda cupy, x: x.__add__([1.0, 2.0, 3.0]),
    "exp of numpy's": lambda cupy, x: cupy.exp(np.ones(3)),
    "maximum with numpy's": lambda cupy, x: cupy.maximum(x, np.ones(3)),
    "numpy's written into array": lambda cupy, x: x.__setitem__(0, np.ones(1)),
}


def test_the_stand_in_refuses_what_cupy_refuses(cupy: Any) -> None:
    """With --gpu: CuPy refuses it."""
    for name, mixture in FORBIDDEN.items():
        with naming(name), pytest.raises((TypeError, ValueError)):  # CuPy 14: ValueError where a numpy array is written
            mixture(cupy, cupy.asarray(np.ones(3)))


def test_the_stand_in_refuses_what_numpy_would_hand_over_to_cupy() -> None:
    """np.exp(x) is CuPy's exp by numpy's protocols; minidl calls the array's module by name, which a reader sees."""
    x = stand_in.make_module().asarray(np.ones(3))
    for mixture in (lambda: np.exp(x), lambda: np.where(x, x, x), lambda: np.float64(2) * x):
        with pytest.raises(TypeError):
            mixture()


def test_a_result_is_an_array_of_the_module_and_an_index_gives_a_view(cupy: Any) -> None:
    x = cupy.asarray(np.ones(3))
    assert isinstance(x.sum(), cupy.ndarray)
    assert x.sum().shape == ()
    assert isinstance(x * np.float64(2), cupy.ndarray)
    assert x[0].base is not None
    x[0][...] = 5.0
    assert x.get()[0] == 5.0


# ---- every operation ----


def run(case: Case, name: str, dtype: str) -> tuple[type, list[np.ndarray]]:
    with kernels.use(name):
        manual_seed(0)
        tensors = [Tensor(a, requires_grad=d) for a, d in zip(case.arrays(dtype), case.differentiable, strict=True)]
        out = case.function(functional, *tensors)
        out.backward(np.random.default_rng(1).standard_normal(out.shape))
        arrays = [out.data, *(tensor.grad for tensor in tensors if tensor.requires_grad)]
        return type(out.data), [array if isinstance(array, np.ndarray) else array.get() for array in arrays]


@pytest.mark.parametrize(
    ("dtype", "cases"),
    [
        pytest.param("float32", three_of_each_operation, id="three of each"),
        pytest.param("float64", lambda: CASES, id="all", marks=pytest.mark.exhaustive),
    ],
)
def test_an_operation_gives_numpys_numbers(dtype: str, cases: Callable[[], list[Case]], cupy: Any) -> None:
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    for case in cases():
        with naming(case):
            kind, found = run(case, "cupy", dtype)
            assert kind is cupy.ndarray
            for mine, expected in zip(found, run(case, "numpy", dtype)[1], strict=True):
                assert mine.dtype == expected.dtype == dtype
                np.testing.assert_allclose(mine, expected, rtol=tolerance, atol=tolerance)


# ---- the tape ----


def test_backward_hooks_grad_and_accumulation(cupy: Any) -> None:
    with kernels.use("cupy"):
        x, seen = Tensor([1.0, 2.0], requires_grad=True), []
        x.register_post_accumulate_grad_hook(lambda tensor: seen.append(type(tensor.grad)))
        for _ in range(2):
            (x * x).sum().backward()
        assert seen == [cupy.ndarray] * 2
        np.testing.assert_array_equal(x.grad.get(), [4.0, 8.0])
        (g,) = grad((x * x).sum(), x)
        assert type(g) is cupy.ndarray
        scalar = Tensor(3.0, requires_grad=True)
        (scalar * scalar).backward(2.0)
        assert scalar.grad.item() == 12.0
        assert type(scalar.grad) is cupy.ndarray
        a, b = Tensor([1.0], requires_grad=True), Tensor([1.0], requires_grad=True)
        (a + b).backward()
        a.grad[...] = 7.0
        assert b.grad.item() == 1.0


def test_conversions_and_writes_in_place() -> None:
    with kernels.use("cupy"):
        x = Tensor(np.arange(4.0), requires_grad=True)
        assert type(x.numpy()) is np.ndarray
        assert "Tensor([0., 1., 2., 3.], float64, requires_grad=True)" in repr(x)
        assert x[1].item() == 1.0
        assert float(x[2]) == 2.0
        out = (x * x).sum()
        with no_grad():
            x.reshape(2, 2)[0].copy_(np.array([5.0, 6.0]))
        np.testing.assert_array_equal(x.numpy(), [5.0, 6.0, 2.0, 3.0])
        with pytest.raises(RuntimeError, match="overwritten in place"):
            out.backward()
        x.detach().copy_(0.0)
        np.testing.assert_array_equal(x.numpy(), np.zeros(4))


# ---- layers, optimizers and a training step ----


def every_layer() -> nn.Module:
    """For images of 1 x 8 x 8."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False),  # before batch norm a bias has no gradient but rounding
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        *(nn.Conv2d(4, 4, 3, stride=2, bias=False), nn.Tanh(), nn.AvgPool2d(1), nn.Flatten()),
        *(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.2), nn.Linear(8, 3)),
    )


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3, nesterov=True),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01),
    "LARS": lambda p: optim.LARS(p, lr=0.01, momentum=0.9),
    "LAMB": lambda p: optim.LAMB(p, lr=0.01),
}


def train(name: str, dtype: str, make: Callable[[Any], Any]) -> list[Any]:
    with kernels.use(name):
        manual_seed(0)
        network = every_layer().to(dtype)
        optimizer = make(network.parameters())
        random = np.random.default_rng(0)
        for _ in range(3):
            x = Tensor(random.standard_normal((6, 1, 8, 8)).astype(dtype))
            labels = random.integers(0, 3, 6)
            optimizer.zero_grad()
            loss = F.cross_entropy(network(x), labels)
            loss.backward()
            nn.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
        network.eval()
        network(x)
        return [tensor.data for tensor in (*network.parameters(), *network.buffers())]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_steps_give_numpys_weights_and_keep_float32(optimizer: str, cupy: Any) -> None:
    """Compared in float64: Adam and the like divide by small gradients, and with them their rounding."""
    found, expected = (train(name, "float64", OPTIMIZERS[optimizer]) for name in ("cupy", "numpy"))
    for mine, theirs in zip(found, expected, strict=True):
        assert type(mine) is cupy.ndarray
        np.testing.assert_allclose(mine.get(), theirs, rtol=1e-9, atol=1e-9)
    narrow = train("cupy", "float32", OPTIMIZERS[optimizer])
    assert {mine.dtype for mine in narrow} <= {np.dtype(np.float32), np.dtype(np.int64)}  # int64: batches counted
    assert all(type(mine) is cupy.ndarray for mine in narrow)
