"""MNIST and Fashion-MNIST: 70,000 images of 28x28 pixels each, in the idx format."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minidl.data.cache import data_folder
from minidl.data.dataset import DataError, Splits, image_splits
from minidl.data.downloads import RemoteFile, download

NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")

SIZE = (28, 28)  # pixels of an image
UNSIGNED_BYTE = 0x08  # the type of the elements of an idx file

MNIST_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
MNIST_SHA256 = (
    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
)
FASHION_MIRRORS = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
)
FASHION_SHA256 = (
    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
)
FASHION_CLASSES = (
    "T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip


def mnist(root: str | os.PathLike[str] | None = None) -> Splits:
    """Return MNIST's handwritten digits: 60,000 images for training and 10,000 for testing.

    Parameters
        root    folder of the files; default a cache folder

    Returns
        Splits with images (n, 1, 28, 28) float32 and labels (n,) int64

    Pixels are scaled to 0..1, then the training set's mean image is subtracted. The four files, compressed or not, are
    read from `root` or from `root/MNIST/raw`, where torchvision keeps them; missing ones are downloaded into `root`.
    Raises DataError, with what to do, if a download fails or a file is damaged.

    >>> train, test = mnist("data")  # doctest: +SKIP

    References
        Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document recognition",
        Proceedings of the IEEE 86(11), 1998.
    """
    return _idx_splits("mnist", root, "MNIST/raw", "0123456789", MNIST_MIRRORS, MNIST_SHA256)


def fashion_mnist(root: str | os.PathLike[str] | None = None) -> Splits:
    """Return Fashion-MNIST: images of clothes in 10 classes, with the sizes and preprocessing of `mnist`.

    torchvision's folder is `root/FashionMNIST/raw`.

    >>> train, test = fashion_mnist("data")  # doctest: +SKIP

    References
        H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST", arXiv 1708.07747, 2017 (MIT licence).
    """
    return _idx_splits("fashion_mnist", root, "FashionMNIST/raw", FASHION_CLASSES, FASHION_MIRRORS, FASHION_SHA256)


def _idx_splits(
    name: str,
    root: str | os.PathLike[str] | None,
    torchvision_folder: str,
    classes: Sequence[str],
    mirrors: Sequence[str],
    checksums: Sequence[str],
) -> Splits:
    folder = data_folder() / name if root is None else Path(root).expanduser()
    paths = {}
    missing = []
    for idx_name, sha256 in zip(NAMES, checksums, strict=True):
        spellings = (idx_name, idx_name.replace("-idx", ".idx"))  # the second one: unpacked by some archivers
        places = [
            place / f"{spelling}{ending}"
            for place in (folder, folder / torchvision_folder)
            for spelling in spellings
            for ending in ("", ".gz")
        ]
        found = next((path for path in places if path.exists()), None)
        if found is None:
            missing.append(RemoteFile(f"{idx_name}.gz", sha256, tuple(f"{mirror}{idx_name}.gz" for mirror in mirrors)))
        paths[idx_name] = found or folder / f"{idx_name}.gz"
    download(missing, folder)
    train, test = (_read_set(paths[images], paths[labels], len(classes)) for images, labels in (NAMES[:2], NAMES[2:]))
    return image_splits(name, classes, train, test)


def _read_set(images_path: Path, labels_path: Path, n_classes: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    images, labels = read_idx(images_path, ndim=3), read_idx(labels_path, ndim=1)
    if images.shape[1:] != SIZE:
        raise DataError(f"{images_path} has images of {' x '.join(map(str, images.shape[1:]))} pixels, not of 28 x 28")
    if len(images) != len(labels):
        raise DataError(f"{images_path} has {len(images):,} images but {labels_path} has {len(labels):,} labels")
    if labels.max(initial=0) >= n_classes:
        raise DataError(f"{labels_path} has the label {labels.max()}, but there are {n_classes} classes, from 0")
    return images[:, None], labels


def read_idx(path: Path, ndim: int) -> NDArray[np.uint8]:
    """Return the array of unsigned bytes with `ndim` dimensions in an idx file; a name in .gz means gzip.

    The file holds two zero bytes, the type (8 for unsigned bytes), the number of dimensions, the dimensions as 32-bit
    integers, then the elements row by row. Raises DataError for any other contents.

    References
        Y. LeCun, C. Cortes, C. Burges, The MNIST database, "File formats" (yann.lecun.com/exdb/mnist).
    """
    try:
        contents = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:  # gzip raises any of these for a broken file
        raise _damaged(path, str(error)) from error
    header = struct.Struct(f">HBB{ndim}I")
    if len(contents) < header.size:
        raise _damaged(path, f"it ends after {len(contents)} bytes, inside its header")
    zero, kind, dimensions, *shape = header.unpack_from(contents)
    if (zero, kind, dimensions) != (0, UNSIGNED_BYTE, ndim):
        raise _damaged(path, f"it is not an idx file of unsigned bytes in {ndim} dimensions")
    if len(contents) != header.size + prod(shape):
        raise _damaged(path, f"its header announces {prod(shape):,} bytes, but {len(contents) - header.size:,} follow")
    try:
        return np.frombuffer(contents, np.uint8, offset=header.size).reshape(shape)
    except ValueError as error:  # one dimension is 0, and the others are too large for any array
        raise _damaged(path, f"its header announces the shape {tuple(shape)}") from error


def _damaged(path: Path, reason: str) -> DataError:
    return DataError(f"cannot read {path} ({reason}): remove the file, and it will be downloaded again")
