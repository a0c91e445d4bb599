"""Data sets that need no download, MNIST and CIFAR-10, files of one's own, and minibatches for one rank or many.

`loader.py` has the minibatches, `sampler.py` their order. `read_ahead.py` reads the next ones in a thread;
`sample_cache.py` keeps samples in memory and evicts by next use. `resized.py` has images at another size.
"""

from collections.abc import Callable
from typing import Any

from minidl.arguments import one_of
from minidl.data.cifar import cifar10
from minidl.data.dataset import DataError, Dataset, Splits
from minidl.data.digits import digits
from minidl.data.glyphs import glyphs
from minidl.data.loader import Batch, DataLoader
from minidl.data.mnist import fashion_mnist, mnist
from minidl.data.own_files import is_path, read
from minidl.data.resized import resized
from minidl.data.sample_cache import SampleCache
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
    "SampleCache",
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
    "resized",
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
"""The data sets that `load` knows by name."""


def load(name: str, **options: Any) -> Splits:
    """Return the data set `name`, one of NAMES, or one of your own from a file or folder.

    Parameters
        name       a name; or NAME.npz, arrays x_train, y_train, x_test, y_test, or x, y;
                   or NAME.csv, a row for each sample, its class in the column `label`, else in the last one;
                   or NAME.txt, a text whose last tenth is for testing;
                   or a folder with images in folders named by class, below `train` and `test` if there are these
        options    those of the function of that name

    Notes
        Of a file, x becomes float32, y int64: class k has the label classes[k], in sorted order.
        If there is no test set, a fifth of the samples, drawn with a fixed seed, is for testing.
        Labels that are numbers must be whole, and at most ten or shared by five samples on average: others look like a
        quantity and are refused.
        Arrays of uint8, and images of whole numbers 0..255 of any type, are scaled to 0..1, and the training set's mean
        is subtracted. The columns of a table get the mean 0 and the standard deviation 1 in the training set. Other
        arrays keep their values.
        Images become (n, channels, height, width), upright, on white where they are transparent. A column named id or
        index, and a first column that counts the rows, are left out.
        A text's symbols are its characters; windows have 64 of them.

    Raises
        ValueError  an unknown name
        DataError   a file is missing or of another form; the message says what to change

    >>> train, test = load("spirals", n=50)
    """
    if name not in NAMES and is_path(name):
        return read(name)
    return _DATA_SETS[one_of("name", name, NAMES, hint="a file of your own has an ending, such as NAME.npz")](**options)
