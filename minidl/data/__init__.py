"""Data sets that need no download, MNIST and CIFAR-10, and minibatches for one rank or many."""

from collections.abc import Callable
from typing import Any

from minidl.arguments import one_of
from minidl.data.cifar import cifar10
from minidl.data.dataset import DataError, Dataset, Splits
from minidl.data.digits import digits
from minidl.data.glyphs import glyphs
from minidl.data.loader import Batch, DataLoader
from minidl.data.mnist import fashion_mnist, mnist
from minidl.data.sampler import DistributedSampler
from minidl.data.sparse_rows import SparseRows, sparse_rows
from minidl.data.spirals import spirals
from minidl.data.stdlib_text import Windows, decode, encode, stdlib_text, unigram_entropy
from minidl.from_pytorch import explain_missing_names

__all__ = [
    "NAMES",
    "Batch",
    "DataError",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "SparseRows",
    "Splits",
    "Windows",
    "cifar10",
    "decode",
    "digits",
    "encode",
    "fashion_mnist",
    "glyphs",
    "load",
    "mnist",
    "sparse_rows",
    "spirals",
    "stdlib_text",
    "unigram_entropy",
]

explain_missing_names(__name__, __all__)

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
