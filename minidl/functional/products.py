"""Sums of products: the matrix product, einsum, and the outer product.

>>> from minidl import Tensor
>>> a, b = Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]])
>>> einsum("ij,jk->ik", a, b)  # as a @ b
Tensor([[11.]], float32)
"""

from __future__ import annotations

from math import prod
from string import ascii_letters
from typing import Any

from numpy import result_type

from minidl import kernels
from minidl.functional.bind import operand, tensor_method, unbroadcast
from minidl.functional.casts import astype
from minidl.functional.elementwise import mul
from minidl.functional.one_type import autocast_dtype, in_one_type
from minidl.functional.reductions import sum
from minidl.functional.shape_errors import cannot_multiply
from minidl.functional.shapes import reshape, transpose
from minidl.kernels import Array
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.tensor import Tensor, record


@tensor_method("__matmul__", "matmul", "mm", "bmm")
def matmul(a: Any, b: Any) -> Tensor:
    """a @ b, the matrix product over the last two axes; leading axes are broadcast; vectors as in numpy.

    >>> matmul([[1.0, 2.0]], [[3.0], [4.0]])
    Tensor([[11.]], float32)
    """
    a, b = operand(a), operand(b)
    if a._data.dtype is not b._data.dtype or autocast_dtype.get() is not None:
        a, b = in_one_type("matmul", a, b)
    x, y = a._data, b._data
    try:
        product = kernels.current().matmul(x, y)
    except ValueError as error:
        raise cannot_multiply(x, y) from error
    axes = product.ndim

    def separable_vjp(g: Array, needs: Any) -> tuple[Array, Array]:
        matmul = kernels.current().matmul
        if x.ndim == y.ndim == 2:  # nearly always; the general case below takes twice as long on small matrices
            return (
                needs[0] and unbroadcast(matmul(g, y.T), x.shape, x.dtype),
                needs[1] and unbroadcast(matmul(x.T, g), y.shape, y.dtype),
            )
        rows, columns = (x[None, :] if x.ndim == 1 else x), (y[:, None] if y.ndim == 1 else y)
        g = g.reshape((*g.shape[: axes - (x.ndim > 1) - (y.ndim > 1)], rows.shape[-2], columns.shape[-1]))
        return (
            needs[0] and unbroadcast(matmul(g, columns.swapaxes(-1, -2)), rows.shape, x.dtype).reshape(x.shape),
            needs[1] and unbroadcast(matmul(rows.swapaxes(-1, -2), g), columns.shape, y.dtype).reshape(y.shape),
        )

    return record(product, (a, b), separable_vjp, saved=(0, 1))


@tensor_method("__rmatmul__")
def _multiplied_from_left(a: Tensor, b: Any) -> Tensor:
    return matmul(b, a)


def outer(a: Any, b: Any) -> Tensor:
    """All products of the elements of two vectors: out[i, j] = a[i] b[j].

    >>> outer([1.0, 2.0], [3.0, 4.0])
    Tensor([[3., 4.],
            [6., 8.]], float32)
    """
    a, b = operand(a), operand(b)
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"outer: two vectors expected, got shapes {a.shape} and {b.shape}")
    return mul(reshape(a, (-1, 1)), b)


def einsum(equation: str, *operands: Any) -> Tensor:
    """Multiply the operands, and sum over every letter that is not behind `->`.

    equation: a letter for each axis, as in "bhqd,bhkd->bhqk" for the scores of attention. `...` stands for any axes,
    which are broadcast. A letter that occurs twice in one operand takes its diagonal. Without `->`, the axes of `...`
    are kept, then the letters that occur once, in alphabetical order. Operands are contracted from left to right, by
    one matrix product each.
    Errors: ValueError for lengths that differ.

    >>> einsum("...d,d->...", [[1.0, 2.0], [3.0, 4.0]], [10.0, 1.0]), einsum("ii->", [[1.0, 2.0], [3.0, 4.0]])
    (Tensor([12., 34.], float32), Tensor(5., float32))
    """
    if not isinstance(equation, str):
        raise TypeError(
            f"einsum: the equation comes first, as in einsum('ij,jk->ik', a, b), got {type(equation).__name__}"
        )
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)) and hasattr([*operands[0], 0][0], "shape"):
        operands = tuple(operands[0])  # as PyTorch also takes them
    terms, tensors, result = _parsed(equation, [operand(each) for each in operands])
    letters, out = terms[0], tensors[0]
    for i in range(1, len(tensors)):
        wanted = set(result).union(*terms[i + 1 :])
        letters, out = _contract(letters, out, terms[i], tensors[i], wanted)
    letters, out = _summed_out(letters, out, set(result))
    return _ordered(letters, out, result)


