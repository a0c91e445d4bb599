"""backward of several tensors: the gradients of all of them together are added to the leaves."""

from __future__ import annotations

import numpy as np

from minidl import Tensor, backward
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


def test_hooks_of_a_leaf_that_two_outputs_use_are_called_once_with_the_final_gradient():
    x, seen = leaf(1.0, 2.0), []
    x.register_post_accumulate_grad_hook(lambda tensor: seen.append(tensor.grad.tolist()))
    backward([(x * x).sum(), (x * 3.0).sum(), x], [None, None, np.array([100.0, 100.0])])
    assert seen == [[105.0, 107.0]]


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
