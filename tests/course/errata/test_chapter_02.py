"""The errata of chapter 02 in course/errata.md: what is printed goes wrong, what is right does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from minidl import Tensor, data, optim
from minidl import functional as F

Vector = NDArray[np.float64]

CURVATURE = np.array([1.0, 50.0])
BEGIN = np.array([-1.8, 0.8])
EPS = 1e-8


def follow(rule: Callable[[Vector], Vector], steps: int, rate: float = 0.1) -> Vector:
    """The path down the valley of a rule that is given all gradients so far."""
    path: list[Vector] = [BEGIN]
    gradients: list[Vector] = []
    for _ in range(steps):
        gradients.append(CURVATURE * path[-1])
        path.append(path[-1] - rate * rule(np.array(gradients)))
    return np.array(path)


def digits() -> tuple[Vector, NDArray[Any]]:
    train, _ = data.digits()
    return train.x.reshape(-1, 64).astype(np.float64), train.y


def gradient(w: Vector, x: Vector, y: NDArray[Any], reduction: str = "mean") -> Vector:
    weight = Tensor(w.copy(), requires_grad=True)
    F.cross_entropy(Tensor(x) @ weight, y, reduction=reduction).backward()
    return np.asarray(weight.grad)


def test_a_sum_with_a_rate_is_the_mean_with_a_rate_that_is_larger_by_the_batch_size() -> None:
    x, y = digits()
    by_sum, by_mean = np.zeros((64, 10)), np.zeros((64, 10))
    for k in range(0, 512, 32):
        by_sum -= 0.5 / 32 * gradient(by_sum, x[k : k + 32], y[k : k + 32], "sum")
        by_mean -= 0.5 * gradient(by_mean, x[k : k + 32], y[k : k + 32])
    assert np.array_equal(by_sum, by_mean)


def test_the_variance_of_a_minibatch_gradient_falls_as_one_over_the_batch_size() -> None:
    x, y = digits()
    each = np.stack([gradient(np.zeros((64, 10)), x[k : k + 1], y[k : k + 1]).reshape(-1) for k in range(200)])
    exact, rng = each.mean(axis=0), np.random.default_rng(0)
    total = np.square(each - exact).sum(axis=1).mean()
    for size in (1, 4, 16, 64):
        means = (each[rng.integers(200, size=size)].mean(axis=0) for _ in range(2000))
        variance = np.mean([np.square(mean - exact).sum() for mean in means])
        assert size * variance == pytest.approx(total, rel=0.05)


def test_a_model_trained_towards_its_own_answers_becomes_certain_and_no_better() -> None:
    x, y = digits()
    w = np.random.default_rng(0).normal(0, 0.1, (64, 10))
    answers = (x @ w).argmax(axis=1)
    for _ in range(300):
        w -= 3.0 * gradient(w, x, (x @ w).argmax(axis=1))
    after = (x @ w).argmax(axis=1)
    assert F.cross_entropy(Tensor(x @ w), after).item() < 0.2
    assert (after != y).mean() > 0.7
    assert (answers != y).mean() > 0.7


NESTEROV = {"right": (+1, False), "sign": (-1, False), "index": (+1, True), "both": (-1, True)}


def nesterov(steps: int, sign: int, late: bool, rate: float = 0.01, mu: float = 0.9) -> Vector:
    """The distance to the minimum after each step; `sign` and `late` are the two slips."""
    w, v, distances = BEGIN, np.zeros(2), []
    for _ in range(steps):
        new = mu * v - rate * CURVATURE * (w + sign * mu * v)
        w, v = w + (v if late else new), new
        distances.append(np.linalg.norm(np.concatenate([w, v])))
    return np.array(distances)


def spectral_radius(sign: int, late: bool, rate: float = 0.01, mu: float = 0.9) -> float:
    """The factor of a step in the long run, in the worse direction."""
    radii = []
    for curvature in CURVATURE:
        velocity = np.array([-rate * curvature, mu - sign * rate * curvature * mu])
        matrix = [[1, 1], velocity] if late else [np.array([1, 0]) + velocity, velocity]
        radii.append(abs(np.linalg.eigvals(np.array(matrix))).max())
    return float(max(radii))


@pytest.mark.parametrize("case", NESTEROV)
def test_nesterov_diverges_with_the_printed_sign_as_its_spectral_radius_says(case: str) -> None:
    distances, radius = nesterov(1000, *NESTEROV[case]), spectral_radius(*NESTEROV[case])
    assert (distances[-1] / distances[199]) ** (1 / 800) == pytest.approx(radius, rel=0.01)
    assert (radius > 1) == (case in ("sign", "both"))


def test_nesterov_of_the_library_looks_ahead() -> None:
    weight = Tensor(BEGIN.copy(), requires_grad=True)
    optimizer = optim.SGD([weight], lr=0.01, momentum=0.9, nesterov=True)
    w, v = BEGIN, np.zeros(2)
    for _ in range(50):
        weight.grad = CURVATURE * weight.data
        optimizer.step()
        v = 0.9 * v - 0.01 * CURVATURE * (w + 0.9 * v)
        w = w + v
        assert np.allclose(weight.data, w + 0.9 * v, rtol=0, atol=1e-12)


def test_adagrad_with_the_present_gradient_under_the_sum_goes_uphill() -> None:
    """The loss is x / 4; its noisy slope is 4 in one case of four, else -1."""
    rng = np.random.default_rng(0)
    right, printed, squares = np.zeros(200), np.zeros(200), np.zeros(200)
    for t in range(1, 301):
        g = np.where(rng.random(200) < 0.25, 4.0, -1.0)
        squares += g**2
        right -= 0.1 * g / (np.sqrt(squares) + EPS)
        printed -= 0.1 * g / (np.sqrt(t * g**2) + EPS)
    assert right.mean() < -0.1
    assert printed.mean() > 0.5


def moments(fed_back: bool) -> Callable[[Vector], Vector]:
    """Adam's step without a rate; `fed_back`: the corrected means are kept."""

    def step(gradients: Vector) -> Vector:
        m, a = np.zeros(2), np.zeros(2)
        for t, g in enumerate(gradients, start=1):
            m, a = 0.9 * m + 0.1 * g, 0.99 * a + 0.01 * g**2
            if fed_back:
                m, a = m / (1 - 0.9**t), a / (1 - 0.99**t)
        if not fed_back:
            m, a = m / (1 - 0.9 ** len(gradients)), a / (1 - 0.99 ** len(gradients))
        return np.asarray(m / (np.sqrt(a) + EPS))

    return step


