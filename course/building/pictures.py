"""Smaller pictures for notebooks: a plot has few colours, so one byte a pixel is enough."""

from __future__ import annotations

import base64
import io

import nbformat
from PIL import Image

COLOURS = 256


def shrink(notebook: nbformat.NotebookNode) -> None:
    """Replace each PNG among the outputs by one with a palette, where that is smaller."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if png := output.get("data", {}).get("image/png"):
                smaller = with_palette(base64.b64decode(png))
                output["data"]["image/png"] = base64.b64encode(smaller).decode()


def with_palette(png: bytes) -> bytes:
    """An opaque PNG in at most 256 colours; a transparent one, or one that would not become smaller, as it is.

    >>> plain = io.BytesIO()
    >>> Image.new("RGB", (200, 100), (31, 119, 180)).save(plain, "PNG")
    >>> Image.open(io.BytesIO(with_palette(plain.getvalue()))).mode
    'P'
    """
    picture = Image.open(io.BytesIO(png))
    if picture.mode == "P" or picture.convert("RGBA").getchannel("A").getextrema() != (255, 255):
        return png
    palette = picture.convert("RGB").quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    out = io.BytesIO()
    palette.save(out, "PNG", optimize=True)
    return out.getvalue() if len(out.getvalue()) < len(png) else png
