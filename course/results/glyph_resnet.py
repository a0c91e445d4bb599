"""Part I: a ResNet learns to read letters in fonts that it has never seen, by the reader's own update rule."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import cos, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import minidl
from course.results.history import Row, Trained, compared, took
from minidl import data, nn, optim
from minidl import functional as F

Rule = Callable[..., Any]
"""`adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps)` of chapter 02: returns w, m, v."""


@dataclass(frozen=True)
class Settings:
    """What is trained, and how.

    depth            layers of the ResNet, 6n + 2
    n_train, n_test  letters
    minibatch        letters per step
    steps            steps in all; the learning rate falls to 0 along half a cosine
    lr               the first learning rate
    evaluate_every   steps between two evaluations
    seed             seed of weights and minibatches
    """

    depth: int = 14
    n_train: int = 20_000
    n_test: int = 2_000
    minibatch: int = 64
    steps: int = 1_800
    lr: float = 2e-3
    evaluate_every: int = 200
    seed: int = 0


def library_rule(
    w: Any, m: Any, v: Any, t: int, gradient: Any, lr: float, beta1: float, beta2: float, eps: float
) -> Any:
    """The rule as minidl has it: `optim.Adam` for a single array."""
    weights = minidl.Tensor(w.copy(), requires_grad=True)
    adam = optim.Adam([weights], lr=lr, betas=(beta1, beta2), eps=eps)
    adam.state[weights] = {"exp_avg": m.copy(), "exp_avg_sq": v.copy(), "step": t - 1}
    weights.grad = gradient
    adam.step()
    return weights.numpy(), adam.state[weights]["exp_avg"], adam.state[weights]["exp_avg_sq"]


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]
def train(
    rule: Rule, settings: Settings = Settings(), tell: Callable[[int, Row | None], None] = lambda *_: None
) -> Trained:
    """Train; `tell(step, row)` is called after each step, with a row after each evaluation, else None.

    One thread: on a machine that is busy with other work, a second one waits more than it computes (20 steps took 4.7 s
    with one thread and 28.8 s with two, on two cores under a load of 4).
    """
    train_set, test = data.glyphs(settings.n_train, settings.n_test)
    minidl.manual_seed(settings.seed)
    model = nn.models.ResNet(settings.depth, num_classes=26, in_channels=1)
    parameters = list(model.parameters())
    means = [(np.zeros_like(p.numpy()), np.zeros_like(p.numpy())) for p in parameters]
    twins = [minidl.Tensor(p.numpy().copy(), requires_grad=True) for p in parameters]
    library = optim.Adam(twins)
    mine: list[float] = []  # seconds of all calls of a step
    theirs: list[float] = []
    rows: list[Row] = []
    losses: list[float] = []
    began = time.perf_counter()
    for t, chosen in enumerate(minibatches(len(train_set), settings), start=1):
        loss = F.cross_entropy(model(train_set.x[chosen]), train_set.y[chosen])
        model.zero_grad()
        loss.backward()
        lr = settings.lr * (1 + cos(pi * (t - 1) / settings.steps)) / 2
        mine.append(0.0)
        for i, parameter in enumerate(parameters):
            called = time.perf_counter()
            w, m, v = rule(parameter.numpy(), *means[i], t, parameter.grad, lr, 0.9, 0.999, 1e-8)
            mine[-1] += time.perf_counter() - called
            parameter.copy_(w)
            means[i] = (m, v)
        if t - 1 in compared(settings.steps):
            for twin, parameter in zip(twins, parameters, strict=True):
                twin.grad = parameter.grad
            called = time.perf_counter()
            library.step()
            theirs.append(time.perf_counter() - called)
        losses.append(loss.item())
        row = None
        if t % settings.evaluate_every == 0 or t == settings.steps:
            chances = probabilities(model, test)
            right = chances[np.arange(len(test)), test.y]
            row = {
                "step": t, "seconds": round(time.perf_counter() - began, 1), "loss": round(float(np.mean(losses)), 4),
                "test_loss": round(float(-np.log(right + 1e-12).mean()), 4),
                "test_accuracy": round(float((chances.argmax(1) == test.y).mean()), 4),
            }  # fmt: skip
            rows.append(row)
            losses = []
        tell(t, row)
    n, share = len(parameters), sum(mine) / (time.perf_counter() - began)
    seconds = np.array(mine) / n, np.array(theirs) / n
    return Trained(model, rows, took((n * len(mine), n * len(theirs)), seconds, share), test)


def minibatches(n: int, settings: Settings) -> Iterator[NDArray[np.int64]]:
    """The samples of each step: epoch after epoch in a new order."""
    rng, left = np.random.default_rng(settings.seed), np.empty(0, np.int64)
    for _ in range(settings.steps):
        if len(left) < settings.minibatch:
            left = rng.permutation(n)
        chosen, left = left[: settings.minibatch], left[settings.minibatch :]
        yield chosen


@minidl.no_grad()
def probabilities(model: nn.Module, test: data.Dataset) -> NDArray[np.float64]:
    """For each letter of the test set, the probabilities that the model gives to A to Z."""
    model.eval()
    logits = np.concatenate([model(test.x[i : i + 200]).numpy() for i in range(0, len(test), 200)]).astype(float)
    model.train()
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]
