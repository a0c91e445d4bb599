"""Letters of 28x28 pixels, rendered from the fonts in matplotlib: data of MNIST's size without a download."""

from __future__ import annotations

import string
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from minidl.arguments import whole_number
from minidl.data.cache import cached_arrays
from minidl.data.dataset import DataError, Splits, image_splits
from minidl.random import Purpose, stream

if TYPE_CHECKING:
    from PIL.Image import Image

VERSION = 2  # increase it with every change below that alters the images, so that old caches are not used
SIZE = 28  # pixels
CANVAS = 4 * SIZE  # letters are rendered and distorted at four times the size, then averaged down

TRAIN_FONTS = (
    "DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSerif",
    "DejaVuSerif-Bold", "DejaVuSerif-Italic", "STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic", "cmr10", "cmb10",
    "cmti10",
)  # fmt: skip
TEST_FONTS = (
    "DejaVuSansMono-BoldOblique", "DejaVuSerif-BoldItalic", "STIXGeneralBolIta", "cmss10", "cmtt10",
)  # fmt: skip


def glyphs(n_train: int = 6000, n_test: int = 1000, seed: int = 0) -> Splits:
    """Return images of the capital letters A to Z, in 26 classes.

    Parameters
        n_train    number of training images
        n_test     number of test images
        seed       seed of the random numbers

    Returns
        Splits with images (n, 1, 28, 28) float32 and labels (n,) int64; A is 0

    Each image is a letter of a random font, slanted, scaled, rotated, shifted and overlaid with noise. The test set
    uses five fonts that the training set does not, so that test accuracy measures generalisation to unseen shapes.
    Class sizes differ by at most one. Pixels are scaled to 0..1, then the training set's mean image is subtracted.

    Equal arguments give equal images on one installation. Images are rendered once (some seconds), then read from a
    cache folder; a damaged cache is rendered again. Raises DataError if matplotlib's fonts are missing.

    >>> train, test = glyphs(n_train=52, n_test=26)
    >>> train.x.shape, train.classes[0]
    ((52, 1, 28, 28), 'A')
    """
    whole_number("n_train", n_train, at_least=1)
    whole_number("n_test", n_test, at_least=1)
    whole_number("seed", seed, at_least=0)
    arrays = cached_arrays(
        f"glyphs-v{VERSION}-{n_train}-{n_test}-seed{seed}",
        lambda: _draw(n_train, n_test, seed),
    )
    return image_splits(
        "glyphs",
        string.ascii_uppercase,
        (arrays["x_train"], arrays["y_train"]),
        (arrays["x_test"], arrays["y_test"]),
    )


def _draw(n_train: int, n_test: int, seed: int) -> dict[str, NDArray[np.uint8]]:
    """Return images (n, 1, 28, 28) and labels (n,) of both sets, each from its own fonts and random numbers."""
    from rich.console import Console
    from rich.progress import Progress

    arrays: dict[str, NDArray[np.uint8]] = {}
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("drawing glyphs", total=n_train + n_test)
        sets = (("train", TRAIN_FONTS, n_train), ("test", TEST_FONTS, n_test))
        for name, fonts, n in sets:
            rng = stream(Purpose.GLYPHS, seed, name)
            letters = [_letters(font) for font in fonts]
            labels = rng.permutation(np.arange(n) % 26).astype(np.uint8)
            images = np.empty((n, 1, SIZE, SIZE), np.uint8)
            for i, label in enumerate(labels):
                images[i, 0] = _distort(letters[rng.integers(len(fonts))][label], rng)
                progress.advance(task)
            arrays[f"x_{name}"], arrays[f"y_{name}"] = images, labels
    return arrays


def _letters(font_name: str) -> list[Image]:
    """Return the letters A to Z of one font, white on black; the larger side fills three quarters of the canvas."""
    from matplotlib import get_data_path
    from PIL import Image, ImageDraw, ImageFont

    path = Path(get_data_path()) / "fonts" / "ttf" / f"{font_name}.ttf"
    try:
        font = ImageFont.truetype(path, size=CANVAS)
    except OSError as error:
        raise DataError(f"cannot read matplotlib's font {path} ({error}): install matplotlib again") from error
    letters = []
    for letter in string.ascii_uppercase:
        left, top, right, bottom = font.getbbox(letter)
        fitted = font.font_variant(size=0.75 * CANVAS**2 / max(right - left, bottom - top))
        left, top, right, bottom = fitted.getbbox(letter)
        image = Image.new("L", (CANVAS, CANVAS))
        corner = ((CANVAS - right - left) / 2, (CANVAS - bottom - top) / 2)
        ImageDraw.Draw(image).text(corner, letter, fill=255, font=fitted)
        letters.append(image)
    return letters


def _distort(letter: Image, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return a 28x28 image of the letter with random slant, scale, rotation, shift, contrast and noise."""
    from PIL.Image import Resampling, Transform

    angle = np.deg2rad(rng.uniform(-10, 10))
    slant = rng.uniform(-0.1, 0.1)
    scale = rng.uniform(0.8, 1.1, size=2)
    shift = rng.uniform(-2, 2, size=2) * CANVAS / SIZE
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    forward = turn @ np.array([[1, slant], [0, 1]]) @ np.diag(scale)
    back = np.linalg.inv(forward)  # PIL maps each pixel of the result back to its source
    centre = np.full(2, CANVAS / 2)
    offset = centre - back @ (centre + shift)
    coefficients = (*back[0], offset[0], *back[1], offset[1])
    moved = letter.transform(letter.size, Transform.AFFINE, coefficients, Resampling.BILINEAR).reduce(CANVAS // SIZE)
    ink = rng.uniform(0.6, 1.0) * np.asarray(moved, dtype=np.float64)
    noisy = ink + rng.uniform(0, 30) * rng.standard_normal(ink.shape)
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
