"""The parts of a notebook as nbformat has them, without nbformat, whose import takes longer than a small check."""

from __future__ import annotations

from typing import Any


class Node(dict[str, Any]):
    """A notebook, a cell or metadata: the keys are attributes too. Functions of nbformat accept it."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value
