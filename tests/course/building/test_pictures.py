"""Pictures in notebooks are made small, and keep their colours."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from course.building.pictures import with_palette


def png(pixels: np.ndarray, mode: str) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels, mode).save(out, "PNG")
    return out.getvalue()


def test_a_picture_of_few_colours_keeps_each_pixel():
    colours = np.random.default_rng(1).integers(0, 256, (20, 3), dtype=np.uint8)
    pixels = colours[np.random.default_rng(2).integers(0, 20, (60, 80))]
    small = Image.open(io.BytesIO(with_palette(png(pixels, "RGB"))))
    assert small.mode == "P"
    assert (np.asarray(small.convert("RGB")) == pixels).all()


def test_a_transparent_picture_is_left_as_it_is():
    pixels = np.full((30, 30, 4), 100, dtype=np.uint8)
    assert with_palette(png(pixels, "RGBA")) == png(pixels, "RGBA")
