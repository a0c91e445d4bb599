"""Judge the mistakes that a check can name, each as an answer that makes it: is it wrong there, and is it named?

A check passes known mistakes to a comparison of `course/judging/expect.py` as `mistakes`: for each a sentence and the
values that it gives. While a right answer is judged, each comparison is made once more for each of its mistakes, with
the values of the mistake in the place of the right result. So a mistake needs no wrong answer of its own in
`tests/mutants/` unless it is not obvious that its code gives these values.

A mistake whose values depend on what the answer returned is not judged here: they are right if the answer is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from course.judging import Wrong, expect

COMPARISONS = ("array", "same_bits", "number", "same")

Named = dict[str, set[str]]
"""For each mistake's sentence, what was said where its values are wrong: the same sentence, or that of another mistake
which gives the same values there; an empty set if its values were never wrong. Numbers in sentences are left out."""


@contextmanager
def named() -> Iterator[Named]:
    """Collect what the checks in this block, of right answers, say of the mistakes that they know."""
    said: Named = defaultdict(set)
    originals = {name: getattr(expect, name) for name in COMPARISONS}
    for name, compare in originals.items():
        setattr(expect, name, also_of_mistakes(compare, said))
    try:
        yield said
    finally:
        for name, compare in originals.items():
            setattr(expect, name, compare)


def also_of_mistakes(compare: Callable[..., None], said: Named) -> Callable[..., None]:
    """A comparison that, where the result is right, is made for the values of each mistake, too."""

    def comparing(got: Any, want: Any, called: str, mistakes: dict[str, Any] | None = None, **options: Any) -> None:
        compare(got, want, called, mistakes=mistakes, **options)
        for sentence, values in (mistakes or {}).items():
            causes = said[without_numbers(sentence)]
            try:
                compare(as_returned(values), want, called, mistakes=mistakes, **options)
            except Wrong as wrong:
                causes.add(without_numbers(wrong.cause))

    return comparing


def as_returned(values: Any) -> Any:
    """The values of a mistake as an answer returns them: plain data has Python's numbers, not numpy's."""
    return values.item() if isinstance(values, np.generic) else values


def without_numbers(sentence: str) -> str:
    """
    >>> without_numbers("This is chunk 4 of the sum: the number of the chunk is off by 5.")
    'This is chunk # of the sum: the number of the chunk is off by #.'
    """
    return re.sub("[0-9]+", "#", sentence)


def unnamed(said: Named) -> list[str]:
    """The mistakes that are wrong somewhere, and never named."""
    return [sentence for sentence, causes in said.items() if causes and sentence not in causes]
