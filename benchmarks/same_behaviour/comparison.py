"""Comparing two records: what is in one and not in the other, and every value that differs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

ABSENT = "(not there)"
REFUSED = "refused by"  # begins a value that stands for an error, of which the type follows


@dataclass(frozen=True)
class Difference:
    """A value that differs: the case, the path to the value inside what the case gave, and the value on each side."""

    case: str
    path: str
    here: str
    there: str

    @property
    def is_error_type(self) -> bool:
        """Whether both sides refuse the same argument, by different errors."""
        return self.here.startswith(REFUSED) and self.there.startswith(REFUSED)


def leaves(value: Any, path: str = "") -> dict[str, str]:
    """Every number and text inside nested dictionaries and lists, by its path; empty ones count as a leaf."""
    if isinstance(value, dict) and value:
        children: Iterable[tuple[str, Any]] = value.items()
    elif isinstance(value, list) and value:
        children = ((f"[{index}]", item) for index, item in enumerate(value))
    else:
        return {path: value if isinstance(value, str) else repr(value)}
    return {
        place: leaf for key, item in children for place, leaf in leaves(item, f"{path}/{key}" if path else key).items()
    }


def is_error(value: Any) -> bool:
    """Whether a case ended in an exception, or with an error as its result."""
    return isinstance(value, dict) and "error" in value


def shortly(value: Any) -> str:
    """An error with its text, or that there is a result."""
    return f"{value['error']}: {value.get('text', '')}" if is_error(value) else "(a result)"


def differences(here: dict[str, Any], there: dict[str, Any]) -> list[Difference]:
    """All differences between two records, each a dictionary from a case's name to what it gave."""
    found = []
    for case in sorted({*here, *there}):
        if case not in there:
            found.append(Difference(case, "", "(there)", ABSENT))
        elif case not in here:
            found.append(Difference(case, "", ABSENT, "(there)"))
        elif is_error(here[case]) != is_error(there[case]):
            found.append(Difference(case, "", shortly(here[case]), shortly(there[case])))
        else:
            mine, other = leaves(here[case]), leaves(there[case])
            for path in [*mine, *(path for path in other if path not in mine)]:
                values = mine.get(path, ABSENT), other.get(path, ABSENT)
                if values[0] != values[1]:
                    found.append(Difference(case, path, *values))
    return found
