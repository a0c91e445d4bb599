"""grad(outputs, inputs): the gradients as arrays, and nothing else touched."""

from __future__ import annotations

import numpy as np
import pytest

from minidl import Tensor, grad


def leaf(*values: float) -> Tensor:
    return Tensor(np.array(values), requires_grad=True)


def test_grad_touches_no_grad_attribute_and_fires_no_hook() -> None:
    x, seen = leaf(1.0, 2.0), []
    x.register_post_accumulate_grad_hook(seen.append)
    (g,) = grad((x * x).sum(), x)
    np.testing.assert_array_equal(g, [2.0, 4.0])
    assert x.grad is None
    assert seen == []


def test_grad_of_several_outputs_is_that_of_their_sum() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    product = x * y
    gx, gy, gp = grad([product.sum(), (x * x).sum(), product], [x, y, product], [None, None, np.array([1.0, 10.0])])
    np.testing.assert_array_equal(gx, [2, 11] * y.data + 2 * x.data)
    np.testing.assert_array_equal(gy, [2, 11] * x.data)
    np.testing.assert_array_equal(gp, [2, 11])


def test_grad_with_respect_to_an_intermediate_result() -> None:
    x = leaf(2.0, 3.0)
    hidden = x * x
    out = (hidden * hidden).sum()
    gh, gx = grad(out, [hidden, x])
    np.testing.assert_array_equal(gh, 2 * hidden.data)
    np.testing.assert_array_equal(gx, 4 * x.data**3)


def test_grad_of_an_output_with_respect_to_itself_is_its_seed() -> None:
    x = leaf(2.0, 3.0)
    for output in (x * x, x):
        np.testing.assert_array_equal(grad(output, output, np.array([5.0, 6.0]))[0], [5.0, 6.0])


def test_grad_of_one_output_takes_one_seed() -> None:
    x = leaf(2.0, 3.0)
    np.testing.assert_array_equal(grad(x * x, x, np.array([1.0, 10.0]))[0], [4.0, 60.0])
    np.testing.assert_array_equal(grad(x * x, x, [np.array([1.0, 10.0])])[0], [4.0, 60.0])
    with pytest.raises(ValueError, match="2 gradients were given for 1 outputs"):
        grad(x * x, x, [1.0, 10.0])


def test_an_unused_input_raises_or_gives_none() -> None:
    x, y = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match=r"input 1 \(shape \(1,\)\) was not used.*allow_unused=True"):
        grad(x * x, [x, y], retain_graph=True)
    gx, gy = grad(x * x, [x, y], allow_unused=True)
    assert gx == [2.0]
    assert gy is None


def test_grad_gives_arrays_of_the_dtype_of_the_input() -> None:
    x, w = Tensor(np.ones((2, 3)), requires_grad=True), Tensor(np.ones((2, 3), np.float32), requires_grad=True)
    gx, gw = grad((x * w).sum(), [x, w])
    assert (gx.dtype, gw.dtype) == (np.float64, np.float32)
    scalar = Tensor(3.0, requires_grad=True)
    (g,) = grad(scalar * scalar, scalar)
    assert type(g) is np.ndarray
    assert g.shape == ()
