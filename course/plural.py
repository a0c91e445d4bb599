"""Numbers with nouns in the singular or plural, and lists of names, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def counted(number: float, noun: str, plural: str = "") -> str:
    """A number with its noun; plural: the noun's plural, if it does not just add an s.

    >>> counted(1, "submission"), counted(2, "submission"), counted(0.5, "point")
    ('1 submission', '2 submissions', '0.5 points')
    """
    shown = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{shown} {noun if number == 1 else plural or noun + 's'}"


def listed(names: Sequence[str], most: int = 5, between: str = ", ") -> str:
    """The first names, and the number of the others.

    >>> listed(["a", "b", "c", "d"], most=2), listed(["a", "b"], between="; ")
    ('a, b and 2 more', 'a; b')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{between.join(names[:most])}{more}"


def there_are(names: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known names, or "none yet".

    >>> there_are(["a"]), there_are(["a", "b"]), there_are([])
    ('there is a', 'there are a, b', 'there is none yet')
    """
    known = list(names)
    return f"there {'are' if len(known) > 1 else 'is'} {', '.join(known) or 'none yet'}"
