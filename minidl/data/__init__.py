"""Data sets that need no download, MNIST and CIFAR-10, and minibatches for one rank or many."""

from minidl.data.cifar import cifar10
from minidl.data.dataset import Dataset, Splits
from minidl.data.digits import digits
from minidl.data.errors import DataError
from minidl.data.glyphs import glyphs
from minidl.data.loader import Batch, DataLoader
from minidl.data.mnist import fashion_mnist, mnist
from minidl.data.registry import NAMES, load
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
