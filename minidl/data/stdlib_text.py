"""The installed Python's own library as text: half a million characters that every machine has, read where they lie."""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from minidl.data.checks import at_least
from minidl.data.dataset import Dataset, Splits
from minidl.data.errors import DataError

# Printable ASCII. A symbol's token is its position here.
VOCABULARY = "\n" + "".join(chr(code) for code in range(32, 127))
_TOKEN_OF_BYTE = np.full(256, -1, dtype=np.int64)
_TOKEN_OF_BYTE[np.frombuffer(VOCABULARY.encode(), np.uint8)] = np.arange(len(VOCABULARY))

# The folders that are read, below the library's; "." is the library's own.
PACKAGES = (
    ".",
    "asyncio",
    "collections",
    "email",
    "html",
    "http",
    "importlib",
    "json",
    "logging",
    "multiprocessing",
    "unittest",
    "urllib",
    "wsgiref",
    "xmlrpc",
    "zoneinfo",
)


class Windows(Dataset):
    """Windows of a text for learning to predict the next symbol: sample i is `tokens[j : j + T]` with the targets
    `tokens[j + 1 : j + T + 1]`, where T is `block_size` and j = i * `stride`.

    `x` and `y` are views of shape (n, T) into the tokens: overlapping windows take no memory until they are picked.

    >>> x, y = Windows(np.arange(10), block_size=3, stride=3)[1]
    >>> x, y
    (array([3, 4, 5]), array([4, 5, 6]))
    """

    def __init__(
        self, tokens: NDArray[np.int64], block_size: int, stride: int, name: str = "text", classes: Iterable[str] = ()
    ) -> None:
        self.block_size = at_least("block_size", block_size, 1)
        self.stride = at_least("stride", stride, 1)
        self.tokens = np.asarray(tokens, dtype=np.int64)
        if len(self.tokens) <= self.block_size:
            raise ValueError(
                f"{name} has {len(self.tokens)} symbols, but one window of block_size={self.block_size} with its "
                f"targets takes {self.block_size + 1}: choose a smaller block_size or a longer text"
            )
        x = sliding_window_view(self.tokens[:-1], self.block_size)[:: self.stride]
        y = sliding_window_view(self.tokens[1:], self.block_size)[:: self.stride]
        super().__init__(x, y, name, tuple(classes))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the tokens, not the views: these would each be written out in full."""
        return Windows, (self.tokens, self.block_size, self.stride, self.name, self.classes)


def stdlib_text(block_size: int = 64, n_chars: int = 500_000, stride: int | None = None) -> Splits:
    """Python's library source as windows of `block_size` symbols: tokens (n, block_size) int64, the targets one later.

    Nine tenths of the `n_chars` characters are for training; the rest, from files that the training set has no
    part of, for testing. A window starts every `stride` symbols: `block_size` unless given, so that an epoch
    predicts each symbol once; `stride=1` gives all overlapping windows. `classes` is the vocabulary of 96 symbols.

    The same Python gives the same text: which files, in which order and for which part follows from their names alone.
    Raises DataError where the library lies there without enough source.

    >>> train, test = stdlib_text(block_size=8, n_chars=10_000)
    >>> train.x.shape, train.y.shape
    ((1124, 8), (1124, 8))
    """
    at_least("block_size", block_size, 1)
    at_least("n_chars", n_chars, 10)
    stride = block_size if stride is None else stride
    n_test = n_chars // 10
    by_hash = sorted(source_files(), key=_name_hash)
    test = _read_tokens((name for name in by_hash if _name_hash(name) % 10 == 0), n_test)
    train = _read_tokens((name for name in by_hash if _name_hash(name) % 10 != 0), n_chars - n_test)
    return Splits(
        Windows(train, block_size, stride, "stdlib_text, training set", VOCABULARY),
        Windows(test, block_size, stride, "stdlib_text, test set", VOCABULARY),
        tuple(VOCABULARY),
    )


def encode(text: str) -> NDArray[np.int64]:
    """The tokens of a text, int64; characters outside the vocabulary (newline and printable ASCII) are dropped.

    >>> encode("a\\tb")
    array([66, 67])
    """
    tokens = _TOKEN_OF_BYTE[np.frombuffer(text.encode("ascii", errors="ignore"), np.uint8)]
    return tokens[tokens >= 0]


def decode(tokens: Iterable[int] | NDArray[np.integer]) -> str:
    """The text of some tokens; ValueError for a token outside the vocabulary.

    >>> decode([66, 67])
    'ab'
    """
    numbers = np.asarray(tokens if isinstance(tokens, np.ndarray) else list(tokens), dtype=np.int64)
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(VOCABULARY):
        raise ValueError(f"tokens lie in 0..{len(VOCABULARY) - 1}, not {numbers.min()}..{numbers.max()}")
    return "".join(VOCABULARY[token] for token in numbers.ravel())


def unigram_entropy(tokens: NDArray[np.integer]) -> float:
    """Entropy in nats of the symbols' frequencies: the least cross-entropy for a model that ignores the context.

    >>> round(unigram_entropy(np.array([0, 1, 0, 1])), 4)
    0.6931
    """
    counts = np.bincount(np.ravel(tokens))
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log(p)).sum())


def source_files() -> list[str]:
    """Python's library modules, as paths below its folder: the single-file ones and those of the PACKAGES.

    Left out is `_sysconfigdata`, which tells how and where this Python was compiled.
    """
    library = _library()
    files = (path for package in PACKAGES for path in (library / package).glob("*.py"))
    return sorted(path.relative_to(library).as_posix() for path in files if not path.name.startswith("_sysconfigdata"))


def _library() -> Path:
    return Path(sysconfig.get_path("stdlib"))


def _name_hash(name: str) -> int:
    """A number from a module's name: it gives an order and a split that are shuffled and yet always the same."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def _read_tokens(names: Iterable[str], n: int) -> NDArray[np.int64]:
    """The first `n` tokens of the modules read one after another."""
    pieces: list[NDArray[np.int64]] = []
    found = 0
    for name in names:
        if found >= n:
            break
        pieces.append(encode((_library() / name).read_text(encoding="utf-8", errors="ignore")))
        found += len(pieces[-1])
    if found < n:
        raise DataError(
            f"stdlib_text needs {n:,} characters of Python source for one of its parts but found {found:,} in "
            f"{_library()}: ask for fewer with n_chars"
        )
    return np.concatenate(pieces)[:n]
