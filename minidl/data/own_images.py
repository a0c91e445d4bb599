"""Images in files, as arrays; in folders that are named by class."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl.data.dataset import DataError

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")


def images_among(files: Iterable[Path]) -> list[Path]:
    """Those of the files that are images, in order."""
    return sorted(file for file in files if file.suffix.lower() in IMAGES and not file.name.startswith("."))


def images_below(folder: Path) -> list[Path]:
    """The images in folders within the folder, also those behind links; what begins with a dot is left out."""
    files = []
    for at, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(at, name) for name in names]
    return images_among(files)


def images_by_class(folder: Path, channels: int | None = None) -> tuple[NDArray[Any], NDArray[Any], tuple[str, ...]]:
    """The images (n, channels, height, width), their classes, and their files within the folder."""
    files = images_below(folder)
    for file in files:
        if file.parent.parent != folder:
            raise DataError(
                f"{file} is not where a class has its images, such as {folder}/cat/1.png (or below {folder}/train and "
                f"{folder}/test): move it"
            )
    if not files:
        raise DataError(f"{folder} has no images in folders that are named by class, such as {folder}/cat/1.png")
    names = tuple(file.relative_to(folder).as_posix() for file in files)
    return pixels_of(files, channels), np.array([file.parent.name for file in files]), names


def pixels_of(files: Sequence[Path], channels: int | None = None) -> NDArray[Any]:
    """Images (n, channels, height, width) of one size, upright, on white; by default one channel if all are grey."""
    from PIL import Image, ImageOps

    pixels, is_grey = [], True
    unreadable: list[str] = []
    of_size: dict[tuple[int, int], list[Path]] = {}
    for file in files:
        try:
            with Image.open(file) as opened:
                image = ImageOps.exif_transpose(opened)
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            unreadable.append(f"{file} ({error})")
            continue
        if image.mode[0] in "IF":
            raise DataError(
                f"{file} has more than 8 bits for a pixel (mode {image.mode}): convert it, or give NAME.npz"
            )
        is_grey = is_grey and image.mode in ("1", "L", "LA")
        if image.has_transparency_data:
            image = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
        pixels.append(np.asarray((image.convert("L") if channels == 1 else image).convert("RGB")))
        of_size.setdefault(image.size, []).append(file)
    if unreadable:
        raise DataError(
            f"cannot read {len(unreadable)} of {len(files)} images: {', '.join(unreadable[:5])}: remove them"
        )
    if len(of_size) > 1:
        sizes = sorted(of_size.items(), key=lambda item: -len(item[1]))
        (width, height), _ = sizes[0]
        described = (f"{len(those)} of {w} x {h} pixels, such as {those[0]}" for (w, h), those in sizes[:3])
        raise DataError(
            f"images of {len(of_size)} sizes: {'; '.join(described)}: give all one size, by PIL.ImageOps.fit(image, "
            f"({width}, {height}))"
        )
    return np.stack(pixels).transpose(0, 3, 1, 2)[:, : channels or (1 if is_grey else 3)]
