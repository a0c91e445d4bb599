"""The number of elements of an array, an integer that can also be called as PyTorch's `size()`."""

from __future__ import annotations

from minidl.kernels import Array


class ElementCount(int):
    """The integer `x.size`, as in numpy; `x.size()` and `x.size(0)` return the shape and a length, as in PyTorch.

    >>> from minidl import Tensor
    >>> x = Tensor([[1.0, 2.0, 3.0]])
    >>> x.size, x.size(), x.size(1)
    (3, (1, 3), 3)
    """

    _shape: tuple[int, ...]

    def __new__(cls, array: Array) -> ElementCount:
        count = super().__new__(cls, array.size)
        count._shape = array.shape
        return count

    def __call__(self, dim: int | None = None) -> tuple[int, ...] | int:
        return self._shape if dim is None else self._shape[dim]

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)
