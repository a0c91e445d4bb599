"""Data sets by name, for the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidl.arguments import one_of
from minidl.data.cifar import cifar10
from minidl.data.dataset import Splits
from minidl.data.digits import digits
from minidl.data.glyphs import glyphs
from minidl.data.mnist import fashion_mnist, mnist
from minidl.data.spirals import spirals
from minidl.data.stdlib_text import stdlib_text

_DATA_SETS: dict[str, Callable[..., Splits]] = {
    "digits": digits,
    "glyphs": glyphs,
    "stdlib_text": stdlib_text,
    "spirals": spirals,
    "mnist": mnist,
    "fashion_mnist": fashion_mnist,
    "cifar10": cifar10,
}
NAMES = tuple(_DATA_SETS)


def load(name: str, **options: Any) -> Splits:
    """Return the data set `name`, one of NAMES; `options` are those of its function.

    Raises ValueError for an unknown name.

    >>> train, test = load("spirals", n=50)
    """
    return _DATA_SETS[one_of("name", name, NAMES)](**options)
