"""Tensor as a PyTorch user expects it: types, numbers on either side, grad mode, copies and pickles."""

from __future__ import annotations

import contextvars
import copy
import operator
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

from minidl import Tensor, enable_grad, is_grad_enabled, no_grad
from minidl import functional as F
from tests.together import naming


def leaf(*values: float) -> Tensor:
    return Tensor(np.array(values), requires_grad=True)


@pytest.mark.parametrize(
    "made", ["minidl.Tensor([3, -7])", "minidl.tensor.Tensor([3, -7])", "minidl.nn.Linear(2, 3).weight"]
)
def test_a_tensor_has_its_operations_wherever_it_comes_from(made: str) -> None:
    program = f"import minidl; assert ({made}.relu() * 2).sum().item() >= 0"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


# ---- types ----


def test_numbers_become_float32_and_arrays_keep_their_dtype() -> None:
    for numbers in (3, 3.0, [1, 2], [[1.0], [2.0]], (1.0, 2.0), []):
        assert Tensor(numbers).dtype == np.float32
    for array in (np.array([1.0]), np.float64(1.0), np.array([1], np.float16), np.array([1, 2]), np.array([True])):
        assert Tensor(array).dtype == array.dtype
    assert Tensor([True, False]).dtype == bool


def test_what_is_no_number_raises() -> None:
    for data in ("text", ["a", "b"], [1 + 2j], None, object(), np.array(["a"]), np.array([1j])):
        with naming(data), pytest.raises(TypeError, match="a Tensor holds numbers, not"):
            Tensor(data)


def test_integer_tensors_compute_as_numpy_does_and_pass_no_gradient() -> None:
    i = Tensor(np.arange(3))
    for number in (i + 1, 1 - i, i * 2, i + i, -i):
        assert number.dtype == np.int64
        assert not number.requires_grad
    assert (i + 0.5).dtype == np.float64
    x = leaf(1.0, 2.0, 3.0)
    (x * i).sum().backward()
    np.testing.assert_array_equal(x.grad, [0.0, 1.0, 2.0])
    assert i.grad is None


def test_single_numbers_do_not_change_the_dtype() -> None:
    for dtype in ("float32", "float64", "float16"):
        x = Tensor(np.ones(3, dtype))
        for number in (2, 0.5, np.int64(2), np.uint8(2), np.float32(2), np.float64(2), np.arange(3).sum()):
            for result in (x + number, number - x, x / number, x**number, F.where([True, False, True], x, number)):
                assert result.dtype == dtype
    assert (Tensor(np.arange(3)) * np.float32(0.5)).dtype.kind == "f"


def test_gradients_come_back_in_the_dtype_of_their_leaf() -> None:
    random = np.random.default_rng(0)
    operations = [
        (lambda a, b: a + b, (3, 4), (3, 4)),
        (lambda a, b: a * b, (3, 4), (4,)),
        (lambda a, b: F.cat([a, b]), (3, 4), (2, 4)),
        (lambda a, b: F.mse_loss(a, b), (3, 4), (3, 4)),
        (lambda a, b: F.where(np.ones((3, 4), bool), a, b), (3, 4), (3, 4)),
    ]
    for function, first, second in operations:
        for types in (("float32", "float64"), ("float64", "float32")):
            shapes = zip((first, second), types, strict=True)
            a, b = (Tensor(random.standard_normal(shape).astype(d), requires_grad=True) for shape, d in shapes)
            out = function(a, b)
            assert out.dtype == np.float64
            out.sum().backward()
            assert (a.grad.dtype, b.grad.dtype) == types


# ---- beside numpy ----


def test_the_array_is_shared_not_copied() -> None:
    array = np.zeros(2)
    x = Tensor(array)
    array[0] = 5.0
    assert x.data is array
    assert x.numpy() is array


# ---- what a tensor tells of itself ----


def test_attributes_and_conversions() -> None:
    x = Tensor(np.arange(6.0).reshape(2, 3))
    assert (x.shape, x.ndim, x.size, len(x), x.dtype) == ((2, 3), 2, 6, 2, np.float64)
    assert x[1, 2].item() == 5.0
    assert float(x[0, 1]) == 1.0
    assert bool(x[0, 1])
    assert not x[0, 0]
    assert type(x.sum().item()) is float
    with pytest.raises(ValueError, match="size 1"):
        x.item()


def test_integers_are_compared_with_an_integer_that_their_type_does_not_hold() -> None:
    numbers = [1, 2, 255]
    x = Tensor(np.array(numbers, np.uint8))
    for number in (-1, 256, 2**40, -(2**70), np.int64(-1), np.int64(511), np.array(300)):
        for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
            assert compare(x, number).tolist() == [compare(one, int(number)) for one in numbers]
            if not isinstance(number, np.ndarray):
                assert compare(number, x).tolist() == [compare(int(number), one) for one in numbers]
                assert compare(x[2], number).item() == compare(255, int(number))


