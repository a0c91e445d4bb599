"""The number of elements of an array, which may be called as PyTorch's `size()`."""

from __future__ import annotations

from minidl.kernels import Array


class ElementCount(int):
    """An integer, as numpy's `x.size`; called, the shape, as PyTorch's `x.size()` and `x.size(0)`.

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
