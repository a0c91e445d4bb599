"""Every operation's gradient equals finite differences, whatever the layout in memory, and keeps the dtype."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from minidl import Tensor, functional, gradcheck, kernels, manual_seed
from tests.functional.cases import CASES, LAYOUTS, Case, of_each_operation, sweep
from tests.tiers import exhaustively
from tests.together import naming


def gradients(tensors: list[Tensor]) -> list[np.ndarray]:
    found = [tensor.grad for tensor in tensors if tensor.requires_grad]
    assert all(gradient is not None for gradient in found)
    return found


def forward(case: Case, dtype: str = "float64", layout: str = "contiguous") -> tuple[list[Tensor], Tensor]:
    manual_seed(0)  # dropout drops the same every time
    arrays = case.arrays(dtype, LAYOUTS[layout])
    tensors = [Tensor(a, requires_grad=d) for a, d in zip(arrays, case.differentiable, strict=True)]
    return tensors, case.function(functional, *tensors)


def test_every_operation_is_in_the_table_and_no_two_cases_have_one_name() -> None:
    assert {case.operation for case in CASES} == set(functional.__all__)
    assert len({repr(case) for case in CASES}) == len(CASES)


@pytest.mark.parametrize("kernel", ["numba", *exhaustively("numpy")])
@pytest.mark.parametrize("cases", of_each_operation([case for case in CASES if case.smooth]))
def test_gradient_equals_finite_differences(cases: list[Case], kernel: str) -> None:
    """The cases take the layouts in turn."""
    with kernels.use(kernel):
        for i, case in enumerate(cases):

            def function(*tensors: Tensor, case: Case = case) -> Tensor:
                manual_seed(0)
                return case.function(functional, *tensors)

            layout = list(LAYOUTS)[i % len(LAYOUTS)]
            with naming(f"{case}, {layout}"):
                gradcheck(function, case.arrays("float64", LAYOUTS[layout]), case.differentiable)


@sweep
def test_layout_of_operands_and_gradient_does_not_matter(cases: Callable[[], list[Case]], kernel: str) -> None:
    def run(case: Case, layout: str) -> list[np.ndarray]:
        tensors, out = forward(case, layout=layout)
        seed = LAYOUTS[layout](np.asarray(np.random.default_rng(1).standard_normal(out.shape)))
        (out * Tensor(seed)).sum().backward()
        return [out.data, *gradients(tensors)]

    with kernels.use(kernel):
        for case in cases():
            expected = run(case, "contiguous")
            for name in ("transposed", "strided", "reversed"):
                for found, wanted in zip(run(case, name), expected, strict=True):
                    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12, err_msg=f"{case}, {name}")


@sweep
def test_a_read_only_broadcast_gradient_is_as_good_and_results_and_gradients_keep_the_dtype(
    cases: Callable[[], list[Case]], kernel: str
) -> None:
    with kernels.use(kernel):
        for case in cases():
            with naming(case):
                tensors, out = forward(case, "float32")
                again, spread = forward(case, "float32")
                out.backward(np.ones(out.shape))
                spread.sum().backward()
                assert (type(out.data), out.dtype) == (np.ndarray, np.float32)
                for tensor, gradient, wanted in zip(
                    (t for t in tensors if t.requires_grad), gradients(again), gradients(tensors), strict=True
                ):
                    assert type(wanted) is type(gradient) is np.ndarray
                    assert wanted.dtype == gradient.dtype == np.float32
                    assert wanted.shape == gradient.shape == tensor.shape
                    np.testing.assert_allclose(gradient, wanted, rtol=1e-5, atol=1e-5)
