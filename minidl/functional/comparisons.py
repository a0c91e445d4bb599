"""Comparisons, `x > 0`: a tensor of booleans, elementwise, for `where` and for indexing; no gradient passes.

>>> from minidl import Tensor
>>> Tensor([-1.0, 2.0]) > 0
Tensor([False,  True], bool)

`==` is not among them: two tensors are equal only if they are one and the same, so that they can be keys of a dict.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from minidl.functional.bind import operand, tensor_method
from minidl.tensor import Tensor, record


def _elementwise(compare: Callable[[Any, Any], Any]) -> Callable[[Tensor, Any], Tensor]:
    def comparison(a: Tensor, b: Any) -> Tensor:
        return record(compare(a.data, operand(b, a).data), (), None)

    return comparison


for name, compare in (
    ("__lt__", operator.lt),
    ("__le__", operator.le),
    ("__gt__", operator.gt),
    ("__ge__", operator.ge),
):
    tensor_method(name)(_elementwise(compare))
