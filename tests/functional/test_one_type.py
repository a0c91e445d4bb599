"""float64 data and integers do not pass through a float32 layer unnoticed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from minidl import Tensor, nn
from minidl import functional as F
from minidl.functional import one_type


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.ones(shape, dtype)


def rms_norm(x: Any, weight: Any) -> Tensor:
    layer = nn.RMSNorm(3)
    layer.weight = nn.Parameter(weight)
    return layer(x)


OPERATIONS: dict[str, tuple[Callable[[Any, Any], Tensor], tuple[int, ...], tuple[int, ...]]] = {
    "linear": (F.linear, (2, 3), (4, 3)),
    "conv2d": (F.conv2d, (1, 2, 4, 4), (3, 2, 2, 2)),
    "matmul": (F.matmul, (2, 3), (3, 4)),
    "layer_norm": (F.layer_norm, (2, 3), (3,)),
    "batch_norm": (lambda x, w: F.batch_norm(x, None, None, w, training=True), (4, 3), (3,)),
    "group_norm": (lambda x, w: F.group_norm(x, 2, w), (4, 6), (6,)),
    "RMSNorm": (rms_norm, (2, 3), (3,)),
    "attention": (lambda q, k: F.scaled_dot_product_attention(q, k, k), (2, 3), (5, 3)),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operands_of_different_types_are_refused_with_what_to_type(operation: str) -> None:
    function, x, weight = OPERATIONS[operation]
    names = {"matmul": ("a", "b"), "attention": ("q", "k")}.get(operation, ("x", "weight"))
    for dtype in ("float64", "int64", "bool"):
        message = (
            rf"{operation}: .*{names[0]} is {dtype}, {names[1]} is float32.*: give {names[0]}.astype\(np.float32\)"
        )
        arrays = dict(zip(names, (floats(*x, dtype=dtype), floats(*weight)), strict=True))
        with pytest.raises(TypeError, match=message) as error:
            function(*map(Tensor, arrays.values()))
        arrays[names[0]] = eval(str(error.value).rpartition("give ")[2], {"np": np, **arrays})  # what it says helps
        assert function(*map(Tensor, arrays.values())).dtype == np.float32
    for dtype in ("float32", "float64"):
        assert function(floats(*x, dtype=dtype), floats(*weight, dtype=dtype)).dtype == dtype


@pytest.mark.parametrize(("a", "b"), [("int8", "int64"), ("bool", "uint8"), ("int8", "uint8")])
def test_integers_of_different_types_are_refused_by_matmul_with_what_to_type(a: str, b: str) -> None:
    arrays = {"a": floats(2, 3, dtype=a), "b": floats(3, 4, dtype=b)}
    with pytest.raises(TypeError, match=rf"matmul: .*\(a is {a}, b is {b}\): give [ab].astype") as error:
        F.matmul(*map(Tensor, arrays.values()))
    name, _, call = str(error.value).rpartition("give ")[2].partition(".")
    arrays[name] = eval(f"{name}.{call}", {"np": np, **arrays})
    np.testing.assert_array_equal(F.matmul(*map(Tensor, arrays.values())).numpy(), np.full((2, 4), 3))


def test_every_operation_whose_types_are_checked_is_tried_here() -> None:
    tried_with_more_operands = {"lstm"}
    assert set(OPERATIONS) | tried_with_more_operands == set(one_type.NAMES)
    with pytest.raises(TypeError, match=r"lstm: .*x is float64, .*weight_ih is float32.*: give x.astype\(np.float32\)"):
        nn.LSTM(3, 2)(floats(4, 1, 3, dtype=np.float64))


def test_what_to_type_for_bfloat16_can_be_typed() -> None:
    for operation, dtype in itertools.product(("linear", "matmul", "batch_norm"), ("float32", "int64", "float16")):
        function, x, weight = OPERATIONS[operation]
        names = ("a", "b") if operation == "matmul" else ("x", "weight")
        arrays = dict(zip(names, (floats(*x, dtype=dtype), floats(*weight, dtype=bfloat16)), strict=True))
        with pytest.raises(TypeError, match=rf"{operation}: .*{names[1]} is bfloat16") as error:
            function(*map(Tensor, arrays.values()))
        name, _, type_ = str(error.value).rpartition("give ")[2].partition(".")
        arrays[name] = eval(f"{name}.{type_}", {"np": np, **arrays})
        function(*map(Tensor, arrays.values()))


def test_a_float32_array_beside_a_float64_model_is_told_to_become_float64() -> None:
    with pytest.raises(
        TypeError, match=r"x is float32, weight is float64, bias is float64\): give x.astype\(np.float64\)"
    ):
        nn.Linear(3, 2).double()(floats(2, 3))


def test_equal_types_of_different_identity_pass() -> None:
    """Unpickling an array makes a new dtype object."""
    other = np.dtype([("a", np.float32)])["a"].newbyteorder("=")
    x = floats(2, 3).view(other)
    assert F.linear(x, floats(4, 3)).dtype == np.float32


def test_integer_matrices_are_multiplied() -> None:
    assert (Tensor(np.arange(4).reshape(2, 2)) @ Tensor(np.eye(2, dtype=int))).data.tolist() == [[0, 1], [2, 3]]
