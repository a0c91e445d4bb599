"""Every operation's gradient equals finite differences, on arrays of every layout in memory, with both kernels."""

from __future__ import annotations

import numpy as np
import pytest

from minidl import Tensor, functional, gradcheck, kernels, manual_seed
from tests.functional.cases import CASES, LAYOUTS, Case, three_of_each_operation
from tests.tiers import exhaustively

SMOOTH = [case for case in CASES if case.smooth]


def gradients(tensors: list[Tensor]) -> list[np.ndarray]:
    found = [tensor.grad for tensor in tensors if tensor.requires_grad]
    assert all(gradient is not None for gradient in found)
    return found


def test_every_operation_is_in_the_table() -> None:
    assert {case.operation for case in CASES} == set(functional.__all__)


def test_no_two_cases_have_one_name() -> None:
    assert len({repr(case) for case in CASES}) == len(CASES)


@pytest.mark.parametrize("kernel", ["numba", *exhaustively("numpy")])
@pytest.mark.parametrize("case", SMOOTH, ids=repr)
def test_gradient_equals_finite_differences(case: Case, kernel: str) -> None:
    def function(*tensors: Tensor) -> Tensor:
        manual_seed(0)  # dropout drops the same every time
        return case.function(functional, *tensors)

    with kernels.use(kernel):
        for layout in LAYOUTS.values():
            gradcheck(function, case.arrays("float64", layout), case.differentiable)


@pytest.mark.parametrize("kernel", ["numba", *exhaustively("numpy")])
@pytest.mark.parametrize("case", three_of_each_operation(), ids=repr)
def test_layout_of_operands_and_gradient_does_not_matter(case: Case, kernel: str) -> None:
    def run(operand_layout: str, seed_layout: str) -> list[np.ndarray]:
        manual_seed(0)
        arrays = case.arrays("float64", LAYOUTS[operand_layout])
        tensors = [Tensor(a, requires_grad=d) for a, d in zip(arrays, case.differentiable, strict=True)]
        out = case.function(functional, *tensors)
        seed = LAYOUTS[seed_layout](np.asarray(np.random.default_rng(1).standard_normal(out.shape)))
        (out * Tensor(seed)).sum().backward()
        return [out.data, *gradients(tensors)]

    with kernels.use(kernel):
        expected = run("contiguous", "contiguous")
        for name in LAYOUTS:
            for found, wanted in zip(run(name, name), expected, strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", ["numba", *exhaustively("numpy")])
@pytest.mark.parametrize("case", three_of_each_operation(), ids=repr)
def test_gradient_may_arrive_as_a_read_only_broadcast_array(case: Case, kernel: str) -> None:
    def run(spread: bool) -> list[np.ndarray]:
        manual_seed(0)
        arrays = case.arrays("float64")
        tensors = [Tensor(a, requires_grad=d) for a, d in zip(arrays, case.differentiable, strict=True)]
        out = case.function(functional, *tensors)
        if spread:
            out.sum().backward()
        else:
            out.backward(np.ones(out.shape))
        return gradients(tensors)

    with kernels.use(kernel):
        for found, wanted in zip(run(True), run(False), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", ["numba", *exhaustively("numpy")])
@pytest.mark.parametrize("dtype", ["float32", *exhaustively("float64")])
@pytest.mark.parametrize("case", three_of_each_operation(), ids=repr)
def test_results_and_gradients_keep_the_dtype(case: Case, dtype: str, kernel: str) -> None:
    with kernels.use(kernel):
        arrays = case.arrays(dtype)
        tensors = [Tensor(a, requires_grad=d) for a, d in zip(arrays, case.differentiable, strict=True)]
        out = case.function(functional, *tensors)
        assert isinstance(out.data, np.ndarray)
        assert out.dtype == dtype
        out.backward(np.ones(out.shape))
        for tensor in tensors:
            if tensor.requires_grad:
                assert type(tensor.grad) is np.ndarray
                assert tensor.grad.dtype == dtype
                assert tensor.grad.shape == tensor.shape