def _parsed(equation: str, tensors: list[Tensor]) -> tuple[list[str], list[Tensor], str]:
    """A letter for each axis of each operand, each once; the operands with these axes; the letters of the result."""
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow:
        result = "..." + "".join(sorted(letter for letter in set(left) - {",", "."} if left.count(letter) == 1))
    if len(terms) != len(tensors):
        raise ValueError(f"einsum: {equation!r} names {len(terms)} operands, {len(tensors)} were given")
    extra = [max(tensor.ndim - len(term.replace("...", "")), 0) for term, tensor in zip(terms, tensors, strict=True)]
    most = max(each for each, term in zip([0, *extra], ["...", *terms], strict=True) if "..." in term)
    unnamed = "".join(letter for letter in ascii_letters if letter not in equation)[:most]
    terms = [term.replace("...", unnamed[most - each :], 1) for term, each in zip(terms, extra, strict=True)]
    result = result.replace("...", unnamed, 1)
    lengths: dict[str, int] = {}
    for term, tensor in zip(terms, tensors, strict=True):
        if not all(letter.isalpha() for letter in term):
            raise ValueError(f"einsum: a letter names an axis, `...` several, got {term!r} in {equation!r}")
        if len(term) != tensor.ndim:
            raise ValueError(f"einsum: {term!r} names {len(term)} axes, its operand has shape {tensor.shape}")
        for letter, length in zip(term, tensor.shape, strict=True):
            known = lengths.setdefault(letter, length)
            if known != length and not (letter in unnamed and 1 in (known, length)):
                name = "..." if letter in unnamed else letter
                raise ValueError(f"einsum: {name!r} stands for the lengths {known} and {length} in {equation!r}")
            if known == 1:
                lengths[letter] = length
    if not set(result) <= set(lengths) or len(set(result)) != len(result):
        raise ValueError(f"einsum: the result {result!r} needs letters of the operands, each once, in {equation!r}")
    distinct = [_distinct(term, tensor, lengths) for term, tensor in zip(terms, tensors, strict=True)]
    return [letters for letters, _ in distinct], [tensor for _, tensor in distinct], result


def _distinct(letters: str, a: Tensor, lengths: dict[str, int]) -> tuple[str, Tensor]:
    """Drop the axes that are broadcast, and take the diagonal of those that have one letter."""
    kept = "".join(letter for letter, length in zip(letters, a.shape, strict=True) if length == lengths[letter])
    if len(kept) < len(letters):
        a = reshape(a, tuple(lengths[letter] for letter in kept))
    for letter in {letter for letter in kept if kept.count(letter) > 1}:
        first = [axis for axis, each in enumerate(kept) if each == letter]
        rest = [axis for axis, each in enumerate(kept) if each != letter]
        a = transpose(a, [*first, *rest])[(list(range(lengths[letter])),) * len(first)]
        kept = letter + kept.replace(letter, "")
    return kept, a


def _contract(one: str, a: Tensor, other: str, b: Tensor, wanted: set[str]) -> tuple[str, Tensor]:
    """Contract two operands: one matrix product for each value of the letters that both have and the result keeps."""
    one, a = _summed_out(one, a, wanted | set(other))
    other, b = _summed_out(other, b, wanted | set(one))
    if a.dtype != b.dtype and not (is_floating_point(a.dtype) or is_floating_point(b.dtype)):
        common = result_type(a.dtype, b.dtype)  # sums of small integers are int64
        a, b = astype(a, common), astype(b, common)
    batch = [letter for letter in one if letter in other and letter in wanted]
    inner = [letter for letter in one if letter in other and letter not in wanted]
    rows = [letter for letter in one if letter not in other]
    columns = [letter for letter in other if letter not in one]
    lengths = {**dict(zip(one, a.shape, strict=True)), **dict(zip(other, b.shape, strict=True))}

    def size(letters: list[str]) -> int:
        return prod(lengths[letter] for letter in letters)

    left = reshape(_ordered(one, a, [*batch, *rows, *inner]), (size(batch), size(rows), size(inner)))
    right = reshape(_ordered(other, b, [*batch, *inner, *columns]), (size(batch), size(inner), size(columns)))
    kept = "".join((*batch, *rows, *columns))
    return kept, reshape(matmul(left, right), tuple(lengths[letter] for letter in kept))


def _summed_out(letters: str, a: Tensor, wanted: set[str]) -> tuple[str, Tensor]:
    """Sum over the axes whose letters are not in `wanted`."""
    axes = tuple(i for i, letter in enumerate(letters) if letter not in wanted)
    if not axes:
        return letters, a
    return "".join(letter for letter in letters if letter in wanted), sum(a, axis=axes)


def _ordered(letters: str, a: Tensor, wanted: Any) -> Tensor:
    order = [letters.index(letter) for letter in wanted]
    return a if order == list(range(a.ndim)) else transpose(a, order)
