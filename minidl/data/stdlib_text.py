"""The source of Python's standard library as text: half a million characters that are on every machine."""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from minidl.arguments import whole_number
from minidl.data.dataset import DataError, Dataset, Splits

# Newline and printable ASCII. A symbol's token is its index here.
VOCABULARY = "\n" + "".join(chr(code) for code in range(32, 127))
_TOKEN_OF_BYTE = np.full(256, -1, dtype=np.int64)
_TOKEN_OF_BYTE[np.frombuffer(VOCABULARY.encode(), np.uint8)] = np.arange(len(VOCABULARY))

# Folders that are read, relative to the library's.
PACKAGES = (
    ".", "asyncio", "collections", "email", "html", "http", "importlib", "json", "logging", "multiprocessing",
    "unittest", "urllib", "wsgiref", "xmlrpc", "zoneinfo",
)  # fmt: skip


class Windows(Dataset):
    """Windows of a text, for learning to predict the next symbol.

    Parameters
        tokens        the text, int64
        block_size    symbols per window, T
        stride        symbols from the start of one window to the next

    Sample i is `tokens[j : j + T]` with the targets `tokens[j + 1 : j + T + 1]`, j = i * stride. `x` and `y` are views
    (n, T) of the tokens: overlapping windows take no memory until they are indexed.

    >>> x, y = Windows(np.arange(10), block_size=3, stride=3)[1]
    >>> x, y
    (array([3, 4, 5]), array([4, 5, 6]))
    """

    def __init__(
        self, tokens: NDArray[np.int64], block_size: int, stride: int, name: str = "text", classes: Iterable[str] = ()
    ) -> None:
        self.block_size = whole_number("block_size", block_size, at_least=1)
        self.stride = whole_number("stride", stride, at_least=1)
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
        """Pickle the tokens, not the views: pickle would write each window in full."""
        return Windows, (self.tokens, self.block_size, self.stride, self.name, self.classes)


def stdlib_text(block_size: int = 64, n_chars: int = 500_000, stride: int | None = None) -> Splits:
    """Return the source of Python's standard library as windows of symbols.

    Parameters
        block_size    symbols per window
        n_chars       characters in total: nine tenths for training, the rest for testing
        stride        symbols from the start of one window to the next; default block_size, so that an epoch predicts
                      each symbol once; 1 gives all overlapping windows

    Returns
        Splits with tokens (n, block_size) int64; the targets are the tokens one symbol later; `classes` is the
        vocabulary of 96 symbols

    Training and test set have no file in common. The names of the files alone decide their order and their set, so
    that the same Python gives the same text. Raises DataError if there is not enough source.

    >>> train, test = stdlib_text(block_size=8, n_chars=10_000)
    >>> train.x.shape, train.y.shape
    ((1124, 8), (1124, 8))
    """
    whole_number("block_size", block_size, at_least=1)
    whole_number("n_chars", n_chars, at_least=10)
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
    """Return the tokens of a text, int64; characters outside the vocabulary are dropped.

    The vocabulary is newline and printable ASCII.

    >>> encode("a\\tb")
    array([66, 67])
    """
    tokens = _TOKEN_OF_BYTE[np.frombuffer(text.encode("ascii", errors="ignore"), np.uint8)]
    return tokens[tokens >= 0]


def decode(tokens: Iterable[int] | NDArray[np.integer]) -> str:
    """Return the text of `tokens`; ValueError for a token outside the vocabulary.

    >>> decode([66, 67])
    'ab'
    """
    numbers = np.asarray(tokens if isinstance(tokens, np.ndarray) else list(tokens), dtype=np.int64)
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(VOCABULARY):
        raise ValueError(f"tokens lie in 0..{len(VOCABULARY) - 1}, not {numbers.min()}..{numbers.max()}")
    return "".join(VOCABULARY[token] for token in numbers.ravel())


def unigram_entropy(tokens: NDArray[np.integer]) -> float:
    """Return the entropy in nats of the symbols' frequencies: the least cross-entropy without context.

    >>> round(unigram_entropy(np.array([0, 1, 0, 1])), 4)
    0.6931
    """
    counts = np.bincount(np.ravel(tokens))
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log(p)).sum())


def source_files() -> list[str]:
    """Return the paths of Python's library modules, relative to its folder: those in PACKAGES.

    `_sysconfigdata` is left out: it depends on how and where this Python was compiled.
    """
    library = _library()
    files = (path for package in PACKAGES for path in (library / package).glob("*.py"))
    return sorted(path.relative_to(library).as_posix() for path in files if not path.name.startswith("_sysconfigdata"))


def _library() -> Path:
    return Path(sysconfig.get_path("stdlib"))


def _name_hash(name: str) -> int:
    """Hash a module's name: the numbers give a shuffled order and split that are always the same."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def _read_tokens(names: Iterable[str], n: int) -> NDArray[np.int64]:
    """Return the first `n` tokens of the concatenated modules."""
    modules: list[NDArray[np.int64]] = []
    found = 0
    for name in names:
        if found >= n:
            break
        modules.append(encode((_library() / name).read_text(encoding="utf-8", errors="ignore")))
        found += len(modules[-1])
    if found < n:
        raise DataError(
            f"stdlib_text needs {n:,} characters of Python source for one of its sets but found {found:,} in "
            f"{_library()}: ask for fewer with n_chars"
        )
    return np.concatenate(modules)[:n]