def test_adam_that_keeps_its_corrected_means_freezes() -> None:
    printed, right = (follow(moments(fed_back), 100) for fed_back in (True, False))
    lengths = np.linalg.norm(np.diff(printed, axis=0), axis=1)
    assert lengths[9] < 1e-2 * lengths[0]
    assert np.linalg.norm(printed[-1]) > 1
    assert np.linalg.norm(right[-1]) < 0.1


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "Adagrad"])
def test_epsilon_stands_outside_the_root(name: str) -> None:
    weight = Tensor(np.zeros(1), requires_grad=True)
    optimizer = getattr(optim, name)([weight], lr=1.0, eps=0.1)
    weight.grad = np.array([0.2])
    optimizer.step()
    root = 0.2 * (np.sqrt(0.01) if name == "RMSprop" else 1.0)
    assert weight.data[0] == pytest.approx(-0.2 / (root + 0.1), rel=1e-12)
    assert abs(weight.data[0] + 0.2 / np.sqrt(root**2 + 0.1)) > 0.1


def test_a_small_epsilon_inside_the_root_shortens_the_steps_of_small_gradients() -> None:
    weight = Tensor(np.zeros(1), requires_grad=True)
    optimizer = optim.Adam([weight], lr=1.0, eps=1e-8)
    weight.grad = np.array([1e-5])
    optimizer.step()
    inside = 1e-5 / np.sqrt(1e-5**2 + 1e-8)
    assert weight.data[0] == pytest.approx(-1, rel=0.01)
    assert inside == pytest.approx(0.1, rel=0.01)
