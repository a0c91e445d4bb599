"""The errata of chapter 01 in course/errata.md: what is right instead."""

from __future__ import annotations

import numpy as np

from minidl import Tensor, nn


def test_the_gradient_of_the_last_layer_is_ready_first() -> None:
    model, ready = nn.models.MLP(4, 5, 6, 3), []
    for name, parameter in model.named_parameters():
        if name.endswith("weight"):
            parameter.register_post_accumulate_grad_hook(lambda _, name=name: ready.append(name))
    layers = [name for name, _ in model.named_parameters() if name.endswith("weight")]
    model(Tensor(np.ones((2, 4), np.float32))).sum().backward()
    assert ready == layers[::-1]
    assert len(layers) == 3
