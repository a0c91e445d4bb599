"""Networks of convolutions and then linear layers, which fix the size of the images."""

from __future__ import annotations

from math import prod
from typing import Any

from minidl.nn.container import Sequential
from minidl.nn.module import Module
from minidl.nn.stages import Stage


def check_image_size(model: str, x: Any, channels: int, size: int) -> None:
    """Raise ValueError unless x has shape (n, channels, size, size)."""
    if x.shape[1:] != (channels, size, size) or x.ndim != 4:
        raise ValueError(f"{model}: images (n, {channels}, {size}, {size}) expected, got {x.shape}")


def units(module: Module) -> list[Module]:
    """The layers of a Sequential; another module, which a user may have put in its place, is one unit."""
    return list(module) if type(module) is Sequential and len(module) else [module]


def features_then_classifier(model: str, size: int, features: Module, classifier: Module) -> list[Stage]:
    """The stages of a network that reads images (n, 3, size, size): each layer, with the maps flattened in between."""
    first, *middle = units(features)
    head, *last = units(classifier)

    def checked(x: Any) -> Any:
        check_image_size(model, x, 3, size)
        return first(x)

    def flattened(maps: Any) -> Any:
        return head(maps.reshape(maps.shape[0], prod(maps.shape[1:])))

    return [
        Stage(checked, first),
        *[Stage(layer, layer) for layer in middle],
        Stage(flattened, head),
        *[Stage(layer, layer) for layer in last],
    ]
