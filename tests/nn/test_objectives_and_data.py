"""Objectives without labels and by reward; what more data and a test set are good for."""

from __future__ import annotations

from typing import Any

import numpy as np

import minidl
from minidl import Tensor, data, nn, optim
from minidl import functional as F


def trained(model: nn.Module, loss: Any, steps: int, lr: float) -> nn.Module:
    adam = optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        adam.zero_grad()
        loss().backward()
        adam.step()
    return model


def classifier(x: np.ndarray, y: np.ndarray, seed: int, steps: int = 60) -> nn.Module:
    minidl.manual_seed(seed)
    model = nn.Linear(64, 10)
    return trained(model, lambda: F.cross_entropy(model(Tensor(x)), y), steps, 0.05)


def error(model: nn.Module, x: np.ndarray, y: np.ndarray) -> float:
    return float((model(Tensor(x)).data.argmax(1) != y).mean())


(X, Y), TEST = ((x.reshape(-1, 64), y) for x, y in (data.digits().train[:], data.digits().test[:]))


def test_a_linear_autoencoder_comes_near_the_principal_components_without_any_label() -> None:
    x = X[:310]
    minidl.manual_seed(3)
    model = nn.Sequential(nn.Linear(64, 12), nn.Linear(12, 64))
    trained(model, lambda: F.mse_loss(model(Tensor(x)), Tensor(x)), 300, 0.02)
    best = (np.linalg.svd(x - x.mean(0), compute_uv=False)[12:] ** 2).sum() / x.size  # of twelve numbers a digit
    assert best < float(F.mse_loss(model(Tensor(x)), Tensor(x)).item()) < 1.2 * best


def test_the_reinforce_gradient_of_a_two_armed_bandit_is_the_exact_one_within_three_sigma() -> None:
    theta, rewards, pulls = np.array([0.3, -0.2]), np.array([0.2, 1.0]), 3000
    p = np.exp(theta) / np.exp(theta).sum()
    exact = p * (rewards - p @ rewards)  # of the expected reward
    arms = np.random.default_rng(7).choice(2, pulls, p=p)
    logits = Tensor(np.tile(theta, (pulls, 1)), requires_grad=True)
    F.sum(F.log_softmax(logits, -1)[np.arange(pulls), arms] * Tensor(rewards[arms])).backward()
    sigma = logits.grad.std(0, ddof=1) / pulls**0.5
    assert np.all(np.abs(logits.grad.mean(0) - exact) < 3 * sigma)
    assert np.all(np.abs(exact) > 10 * sigma)  # a gradient of the other sign would be seen


def test_the_test_error_falls_with_the_number_of_samples() -> None:
    orders = [np.random.default_rng(seed).permutation(len(X)) for seed in range(5)]
    errors = [np.mean([error(classifier(X[of[:n]], Y[of[:n]], 0), *TEST) for of in orders]) for n in (30, 200, 1400)]
    assert errors[0] > 0.1 > errors[1] > errors[2]


def test_a_model_that_is_chosen_by_the_test_set_looks_better_there_than_it_is_on_pure_noise() -> None:
    labels = np.random.default_rng(5).integers(10, size=len(X))  # nothing can be learned
    models = [classifier(X[:200], labels[:200], seed, steps=3) for seed in range(60)]
    best = min(models, key=lambda model: error(model, X[200:300], labels[200:300]))
    assert error(best, X[200:300], labels[200:300]) < 0.85
    assert error(best, X[300:], labels[300:]) > 0.87
