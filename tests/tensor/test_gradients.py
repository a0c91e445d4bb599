"""backward of several tensors: the gradients of all of them together are added to the leaves."""

from __future__ import annotations

import numpy as np
import pytest

import minidl
from minidl import Tensor, backward


def leaf(*numbers):
    return Tensor(np.array(numbers), requires_grad=True)


def test_two_outputs_of_one_graph_add_their_gradients():
    x = leaf(1.0, 2.0)
    middle = x * x
    backward([middle * 3.0, middle.sum()], [np.array([1.0, 10.0]), None])
    assert x.grad.tolist() == [(3 + 1) * 2.0, (30 + 1) * 4.0]


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


def test_the_same_tensor_twice_gets_the_sum_of_its_gradients():
    x = leaf(2.0)
    y = x * 5.0
    backward([y, y], [np.array([1.0]), np.array([2.0])])
    assert x.grad.tolist() == [15.0]


def test_an_output_made_from_another_output_is_walked_first():
    x = leaf(3.0)
    y = x * x
    z = y * 2.0
    backward([y, z], [np.array([1.0]), np.array([1.0])])
    assert x.grad.tolist() == [(1 + 2) * 6.0]


def test_inputs_restrict_the_tensors_that_get_a_gradient():
    x, w = leaf(1.0), leaf(2.0)
    backward([x * w, w * 3.0], inputs=w)
    assert (x.grad, w.grad.tolist()) == (None, [4.0])
    backward([x * w], inputs=(tensor for tensor in [x]))
    assert x.grad.tolist() == [2.0]


def test_a_kept_graph_is_walked_again_and_a_freed_one_is_not():
    x = leaf(1.0)
    y = x * x
    backward([y], retain_graph=True)
    backward([y])
    assert x.grad.tolist() == [4.0]
    with pytest.raises(RuntimeError, match="already walked by backward"):
        backward([y])


def test_no_tensors_change_nothing():
    backward([])


def test_it_is_a_public_name_of_the_package():
    assert minidl.backward is backward
    assert "backward" in minidl.__all__


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: backward([x * x, x], [None]), ValueError, "1 gradients were given for 2 tensors"),
        (lambda x: backward([x * x, x], np.ones(2)), ValueError, "1 gradients were given for 2 tensors"),
        (lambda x: backward(x * x, [1.0, 2.0]), ValueError, "2 gradients were given for 1 tensors"),
        (lambda x: backward([x * x]), ValueError, "needs a gradient of that shape"),
        (lambda x: backward([x], [np.ones(3)]), ValueError, r"gradient has shape \(3,\), the tensor has shape \(2,\)"),
        (lambda x: backward([x.detach()], [np.ones(2)]), RuntimeError, "does not require a gradient"),
        (lambda x: backward(np.ones(2)), TypeError, "backward: tensors are tensors, one or a list of them"),
        (lambda x: backward(x.sum(), inputs=["x"]), TypeError, "backward: inputs are tensors"),
        (lambda x: backward(x.sum(), inputs=x.detach()), RuntimeError, "inputs: a tensor of shape"),
    ],
)
def test_errors_say_what_was_given_and_leave_no_gradient(call, error, message):
    x = leaf(1.0, 2.0)
    with pytest.raises(error, match=message):
        call(x)
    assert x.grad is None
