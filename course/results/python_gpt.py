"""Part II: two nodes train a GPT that writes Python-like text; the reader's own all-reduce adds up their gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import minidl
from course.results.history import Row, Trained, compared, took
from minidl import cluster, data, nn, optim
from minidl import functional as F
from minidl.parallel.gradients import flat_vector
from minidl.plots.style import bytes_text

AllReduce = Callable[..., Any]
"""`ring_all_reduce(comm, x)` of chapter 04: makes x the sum of everyone's x."""


@dataclass(frozen=True)
class Settings:
    """What is trained, and how.

    n_layer, n_head, n_embd   size of the GPT
    block_size       characters that it sees
    n_chars          characters of Python's standard library; nine tenths for training
    minibatch        windows of text per step, on all nodes together
    nodes            processes
    steps            steps in all; the learning rate rises for warm_up steps, then falls to a tenth along half a cosine
    lr               the largest learning rate
    evaluate_every   steps between two evaluations
    seed             seed of weights and minibatches
    """

    n_layer: int = 4
    n_head: int = 4
    n_embd: int = 128
    block_size: int = 128
    n_chars: int = 4_000_000
    minibatch: int = 32
    nodes: int = 2
    steps: int = 1_300
    warm_up: int = 100
    lr: float = 2e-3
    evaluate_every: int = 100
    seed: int = 0


def library_all_reduce(comm: cluster.Communicator, x: NDArray[Any]) -> NDArray[Any]:
    """The sum as minidl has it."""
    comm.all_reduce(x, algorithm="ring")
    return x


def gpt(settings: Settings) -> nn.models.GPT:
    """The model with its initial weights."""
    minidl.manual_seed(settings.seed)
    symbols = len(data.stdlib_text(settings.block_size, settings.n_chars).classes)
    return nn.models.GPT(symbols, settings.block_size, settings.n_layer, settings.n_head, settings.n_embd)


def learning_rate(step: int, settings: Settings) -> float:
    """The rate of this step, counted from 0."""
    warm_up = min(settings.warm_up, settings.steps // 5)
    if step < warm_up:
        return settings.lr * (step + 1) / warm_up
    share = (step - warm_up) / max(1, settings.steps - warm_up)
    return settings.lr * (0.1 + 0.9 * (1 + cos(pi * share)) / 2)


def node(comm: cluster.Communicator, all_reduce: AllReduce, settings: Settings) -> tuple[Any, ...]:
    """The program of every node: weights, size of the gradient, seconds of both functions' calls, share of the time."""
    train_set, test = data.stdlib_text(settings.block_size, settings.n_chars)
    model = gpt(settings)
    parameters = list(model.parameters())
    adam = optim.AdamW(parameters, lr=settings.lr, betas=(0.9, 0.99), weight_decay=0.1)
    dealt = slice(comm.rank, None, comm.size)
    losses: list[float] = []
    measured, own, began = compared(settings.steps), 0.0, comm.now()
    calls: tuple[list[float], list[float]] = [], []
    for step in range(settings.steps):
        rng = np.random.default_rng((settings.seed, step))  # the same on all nodes: one minibatch, dealt to them
        x, y = windows(train_set, rng.integers(len(train_set.tokens) - settings.block_size, size=settings.minibatch))
        loss = F.cross_entropy(*flat(model, x[dealt], y[dealt]))
        model.zero_grad()
        loss.backward()
        gradient = flat_vector.gradient(parameters).astype(np.float64)
        if step in measured:  # both in turn, each when all are ready: without the time for which one waits for another
            for each, seconds in zip((all_reduce, library_all_reduce), calls, strict=True):
                copied = gradient.copy()
                comm.barrier()
                called = comm.now()
                each(comm, copied)
                seconds.append(comm.now() - called)
        called = comm.now()
        total = all_reduce(comm, gradient)
        own += comm.now() - called
        flat_vector.set_gradient(parameters, (total / comm.size).astype(np.float32))
        nn.clip_grad_norm_(parameters, 1.0)
        adam.param_groups[0]["lr"] = learning_rate(step, settings)
        adam.step()
        losses.append(loss.item())
        row = None
        if (step + 1) % settings.evaluate_every == 0 or step + 1 == settings.steps:
            means = np.array([np.mean(losses), test_loss(model, test, dealt)])
            comm.all_reduce(means)
            row = dict(zip(("loss", "test_loss"), (means / comm.size).round(4).tolist(), strict=True))
            row = {"step": step + 1, "seconds": round(comm.now(), 1), **row}
            losses = []
        if comm.rank == 0:
            comm.tell((step + 1, row))
    return model.state_dict(), len(gradient), calls, own / max(comm.now() - began, 1e-9)


def windows(text: Any, starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Windows of the text at these places, and the same one character later."""
    places = starts[:, None] + np.arange(text.block_size)
    return text.tokens[places], text.tokens[places + 1]


def flat(model: nn.models.GPT, x: NDArray[np.int64], y: NDArray[np.int64]) -> tuple[minidl.Tensor, NDArray[np.int64]]:
    """The logits of all characters in one row each, and what came."""
    logits = model(x)
    return logits.reshape(-1, logits.shape[-1]), y.reshape(-1)


@minidl.no_grad()
def test_loss(model: nn.models.GPT, test: Any, share: slice) -> float:
    """The mean loss on this node's share of 128 windows of the test set."""
    starts = np.linspace(0, len(test.tokens) - test.block_size - 1, 128).astype(np.int64)[share]
    return float(F.cross_entropy(*flat(model, *windows(test, starts))).item())


def train(
    all_reduce: AllReduce, settings: Settings = Settings(), tell: Callable[[int, Row | None], None] = lambda *_: None
) -> Trained:
    """Train on processes; `tell(step, row)` is called after each step, with a row after each evaluation, else None."""
    rows: list[Row] = []

    def listener(_: int, told: tuple[int, Row | None]) -> None:
        if told[1] is not None:
            rows.append(told[1])
        tell(*told)

    run = cluster.launch(node, (all_reduce, settings), settings.nodes, listener=listener)
    weights, n, seconds, share = run.results[0]
    model = gpt(settings)
    model.load_state_dict(weights)
    calls = settings.steps + len(seconds[0]), len(seconds[0])
    return Trained(model, rows, [*took(calls, seconds, share), *traffic(all_reduce, settings.nodes, n)])


def traffic(all_reduce: AllReduce, nodes: int, n: int) -> list[list[str]]:
    """What a call with n numbers sends, and the library's, by a simulation in which a message takes a second."""
    slow, x = cluster.Network(1.0, 0.0), np.zeros(n)
    runs = [cluster.launch(each, (x,), nodes, "simulation", slow) for each in (all_reduce, library_all_reduce)]
    sent = [run.trace.ledger()[0].values() for run in runs]
    return [
        ["messages of a node in a call", *(f"{sum(each.messages for each in own)}" for own in sent)],
        ["bytes of a node in a call", *(bytes_text(sum(each.nbytes for each in own)) for own in sent)],
        ["rounds (messages one after the other)", *(f"{run.seconds:.0f}" for run in runs)],
    ]


def written(
    model: nn.models.GPT, length: int = 800, prompt: str = "def ", temperature: float = 0.7, seed: int = 0
) -> str:
    """A text that the model writes after the prompt."""
    minidl.manual_seed(seed)
    model.eval()
    with threadpool_limits(1):  # products of one row: a second thread would only wait
        tokens = model.generate(data.encode(prompt)[None], length, temperature)
    return data.decode(tokens[0])
