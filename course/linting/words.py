"""Docstrings use the field's words (replica, shard, share, concurrent, notified), not words of this project's own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

HOUSE_WORDS = {
    r"pieces?": "shard, chunk, share, segment or slice",
    r"parts?": "shard, share, slice or chunk; participates",
    r"told": "notified, or receives",
    r"besides?": "concurrent, next to, or in addition",
    r"hand(?:s|ed|ing)? on": "pass, send or release",
    r"so many": "a number of, or that number of",
    r"whoever": "the rank that",
    r"boards?": "fingerprints, or the shared page",
    r"crossings?": "a different order of calls, or a reordering",
    r"council": "agreement",
    r"bells?": "notification, or a self-pipe",
    r"puts? up": "posts, or publishes",
    r"hears?|heard": "receives, or detects",
    r"comes? of it": "result",
    r"as far as": "where, or to the extent that; or name what is known",
}
"""Words that this project once used in a sense of its own, and the field's words for the same."""

ALLOWED = {
    ("minidl/compress/dgc.py", "as far as"): "a distance: an entry has moved as far as in T steps",
    ("minidl/kernels/jit/convolution_by_product.py", "so many"): "so many filters that ...",
    ("minidl/nn/building.py", "part"): "a public name: nn.building(part)",
    ("minidl/parallel/memory/node_memory.py", "part"): "a public name: Part",
    ("minidl/parallel/memory/node_memory.py", "parts"): "a public name: NodeMemory.parts",
}
"""Files in which such a word has its usual meaning, and that meaning."""

PATTERN = re.compile("|".join(rf"\b({word})\b" for word in HOUSE_WORDS), re.IGNORECASE)


def house_words(root: Path) -> Iterator[str]:
    """Docstrings of minidl that use one of HOUSE_WORDS."""
    for path in sorted((root / "minidl").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        for line, text in docstrings(path.read_text(encoding="utf-8")):
            for word, better in found_in(text):
                if (name, word.lower()) not in ALLOWED:
                    yield f"{name}:{line}: {word!r} in a docstring: write {better}"


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each docstring, those of private names and of constants included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def found_in(text: str) -> Iterator[tuple[str, str]]:
    """The HOUSE_WORDS in a text, also across the end of a line, each with the field's words for it."""
    for match in PATTERN.finditer(re.sub(r"\s+", " ", text)):
        assert match.lastindex is not None  # the group of the word
        yield match[0], list(HOUSE_WORDS.values())[match.lastindex - 1]
