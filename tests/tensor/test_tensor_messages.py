"""What a tensor says where it is used wrongly: what was given, what was expected, what to type."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from minidl import Tensor, arange, grad
from minidl import functional as F
from minidl.from_pytorch import MISSPELLED, OF_TENSORS
from tests.together import Mistake, assert_refused, naming

X = np.ones((2, 3), np.float32)
BYTES = Tensor(np.array([1, 2], np.uint8))


def x() -> Tensor:
    return Tensor(X, requires_grad=True)


MISTAKES: list[Mistake] = [
    # shapes
    (lambda: x() @ x(), ValueError, r"\(2, 3\) @ \(2, 3\).*left operand \(3\).*right one \(2\); a @ b\.T fits"),
    (lambda: Tensor(np.ones((2, 3, 4))) @ np.ones((3, 4, 5)), ValueError, r"leading axes.*\(2,\) and \(3,\)"),
    (lambda: x() + np.ones(2), ValueError, r"\(2, 3\) \+ \(2,\).*axis -1 has 3 and 2.*reshape the right.*\(2, 1\)"),
    (lambda: x().reshape(4), ValueError, r"cannot reshape 6 numbers, of shape \(2, 3\), to \(4,\), which holds 4"),
    (lambda: F.cat([x(), np.ones(3)]), ValueError, r"equal shapes except along axis 0 expected, got \(2, 3\), \(3,"),
    (lambda: F.maximum(x(), np.ones(2)), ValueError, r"\(2, 3\) and \(2,\) in maximum.*axis -1 has 3 and 2.*\(2, 1\)"),
    (lambda: F.cat([x(), x()], 5), IndexError, r"cat: axis 5 of a tensor of shape \(2, 3\), whose axes are 0 to 1"),
    (lambda: Tensor(1.0).mT, ValueError, "exchanges the last two axes"),
    # axes
    (lambda: x().max(axis=1, dim=1), TypeError, "axis= and dim= are two spellings of one argument"),
    (lambda: x().max((0, 1)), TypeError, r"several axes has no one index: type max\(axis=\(0, 1\)\)"),
    (lambda: x().cumsum(), TypeError, r"along which axis\? Give dim="),
    (lambda: x().sum((0, 0)), ValueError, r"sum: axes \(0, 0\) of a tensor of shape \(2, 3\) name one axis twice"),
    (lambda: arange(3).var(), TypeError, r"need floating-point numbers, not int64"),
    # numbers that a type does not hold
    (lambda: BYTES + 300, OverflowError, r"^300 does not fit into uint8, .* holds 0 to 255: .* \.to\('int64'\)$"),
    # one number, one truth
    (lambda: x().item(), ValueError, r"item\(\) needs a tensor of size 1, and this one of shape \(2, 3\) has 6 num"),
    (lambda: bool(x() == x()), ValueError, r"neither true nor false: type \.all\(\) or \.any\(\)"),
    (lambda: f"{x():.2f}", TypeError, r"a format such as '\.2f' is for one number, and this tensor has shape \(2, 3"),
    (lambda: x() & x(), TypeError, r"combines booleans or integers, not float32: compare first"),
    # indices
    (lambda: x()[5], IndexError, r"index 5 is out of bounds.*the tensor has shape \(2, 3\)"),
    (lambda: x()[Tensor([0, 1])], IndexError, r"an index holds integers or booleans, not float32.*use \.long\(\)"),
    (lambda: x().gather(1, [[0.0], [1.0]]), TypeError, "an index holds integers, not float64"),
    (lambda: x().gather(1, np.array([[3], [0]])), IndexError, "0 <= i < 3, the length of axis 1, found 0 to 3"),
    # data
    (lambda: Tensor([[1, 2], [3]]), ValueError, r"equal lengths, and those of \[\[1, 2\], \[3\]\] differ: pad"),
    (lambda: Tensor(2, 3), TypeError, r"requires_grad must be True or False, not 3; .* zeros\(2, 3\)"),
    (lambda: Tensor(np.arange(3), requires_grad=True), TypeError, r"this one is int64: convert.*astype\(np\.float32"),
    # devices
    # gradients
    (lambda: grad(grad((x() * x()).sum(), x(), allow_unused=True), x()), TypeError, "outputs are tensors"),
    (lambda: grad((x() * x()).sum(), x(), create_graph=True), NotImplementedError, "no second derivatives"),
    # in place
    (lambda: x().add_(1), RuntimeError, r"leaf of shape \(2, 3\).*within `with no_grad\(\):`"),
    (lambda: x().detach().copy_(np.ones(2)), ValueError, r"copy_: a source of shape \(2,\) .* shape \(2, 3\)"),
    (lambda: operator.iadd(Tensor(X), np.ones(2)), ValueError, r"\+=: .*shape \(2,\).*\(2, 3\).* them to \(2, 1\)"),
    (lambda: operator.iadd(arange(3), 1.5), TypeError, r"\+=: .*int64 and float32 does not fit.*as x = x \+ y does"),
    (lambda: (x() * 1).requires_grad_(), RuntimeError, r"is for leaves.*call \.detach\(\) first"),
    # names
    (lambda: x().unsqueez, AttributeError, "no attribute 'unsqueez': did you mean 'unsqueeze'"),
    (lambda: x().grad_fn, AttributeError, "is_leaf == False"),
    (lambda: x().nothing_like_it, AttributeError, "no attribute 'nothing_like_it'$"),  # Python may add a suggestion
]


def test_a_mistake_is_answered_with_what_to_type() -> None:
    assert_refused(MISTAKES)


def test_an_axis_that_is_not_there_is_answered_with_the_operation_and_the_shape() -> None:
    one_axis = ["prod", "softmax", "log_softmax"]
    for operation in [*["sum", "mean", "amax", "amin", "any", "all", "logsumexp", "var", "std", "norm"], *one_axis]:
        name = operation.removeprefix("a") if operation in ("amax", "amin") else operation
        for axis in (2, -3 if operation in one_axis else (0, -3), 0.5):
            with naming(f"{operation}, axis {axis}"), pytest.raises((IndexError, TypeError)) as error:
                getattr(x(), operation)(axis=axis)
            if axis == 0.5:
                assert str(error.value) == f"{name}: an axis is a whole number, not 0.5"
            else:
                where = " of a tensor of shape (2, 3), whose axes are 0 to 1"
                assert str(error.value) in (f"{name}: axis 2{where}", f"{name}: axis -3{where}")
    for p in (1, np.inf):
        with pytest.raises(IndexError, match="norm: axis 2"):
            x().norm(p, dim=2)


def test_a_read_only_tensor_is_not_said_to_have_a_wrong_shape() -> None:
    whole = Tensor(np.ones(3, np.float32)).expand(2, 3)
    for write in (lambda: whole.copy_(X), lambda: whole.add_(X), lambda: operator.setitem(whole, 0, 1.0)):
        with pytest.raises(ValueError, match="read-only"):
            write()


def test_hints_are_about_names_that_are_missing_and_lead_to_names_that_are_there() -> None:
    there = dir(x())
    assert [name for name in OF_TENSORS if name in there or hasattr(Tensor, name)] == []
    assert [meant for meant in MISSPELLED.values() if meant not in there] == []


def test_hints_do_not_make_every_attribute_slower() -> None:
    """A class with `__getattr__` or `__getattribute__` of its own leaves the interpreter's fast path."""
    assert not any("__getattr__" in vars(kind) for kind in Tensor.__mro__)
    assert Tensor.__getattribute__ is object.__getattribute__


def test_a_missing_attribute_is_missing_to_hasattr_and_getattr() -> None:
    assert not hasattr(x(), "unsqueez")
    assert getattr(x(), "__array_interface__", None) is None
