"""PyTorch's sides: eager, and the same step through torch.compile."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.peers.step import torch_models
from benchmarks.peers.step.workloads import (
    ADAM_RATE,
    BATCHES,
    LEARNING_RATE,
    MOMENTUM,
    VOCABULARY,
    Workload,
    minibatches,
    model_of,
)

MODELS: dict[str, Any] = {
    "mlp-small": lambda: torch_models.mlp(64, 128, 10),
    "mlp-large": lambda: torch_models.mlp(784, 512, 512, 10),
    "lenet": torch_models.LeNet,
    "resnet-8": torch_models.ResNet8,
    "gpt": lambda: torch_models.GPT(VOCABULARY, block_size=64, n_layer=4, n_head=4, n_embd=128),
}


class Training:
    """PyTorch in training; with `is_compiled`, model and loss go through torch.compile (forward and backward)."""

    def __init__(self, name: str, workload: Workload, is_compiled: bool, device: str = "cpu") -> None:
        self.model = MODELS[name]().to(device)
        with torch.no_grad():
            for parameter, ours in zip(self.model.parameters(), model_of(workload).parameters(), strict=True):
                parameter.copy_(torch.from_numpy(ours.numpy()))
        self.batches = [tuple(torch.from_numpy(a).to(device) for a in arrays) for arrays in minibatches(workload)]
        self.outputs, self.steps = workload.outputs, 0
        parameters = self.model.parameters()
        self.optimizer: Any = (
            torch.optim.Adam(parameters, lr=ADAM_RATE)
            if workload.adam
            else torch.optim.SGD(parameters, lr=LEARNING_RATE, momentum=MOMENTUM)
        )
        self.loss: Any = self._loss
        if is_compiled:
            torch._dynamo.reset()
            self.loss = torch.compile(self._loss)

    def _loss(self, x: Any, y: Any) -> Any:
        logits = self.model(x)
        return torch.nn.functional.cross_entropy(logits.view(-1, self.outputs), y.view(-1))

    def step(self) -> float:
        """zero_grad, forward, backward, and the optimizer's step."""
        x, y = self.batches[self.steps % BATCHES]
        self.steps += 1
        self.optimizer.zero_grad()
        loss = self.loss(x, y)
        loss.backward()
        self.optimizer.step()
        return float(loss.item())
