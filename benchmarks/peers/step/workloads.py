"""The five workloads of the course in minidl, and the weights and minibatches that every side starts from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import minidl
from minidl import functional as F
from minidl import nn, optim
from minidl.random import Purpose, stream
from minidl.tensor.conversion import as_array

BATCHES = 8  # different minibatches, taken in turn
VOCABULARY = 96
CLASSES = 10
LEARNING_RATE, MOMENTUM = 0.01, 0.9  # of SGD
ADAM_RATE = 1e-3

Array = npt.NDArray[Any]


class Workload(NamedTuple):
    """A model and its data.

    Parameters
        model    makes minidl's model
        shape    of a minibatch: images or vectors; (texts, tokens) for the GPT
        adam     trained by Adam on texts; otherwise by SGD with momentum on images
    """

    model: Callable[[], Any]
    shape: tuple[int, ...]
    adam: bool = False

    @property
    def outputs(self) -> int:
        return VOCABULARY if self.adam else CLASSES


WORKLOADS = {
    "mlp-small": Workload(lambda: nn.models.MLP(64, 128, 10), (64, 64)),
    "mlp-large": Workload(lambda: nn.models.MLP(784, 512, 512, 10), (128, 784)),
    "lenet": Workload(lambda: nn.models.LeNet(), (64, 1, 28, 28)),
    "resnet-8": Workload(lambda: nn.models.ResNet(8), (64, 3, 32, 32)),
    "gpt": Workload(
        lambda: nn.models.GPT(VOCABULARY, block_size=64, n_layer=4, n_head=4, n_embd=128), (16, 64), adam=True
    ),
}


def model_of(workload: Workload) -> Any:
    """minidl's model; its weights are those of every side."""
    minidl.manual_seed(0)
    return workload.model()


def minibatches(workload: Workload) -> list[tuple[Array, Array]]:
    """Inputs and labels, the same on every side."""
    generator = stream(Purpose.BENCHMARK, 0)
    if workload.adam:
        n, t = workload.shape
        texts = [generator.integers(VOCABULARY, size=(n, t + 1)) for _ in range(BATCHES)]
        return [(np.ascontiguousarray(text[:, :-1]), np.ascontiguousarray(text[:, 1:])) for text in texts]
    return [
        (generator.standard_normal(workload.shape, dtype=np.float32), generator.integers(10, size=workload.shape[0]))
        for _ in range(BATCHES)
    ]


class Training:
    """minidl's side: `step()` is the next training step, of which it returns the loss."""

    def __init__(self, workload: Workload) -> None:
        self.model, self.outputs = model_of(workload), workload.outputs
        self.batches = [(as_array(x), as_array(y)) for x, y in minibatches(workload)]  # on the GPU with CuPy
        parameters = self.model.parameters()
        self.optimizer: Any = (
            optim.Adam(parameters, lr=ADAM_RATE)
            if workload.adam
            else optim.SGD(parameters, lr=LEARNING_RATE, momentum=MOMENTUM)
        )
        self.steps = 0

    def forward(self) -> Any:
        """The loss of the next minibatch, a tensor."""
        x, y = self.batches[self.steps % BATCHES]
        self.steps += 1
        self.optimizer.zero_grad()
        return F.cross_entropy(self.model(x).reshape(-1, self.outputs), y.reshape(-1))

    def step(self) -> float:
        """Forward, backward, and the optimizer's step."""
        loss = self.forward()
        loss.backward()
        self.optimizer.step()
        return float(loss.item())
