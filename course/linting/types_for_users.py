"""A program that uses minidl, with mistakes that its types must show; only mypy reads it.

An `ignore` where mypy finds no mistake is itself a complaint. So mypy fails if users' mistakes stay hidden, for
instance because names that are loaded when needed have no types.
"""

from __future__ import annotations

from typing import assert_type

from minidl import Tensor, cluster, nn


def program() -> None:
    assert_type(Tensor([1.0]) + 1.0, Tensor)
    number: int = Tensor([1.0])  # type: ignore[assignment]
    nn.Linaer(number, 5)  # type: ignore[attr-defined]
    cluster.lunch(print)  # type: ignore[attr-defined]
