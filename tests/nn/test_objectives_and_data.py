"""Objectives without labels and by reward; what more data and a test set are good for."""

from __future__ import annotations

import numpy as np

import minidl
from minidl import Tensor, data, nn, optim
from minidl import functional as F


def descend(model: nn.Module, loss: object, steps: int, lr: float) -> nn.Module:
    adam = optim.Adam(model.parameters(), lr=lr)
    for step in range(steps):
        adam.zero_grad()
        loss(model, step).backward()
        adam.step()
    return model


def digits(part: str = "train") -> tuple[np.ndarray, np.ndarray]:
    x, y = getattr(data.digits(), part)[:]
    return x.reshape(len(x), -1), y


def test_a_linear_autoencoder_comes_near_the_principal_components_without_any_label() -> None:
    x = digits()[0][:310]
    minidl.manual_seed(3)
    model = nn.Sequential(nn.Linear(64, 12), nn.Linear(12, 64))
    descend(model, lambda model, _: F.mse_loss(model(Tensor(x)), Tensor(x)), 300, 0.02)
    squares = np.linalg.svd(x - x.mean(0), compute_uv=False)[12:] ** 2
    best = squares.sum() / x.size  # of twelve numbers a digit
    with minidl.no_grad():
        assert best < float(F.mse_loss(model(Tensor(x)), Tensor(x)).item()) < 1.2 * best


def test_the_reinforce_gradient_of_a_two_armed_bandit_is_the_exact_one_within_three_sigma() -> None:
    theta, rewards, pulls = np.array([0.3, -0.2]), np.array([0.2, 1.0]), 3000
    p = np.exp(theta) / np.exp(theta).sum()
    exact = p * (rewards - p @ rewards)  # of the expected reward
    arms = np.random.default_rng(7).choice(2, pulls, p=p)
    weights = Tensor(np.tile(theta, (pulls, 1)), requires_grad=True)
    log_p = F.log_softmax(weights, -1)[np.arange(pulls), arms]
    F.sum(log_p * Tensor(rewards[arms])).backward()
    samples = weights.grad
    error = samples.std(0, ddof=1) / pulls**0.5
    assert np.all(np.abs(samples.mean(0) - exact) < 3 * error)
    assert np.all(np.abs(exact) > 10 * error)  # a gradient of the other sign would be seen


def accuracy(model: nn.Module, x: np.ndarray, y: np.ndarray) -> float:
    with minidl.no_grad():
        return float((model(Tensor(x)).data.argmax(1) == y).mean())


def classifier(x: np.ndarray, y: np.ndarray, seed: int, steps: int = 60) -> nn.Module:
    minidl.manual_seed(seed)
    return descend(nn.Linear(64, 10), lambda model, _: F.cross_entropy(model(Tensor(x)), y), steps, 0.05)


def test_the_test_error_falls_with_the_number_of_samples() -> None:
    (x, y), (test_x, test_y) = digits(), digits("test")
    errors = []
    for n in (30, 200, 1400):
        chosen = [np.random.default_rng(seed).permutation(len(x))[:n] for seed in range(5)]
        errors.append(np.mean([1 - accuracy(classifier(x[of], y[of], 0), test_x, test_y) for of in chosen]))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.1 < errors[0]


def test_a_model_that_is_chosen_by_the_test_set_looks_better_there_than_it_is_on_pure_noise() -> None:
    rng, (x, _) = np.random.default_rng(5), digits()
    labels = rng.integers(10, size=len(x))  # nothing can be learned
    tested, fresh = slice(200, 300), slice(300, 1400)
    models = [classifier(x[:200], labels[:200], seed, steps=3) for seed in range(60)]
    best = max(models, key=lambda model: accuracy(model, x[tested], labels[tested]))
    assert accuracy(best, x[tested], labels[tested]) > 0.15
    assert accuracy(best, x[fresh], labels[fresh]) < 0.13
