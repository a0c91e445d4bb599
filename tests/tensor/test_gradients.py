"""The functions backward and grad: of several tensors, to chosen inputs, added to the leaves or returned."""

from __future__ import annotations

import numpy as np
import pytest

from minidl import Tensor, backward, grad
from tests.together import assert_refused


def leaf(*numbers):
    return Tensor(np.array(numbers), requires_grad=True)


def test_outputs_of_one_graph_add_their_gradients():
    """Also where one was made from another, or is given twice."""
    x = leaf(1.0, 2.0)
    middle = x * x
    backward([middle, middle * 3.0, middle.sum(), middle], [np.ones(2), np.array([1.0, 10.0]), None, np.ones(2)])
    assert x.grad.tolist() == [(2 + 3 + 1) * 2.0, (2 + 30 + 1) * 4.0]
    backward([])
    assert x.grad.tolist() == [12.0, 132.0]


def test_one_tensor_is_as_its_method():
    x = leaf(1.0, 2.0)
    backward((x * x).sum())
    assert x.grad.tolist() == [2.0, 4.0]
    (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]
    backward(x * 2.0, np.array([1.0, 3.0]))
    assert x.grad.tolist() == [6.0, 14.0]
    backward(x * 2.0, Tensor(np.array([1.0, 1.0])))
    assert x.grad.tolist() == [8.0, 16.0]


def test_inputs_restrict_the_tensors_that_get_a_gradient():
    x, w = leaf(1.0), leaf(2.0)
    backward([x * w, w * 3.0], inputs=w)
    assert (x.grad, w.grad.tolist()) == (None, [4.0])
    backward([x * w], inputs=(tensor for tensor in [x]))
    assert x.grad.tolist() == [2.0]


def test_errors_say_what_was_given_and_leave_no_gradient():
    x = leaf(1.0, 2.0)
    assert_refused(
        [
            (lambda: backward([x * x, x], np.ones(2)), ValueError, "1 gradients were given for 2 tensors"),
            (lambda: backward(x * x, [1.0, 2.0]), ValueError, "2 gradients were given for 1 tensors"),
            (lambda: backward([x * x]), ValueError, "needs a gradient of that shape"),
            (lambda: backward([x], [np.ones(3)]), ValueError, r"shape \(3,\), the tensor has shape \(2,\)"),
            (lambda: backward([x.detach()], [np.ones(2)]), RuntimeError, "does not require a gradient"),
            (lambda: backward(np.ones(2)), TypeError, "backward: tensors are tensors, one or a list of them"),
            (lambda: backward(x.sum(), inputs=["x"]), TypeError, "backward: inputs are tensors"),
            (lambda: backward(x.sum(), inputs=x.detach()), RuntimeError, "inputs: a tensor of shape"),
        ]
    )
    assert x.grad is None


# ---- grad: the gradients as arrays, and nothing else touched ----


def test_grad_touches_no_grad_attribute_and_fires_no_hook_whereas_backward_fires_once():
    x, seen = leaf(1.0, 2.0), []
    x.register_post_accumulate_grad_hook(lambda tensor: seen.append(tensor.grad.tolist()))
    np.testing.assert_array_equal(grad((x * x).sum(), x)[0], [2.0, 4.0])
    assert (x.grad, seen) == (None, [])
    backward([(x * x).sum(), (x * 3.0).sum(), x], [None, None, np.array([100.0, 100.0])])
    assert seen == [[105.0, 107.0]]


def test_grad_of_several_outputs_is_that_of_their_sum():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    product = x * y
    gx, gy, gp = grad([product.sum(), (x * x).sum(), product], [x, y, product], [None, None, np.array([1.0, 10.0])])
    np.testing.assert_array_equal(gx, [2, 11] * y.data + 2 * x.data)
    np.testing.assert_array_equal(gy, [2, 11] * x.data)
    np.testing.assert_array_equal(gp, [2, 11])


def test_grad_of_one_output_takes_one_seed_and_its_gradient_with_respect_to_itself_is_that():
    x = leaf(2.0, 3.0)
    for output, seed in ((x * x, np.array([1.0, 10.0])), (x * x, [np.array([1.0, 10.0])])):
        itself, of_x = grad(output, [output, x], seed)
        np.testing.assert_array_equal(itself, [1.0, 10.0])
        np.testing.assert_array_equal(of_x, [4.0, 60.0])
    np.testing.assert_array_equal(grad(x, x, np.array([5.0, 6.0]))[0], [5.0, 6.0])
    with pytest.raises(ValueError, match="2 gradients were given for 1 outputs"):
        grad(x * x, x, [1.0, 10.0])


def test_an_unused_input_raises_or_gives_none():
    x, y = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match=r"input 1 \(shape \(1,\)\) was not used.*allow_unused=True"):
        grad(x * x, [x, y], retain_graph=True)
    gx, gy = grad(x * x, [x, y], allow_unused=True)
    assert gx == [2.0]
    assert gy is None


def test_grad_gives_arrays_of_the_dtype_of_the_input():
    x, w = Tensor(np.ones((2, 3)), requires_grad=True), Tensor(np.ones((2, 3), np.float32), requires_grad=True)
    gx, gw = grad((x * w).sum(), [x, w])
    assert (gx.dtype, gw.dtype) == (np.float64, np.float32)
    scalar = Tensor(3.0, requires_grad=True)
    (g,) = grad(scalar * scalar, scalar)
    assert type(g) is np.ndarray
    assert g.shape == ()
