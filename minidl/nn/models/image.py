"""The check of the image size, for networks whose linear layers fix it."""

from __future__ import annotations

from typing import Any


def check_image_size(model: str, x: Any, channels: int, size: int) -> None:
    """Raise ValueError unless x has shape (n, channels, size, size)."""
    if x.shape[1:] != (channels, size, size) or x.ndim != 4:
        raise ValueError(f"{model}: images (n, {channels}, {size}, {size}) expected, got {x.shape}")
