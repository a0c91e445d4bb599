"""Docstrings use the field's words: replica, shard, share, concurrent, notified; not words of this house's own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

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
"""Words that this house once used in a sense of its own, and the field's words for it."""

ALLOWED = {
    ("minidl/compress/dgc.py", "as far as"): "a distance: an entry has moved as far as in T steps",
    ("minidl/kernels/jit/convolution_by_product.py", "so many"): "so many filters that ...",
    ("minidl/nn/building.py", "part"): "a public name: nn.building(part)",
    ("minidl/parallel/strategy.py", "parts"): "a public name: session.parts()",
}
"""Where such a word has its usual meaning, and which."""

PATTERN = re.compile(rf"\b(?:{'|'.join(HOUSE_WORDS)})\b", re.IGNORECASE)


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring in the file, those of private names and of constants included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def house_words(text: str) -> list[str]:
    """The house's words in the text, also where a line ends within them."""
    return PATTERN.findall(re.sub(r"\s+", " ", text))


def test_no_docstring_uses_a_word_in_the_sense_of_this_house_alone() -> None:
    found = []
    for path in sorted((ROOT / "minidl").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for line, text in docstrings(path):
            found += [f"{name}:{line}: {word}" for word in house_words(text) if (name, word.lower()) not in ALLOWED]
    assert not found, f"use the field's words instead: {HOUSE_WORDS}\n" + "\n".join(found)


@pytest.mark.parametrize(
    "sentence",
    [
        "gradient of this node's part of the mean loss",
        "into so many\n    pieces a node's gradient is cut",
        "Who holds the weights calls `processed`; whoever counts them ends the run",
        "Groups of gradients are handed on in one order",
        "Nobody else is left to hear",
    ],
)
def test_a_house_word_is_found(sentence: str) -> None:
    assert house_words(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "This node's share of the minibatch, one row per epoch.",
        "Rank partners exchange partial sums on the keyboard.",
        "Tell the launcher; the rank is notified and hands over the result.",
    ],
)
def test_words_of_the_field_pass(sentence: str) -> None:
    assert not house_words(sentence)
