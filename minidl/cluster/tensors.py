"""Tensors are refused where arrays are sent: ranks would get copies, and the tensor would keep its own numbers."""

from __future__ import annotations

from typing import Any

from minidl.tape import Node


def refuse_tensors(operation: str, *values: Any) -> None:
    """Raise TypeError if one of the values is a Tensor."""
    for value in values:
        if isinstance(value, Node):
            raise TypeError(f"{operation} takes an array, not a {type(value).__name__}: pass its array, p.data for p")
