"""LARS and LAMB against scalar transcriptions of their papers."""

from __future__ import annotations

from itertools import product
from math import sqrt

import numpy as np
import pytest

from minidl import Tensor, optim
from tests.together import naming

LAYERS = [[0.5, -1.5, 2.0], [3.0, 0.25]]  # as lists: the transcriptions below use no arrays


def tensors(dtype: str = "float64", ndim: int = 2) -> list[Tensor]:
    shape = (1,) * (ndim - 1) + (-1,)
    return [Tensor(np.array(layer, dtype).reshape(shape), requires_grad=True) for layer in LAYERS]


def random_gradients(count: int) -> list[list[list[float]]]:
    random = np.random.default_rng(0)
    return [[[float(random.normal()) for _ in layer] for layer in LAYERS] for _ in range(count)]


def give(layers: list[Tensor], gradients: list[list[float]]) -> None:
    for tensor, gradient in zip(layers, gradients, strict=True):
        tensor.grad = np.array(gradient, tensor.dtype).reshape(tensor.shape)


def norm(values: list[float]) -> float:
    return sqrt(sum(value * value for value in values))


def test_lars_is_algorithm_1():
    for dtype, tolerance in [("float64", 1e-12), ("float32", 1e-6)]:
        with naming(dtype):
            momentum, decay, eta, T, base_lr = 0.9, 0.1, 0.02, 20, 2.0
            layers = tensors(dtype)
            optimizer = optim.LARS(layers, lr=base_lr, momentum=momentum, weight_decay=decay, trust_coefficient=eta)
            x = [list(layer) for layer in LAYERS]
            v = [[0.0] * len(layer) for layer in LAYERS]
            for t, gradients in enumerate(random_gradients(T)):
                rate = base_lr * (1 - t / T) ** 2  # the paper's polynomial decay: v holds rates of the past
                optimizer.param_groups[0]["lr"] = rate
                give(layers, gradients)
                optimizer.step()
                for w, velocity, g in zip(x, v, gradients, strict=True):
                    local = eta * norm(w) / (norm(g) + decay * norm(w))
                    for i in range(len(w)):
                        velocity[i] = momentum * velocity[i] + rate * local * (g[i] + decay * w[i])
                    for i in range(len(w)):
                        w[i] = w[i] - velocity[i]
            for tensor, expected in zip(layers, x, strict=True):
                np.testing.assert_allclose(tensor.data[0], expected, rtol=tolerance, atol=tolerance)


def test_lamb_is_algorithm_2():
    for dtype, tolerance in [("float64", 1e-12), ("float32", 1e-6)]:
        with naming(dtype):
            lr, beta1, beta2, eps, decay = 0.05, 0.8, 0.9, 0.1, 0.3
            layers = tensors(dtype)
            optimizer = optim.LAMB(layers, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=decay)
            x = [list(layer) for layer in LAYERS]
            m = [[0.0] * len(layer) for layer in LAYERS]
            v = [[0.0] * len(layer) for layer in LAYERS]
            for t, gradients in enumerate(random_gradients(20), start=1):
                give(layers, gradients)
                optimizer.step()
                for w, first, second, g in zip(x, m, v, gradients, strict=True):
                    direction = []
                    for i in range(len(w)):
                        first[i] = beta1 * first[i] + (1 - beta1) * g[i]
                        second[i] = beta2 * second[i] + (1 - beta2) * g[i] ** 2
                        ratio = (first[i] / (1 - beta1**t)) / (sqrt(second[i] / (1 - beta2**t)) + eps)
                        direction.append(ratio + decay * w[i])
                    trust = norm(w) / norm(direction)
                    for i in range(len(w)):
                        w[i] = w[i] - lr * trust * direction[i]
            for tensor, expected in zip(layers, x, strict=True):
                np.testing.assert_allclose(tensor.data[0], expected, rtol=tolerance, atol=tolerance)


def test_the_length_of_a_step_does_not_depend_on_the_gradients_size():
    for scale in [1e-6, 1.0, 1e6]:
        with naming(scale):
            for make in (
                lambda layers: optim.LARS(layers, lr=1.0, trust_coefficient=0.1),
                lambda layers: optim.LAMB(layers, lr=0.1, eps=0.0, weight_decay=0.0),
            ):
                layers = tensors()
                give(layers, [[scale, 2 * scale, -scale], [scale, -3 * scale]])
                make(layers).step()
                for tensor, before in zip(layers, LAYERS, strict=True):
                    assert np.linalg.norm(tensor.data[0] - before) == pytest.approx(0.1 * norm(before), rel=1e-12)


def test_weights_that_are_all_zero_take_the_step_of_sgd_or_adam():
    for optimizer_of, step in (
        (lambda w: optim.LARS([w], lr=0.5, trust_coefficient=0.01), [-1.0, 2.0]),
        (lambda w: optim.LAMB([w], lr=0.5, eps=0.0), [-0.5, 0.5]),
    ):
        w = Tensor(np.zeros(2), requires_grad=True)
        w.grad = np.array([2.0, -4.0])
        optimizer_of(w).step()
        np.testing.assert_allclose(w.data, step, rtol=1e-14)


def test_a_zero_gradient_leaves_only_the_decay_and_no_nan():
    w = Tensor(np.array([[3.0, 4.0]]), requires_grad=True)
    w.grad = np.zeros((1, 2))
    optim.LARS([w], lr=0.5, momentum=0.0, weight_decay=0.1).step()
    np.testing.assert_allclose(w.data, [[3.0 * 0.95, 4.0 * 0.95]], rtol=1e-14)
    w.grad = np.zeros((1, 2))
    before = w.data.copy()
    optim.LAMB([w], lr=0.5, weight_decay=0.0).step()
    np.testing.assert_array_equal(w.data, before)


def test_one_dimensional_parameters_can_be_excluded():
    for ndim in [1, 2]:
        with naming(ndim):
            gradients = random_gradients(5)
            for special, plain in (
                (
                    lambda layers: optim.LARS(layers, lr=0.1, weight_decay=0.1, exclude_1d=True),
                    lambda layers: optim.SGD(layers, lr=0.1, momentum=0.9, weight_decay=0.1),
                ),
                (
                    lambda layers: optim.LAMB(layers, lr=0.1, eps=0.1, weight_decay=0.0, exclude_1d=True),
                    lambda layers: optim.Adam(layers, lr=0.1, eps=0.1),
                ),
            ):
                ours, reference = tensors(ndim=ndim), tensors(ndim=ndim)
                for layers, make in ((ours, special), (reference, plain)):
                    optimizer = make(layers)
                    for gradient in gradients:
                        give(layers, gradient)
                        optimizer.step()
                same = all(np.allclose(a.data, b.data, rtol=1e-12) for a, b in zip(ours, reference, strict=True))
                assert same == (ndim == 1)


def test_the_step_has_its_length_however_small_the_gradient_is():
    """The rate of the layer, lr |w| / |g|, may be larger than the largest number of the weights' type."""
    for (dtype, size), optimizer in product([("float32", 1e-43), ("float16", 6e-8)], [optim.LARS, optim.LAMB]):
        with naming(dtype, size, optimizer):
            weight, usual = (Tensor(np.ones((1, 2), dtype), requires_grad=True) for _ in range(2))
            weight.grad, usual.grad = np.full((1, 2), size, dtype), np.ones((1, 2), dtype)
            for each in (weight, usual):
                optimizer([each], lr=1.0).step()
            np.testing.assert_allclose(weight.data, usual.data, rtol=1e-3, atol=1e-3)
