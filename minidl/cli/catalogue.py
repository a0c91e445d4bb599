"""The models and data sets that the command line knows by name, and which of them go together."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from minidl import data, nn, optim
from minidl.data import Splits


@dataclass(frozen=True)
class Recipe:
    """How the command line trains a model: a function that makes it for a data set, and what is used unless said
    otherwise."""

    build: Callable[[Splits], nn.Module]
    optimizer: str
    lr: float
    description: str


def _mlp(splits: Splits) -> nn.Module:
    x, _ = splits.train[0]
    return nn.models.MLP(x.size, 128, len(splits.classes))


def _lenet(splits: Splits) -> nn.Module:
    size = _image_size("lenet", splits, channels=1)
    if size not in (8, 28):
        raise ValueError(f"lenet reads images of 8x8 or 28x28 pixels, these have {size}x{size}")
    return nn.models.LeNet(size=size, num_classes=len(splits.classes))


def _resnet(splits: Splits) -> nn.Module:
    _image_size("resnet", splits)
    return nn.models.ResNet(8, num_classes=len(splits.classes), in_channels=splits.train.x.shape[1])


def _gpt(splits: Splits) -> nn.Module:
    x, _ = splits.train[0]
    if x.ndim != 1 or x.dtype.kind not in "iu":
        raise ValueError("gpt reads text, not images: choose --data stdlib_text")
    return nn.models.GPT(vocab_size=len(splits.classes), block_size=len(x), n_layer=2, n_head=4, n_embd=64)


def _image_size(model: str, splits: Splits, channels: int | None = None) -> int:
    x, _ = splits.train[0]
    if x.ndim != 3 or (channels is not None and x.shape[0] != channels):
        wanted = "grey images" if channels == 1 else "images"
        raise ValueError(
            f"{model} reads {wanted}, but a sample of this data has shape {x.shape}: choose another --model"
        )
    return int(x.shape[-1])


MODELS = {
    "mlp": Recipe(_mlp, "sgd", 0.1, "perceptron with one hidden layer of 128"),
    "lenet": Recipe(_lenet, "sgd", 0.05, "LeCun et al. 1998, tanh and average pooling"),
    "resnet": Recipe(_resnet, "sgd", 0.1, "ResNet-8: three stages of one residual block"),
    "gpt": Recipe(_gpt, "adamw", 3e-3, "two transformer blocks of width 64"),
}


def build_model(name: str, data_name: str) -> nn.Module:
    return MODELS[name].build(data.load(data_name))


def build_optimizer(name: str, lr: float, parameters: Iterable[Any]) -> optim.Optimizer:
    if name == "sgd":
        return optim.SGD(parameters, lr=lr, momentum=0.9)
    return optim.AdamW(parameters, lr=lr)


def optimizer_of(model: str, lr: float) -> Callable[[Iterable[Any]], optim.Optimizer]:
    """The optimizer that goes with a model: SGD with momentum 0.9, or AdamW for gpt."""
    return partial(build_optimizer, MODELS[model].optimizer, lr)


def check_name(kind: str, name: str, names: Iterable[str]) -> str:
    """`name` if it is one of `names`; else ValueError with the choices and the nearest of them."""
    choices = sorted(names)
    if name in choices:
        return name
    near = difflib.get_close_matches(name, choices, n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    raise ValueError(f"unknown {kind} {name!r}: choose one of {', '.join(choices)}.{guess}")
