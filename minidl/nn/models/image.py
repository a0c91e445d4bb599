"""What the networks whose linear layers fix the size of the image say to an image of another size."""

from __future__ import annotations

from typing import Any


def check_image_size(model: str, x: Any, channels: int, size: int) -> None:
    """ValueError unless x has shape (n, channels, size, size)."""
    if x.shape[1:] != (channels, size, size) or x.ndim != 4:
        raise ValueError(f"{model}: images (n, {channels}, {size}, {size}) expected, got {x.shape}")
