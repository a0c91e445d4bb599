"""The five workloads of the training-step benchmark, on both sides: same weights, same data, same update rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
import torch_models

import minidl
from minidl import functional as F
from minidl import nn, optim

BATCHES = 8  # different minibatches, taken in turn
VOCABULARY = 96


class Workload(NamedTuple):
    ours: Callable[[], Any]  # the model
    theirs: Callable[[], torch.nn.Module]
    shape: tuple[int, ...]  # of a minibatch; a text if it has two numbers and the model is a GPT
    adam: bool = False  # else SGD with momentum


WORKLOADS = {
    "mlp-small": Workload(lambda: nn.models.MLP(64, 128, 10), lambda: torch_models.mlp(64, 128, 10), (64, 64)),
    "mlp-large": Workload(
        lambda: nn.models.MLP(784, 512, 512, 10), lambda: torch_models.mlp(784, 512, 512, 10), (128, 784)
    ),
    "lenet": Workload(lambda: nn.models.LeNet(), torch_models.LeNet, (64, 1, 28, 28)),
    "resnet-8": Workload(lambda: nn.models.ResNet(8), torch_models.ResNet8, (64, 3, 32, 32)),
    "gpt": Workload(
        lambda: nn.models.GPT(VOCABULARY, block_size=64, n_layer=4, n_head=4, n_embd=128),
        lambda: torch_models.GPT(VOCABULARY, block_size=64, n_layer=4, n_head=4, n_embd=128),
        (16, 64),
        adam=True,
    ),
}


class Side:
    """A model in training: `step()` is the next training step, of which it returns the loss."""

    def __init__(self, model: Any, optimizer: Any, loss: Callable[[Any, Any], Any], batches: list[Any]) -> None:
        self.model, self.optimizer, self.loss, self.batches = model, optimizer, loss, batches
        self.steps = 0

    def forward(self) -> Any:
        x, y = self.batches[self.steps % BATCHES]
        self.steps += 1
        self.optimizer.zero_grad()
        return self.loss(self.model(x), y)

    def step(self) -> float:
        loss = self.forward()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def both_sides(workload: Workload) -> tuple[Side, Side]:
    """minidl's side and PyTorch's, the latter's weights copied from the former."""
    minidl.manual_seed(0)
    ours, theirs = workload.ours(), workload.theirs()
    weights = [parameter.numpy() for parameter in ours.parameters()]
    with torch.no_grad():
        for parameter, weight in zip(theirs.parameters(), weights, strict=True):
            parameter.copy_(torch.from_numpy(weight))
    batches = _batches(workload)
    classes = VOCABULARY if workload.adam else 10

    def our_loss(logits: Any, y: np.ndarray) -> Any:
        return F.cross_entropy(logits.reshape(-1, classes), y.reshape(-1))

    def their_loss(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(logits.view(-1, classes), y.view(-1))

    def optimizer(module: Any, model: Any) -> Any:
        parameters = model.parameters()
        return module.Adam(parameters, lr=1e-3) if workload.adam else module.SGD(parameters, lr=0.01, momentum=0.9)

    as_tensors = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in batches]
    return (
        Side(ours, optimizer(optim, ours), our_loss, batches),
        Side(theirs, optimizer(torch.optim, theirs), their_loss, as_tensors),
    )


def _batches(workload: Workload) -> list[tuple[np.ndarray, np.ndarray]]:
    generator = np.random.default_rng(0)
    if workload.adam:
        n, t = workload.shape
        texts = [generator.integers(VOCABULARY, size=(n, t + 1)) for _ in range(BATCHES)]
        return [(np.ascontiguousarray(text[:, :-1]), np.ascontiguousarray(text[:, 1:])) for text in texts]
    return [
        (generator.standard_normal(workload.shape, dtype=np.float32), generator.integers(10, size=workload.shape[0]))
        for _ in range(BATCHES)
    ]
