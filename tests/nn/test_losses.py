"""The losses as modules: what the functions give, with PyTorch's arguments in PyTorch's order."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl import functional as F
from minidl import nn
from tests.together import naming

WEIGHT = np.array([0.5, 2.0, 1.0], dtype=np.float32)


def labels(random: np.random.Generator) -> Any:
    return random.integers(0, 3, 5)


def targets(random: np.random.Generator) -> Any:
    return random.random((5, 3)).astype(np.float32)


def test_a_module_gives_what_its_function_gives() -> None:
    for module, function, make in [
        (nn.CrossEntropyLoss(), F.cross_entropy, labels),
        (
            nn.CrossEntropyLoss(WEIGHT, 1, "sum", 0.1),
            lambda x, y: F.cross_entropy(x, y, WEIGHT, 1, "sum", 0.1),
            labels,
        ),
        (nn.NLLLoss(WEIGHT, 1, "none"), lambda x, y: F.nll_loss(x, y, WEIGHT, 1, "none"), labels),
        (nn.MSELoss(), F.mse_loss, targets),
        (nn.L1Loss("sum"), lambda x, y: F.l1_loss(x, y, "sum"), targets),
        (
            nn.BCEWithLogitsLoss(WEIGHT, "sum", WEIGHT),
            lambda x, y: F.binary_cross_entropy_with_logits(x, y, WEIGHT, "sum", WEIGHT),
            targets,
        ),
    ]:
        with naming(module):
            random = np.random.default_rng(0)
            x, y = random.standard_normal((5, 3)).astype(np.float32), make(random)
            np.testing.assert_array_equal(module(x, y).numpy(), function(x, y).numpy())


def test_class_weights_are_state_and_not_parameters() -> None:
    loss = nn.BCEWithLogitsLoss(WEIGHT, pos_weight=WEIGHT)
    assert list(loss.state_dict()) == ["weight", "pos_weight"]
    assert list(nn.CrossEntropyLoss(WEIGHT).state_dict()) == ["weight"]
    assert list(nn.CrossEntropyLoss().state_dict()) == list(loss.parameters()) == []