def test_a_tensor_is_walked_along_its_first_axis() -> None:
    x = leaf(1.0, 2.0)
    first, second = x
    (first * second).backward()
    np.testing.assert_array_equal(x.grad, [2.0, 1.0])
    with pytest.raises(TypeError):
        iter(Tensor(1.0))


def test_repr_shows_numbers_dtype_and_requires_grad() -> None:
    assert repr(Tensor([1.0, 2.123456])) == "Tensor([1.    , 2.1235], float32)"
    assert repr(leaf(1.0)) == "Tensor([1.], float64, requires_grad=True)"
    assert len(repr(Tensor(np.zeros((1000, 1000))))) < 1000
    assert f"{Tensor(1.23456):.2f} {leaf(2.0).sum():8.3f}" == "1.23    2.000"
    a, b = Tensor([1.0, 2.0]), Tensor([1.0, 2.0])
    assert len({a, b, a}) == 2  # told apart by identity


def test_requires_grad_can_be_set_on_leaves_alone() -> None:
    x = leaf(1.0)
    y = x * 2
    for flag in (True, False):
        with pytest.raises(RuntimeError, match="made by a recorded operation"):
            y.requires_grad = flag
    x.requires_grad = False
    assert not (x * 2).requires_grad
    for wrong, value in ((x, 1), (Tensor(np.arange(3)), True)):
        with pytest.raises(TypeError, match=r"True or False|only floating-point"):
            wrong.requires_grad = value


# ---- requires_grad ----


# ---- grad mode ----


def test_grad_modes_nest_and_an_exception_restores_them() -> None:
    x, off = leaf(1.0), no_grad()
    with off:
        y = x * 2
        assert y.is_leaf
        assert not y.requires_grad
        with enable_grad():
            assert (x * 2).requires_grad
            with off:
                assert not (x * 2).requires_grad
            with pytest.raises(KeyError), off:
                raise KeyError
            assert (x * 2).requires_grad
        assert not is_grad_enabled()
    assert is_grad_enabled()
    assert (x * 2).requires_grad
    assert not (Tensor([1.0]) * 2).requires_grad


def test_grad_modes_decorate() -> None:
    @no_grad()
    def evaluate(x: Tensor, factor: float = 2.0) -> Tensor:
        """Doc."""
        return enable_grad()(lambda: x * 1)() if factor == 0 else x * factor

    x = leaf(1.0)
    assert not evaluate(x, factor=3.0).requires_grad
    assert evaluate(x, 0).requires_grad
    assert is_grad_enabled()
    assert (evaluate.__name__, evaluate.__doc__) == ("evaluate", "Doc.")


def test_grad_mode_belongs_to_the_context() -> None:
    seen: list[bool] = []
    with no_grad():
        thread = threading.Thread(target=lambda: seen.append(is_grad_enabled()))
        thread.start()
        thread.join()
        contextvars.Context().run(lambda: seen.append(is_grad_enabled()))
        contextvars.copy_context().run(lambda: seen.append(is_grad_enabled()))
    assert seen == [True, True, False]


def test_detach_shares_memory_and_cuts_the_graph() -> None:
    x = leaf(2.0, 3.0)
    y = x * x
    cut = y.detach()
    assert np.shares_memory(cut.data, y.data)
    assert not cut.requires_grad
    (cut * x).sum().backward()
    np.testing.assert_array_equal(x.grad, [4.0, 9.0])  # not 3 x^2


# ---- copies and pickles ----


def test_a_leaf_can_be_copied_and_pickled() -> None:
    x = leaf(1.0, 2.0)
    for again in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), copy.copy):
        y = again(x)
        assert type(y) is Tensor
        assert y.requires_grad
        assert y.grad is None
        np.testing.assert_array_equal(x.data, y.data)
        (y * y).sum().backward()
        assert x.grad is None


def test_a_deep_copy_has_memory_of_its_own_and_keeps_tied_tensors_tied() -> None:
    x = leaf(1.0, 2.0)
    a, b = copy.deepcopy([x, x])
    assert a is b
    a.data -= 1
    np.testing.assert_array_equal(x.data, [1.0, 2.0])


def test_a_made_tensor_cannot_be_pickled_and_says_what_to_do() -> None:
    y = leaf(1.0) * 2
    for again in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=r"only leaves can be pickled or deep-copied: call \.detach\(\)"):
            again(y)
    assert pickle.loads(pickle.dumps(y.detach())).item() == 2.0
