"""The walk from the loss to the leaves: every node once, at any depth, from several outputs, to chosen inputs."""

from __future__ import annotations

import numpy as np
import pytest

from minidl import Tensor, grad
from minidl import functional as F
from minidl.tensor import record


def leaf(*values: float) -> Tensor:
    return Tensor(np.array(values), requires_grad=True)


def counted(a: Tensor, calls: list[int], number: int = 0) -> Tensor:
    """The identity, which notes each call of its vector-Jacobian product."""

    def vjp(g: np.ndarray, needs: object) -> tuple[np.ndarray]:
        calls.append(number)
        return (g,)

    return record(a.data.copy(), (a,), vjp)


# ---- shapes of graphs ----


def test_powers_of_two_by_doubling_visit_every_node_once() -> None:
    a, calls = leaf(1.0), []
    b = a
    for i in range(50):
        b = counted(b, calls, i)
        b = b + b
    b.backward()
    assert a.grad == [2.0**50]
    assert calls == list(range(49, -1, -1))


def test_a_diamond_is_visited_after_all_that_used_it() -> None:
    calls: list[int] = []
    x = leaf(2.0)
    top = counted(x, calls, 0)
    left, right = counted(top, calls, 1), counted(top, calls, 2)
    late = counted(top, calls, 3)
    (left * right * late).backward()
    assert calls == [3, 2, 1, 0]
    np.testing.assert_array_equal(x.grad, [12.0])


@pytest.mark.parametrize("depth", [10_000, pytest.param(100_000, marks=pytest.mark.exhaustive)])
def test_deep_graphs_need_no_recursion(depth: int) -> None:
    """Forward, backward, and deletion: of a graph walked, of one retained, and of one never walked."""
    x = leaf(1.0)
    for retain_graph in (False, True, None):
        y = x
        for _ in range(depth):
            y = y + 1.0
        if retain_graph is not None:
            x.grad = None
            y.backward(retain_graph=retain_graph)
            assert x.grad == [1.0]
        del y


# ---- backward twice ----


def test_retain_graph_allows_a_second_backward_which_accumulates() -> None:
    x = leaf(1.0, 2.0)
    out = (x * x).sum()
    out.backward(retain_graph=True)
    out.backward(retain_graph=True)
    out.backward()
    np.testing.assert_array_equal(x.grad, [6.0, 12.0])
    for again in (out, (out * 2).sum()):
        with pytest.raises(
            RuntimeError, match=r"already walked.*run the forward pass again, or pass retain_graph=True"
        ):
            again.backward()


# ---- the seed ----


def test_a_non_scalar_needs_a_gradient_of_its_shape() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(ValueError, match=r"shape \(2,\) needs a gradient of that shape.*\.sum\(\)"):
        (x * x).backward()
    with pytest.raises(ValueError, match=r"gradient has shape \(3,\), the tensor has shape \(2,\)"):
        (x * x).backward(np.ones(3))
    (x * x).backward([1.0, 10.0])
    np.testing.assert_array_equal(x.grad, [2.0, 40.0])


def test_any_tensor_of_one_number_is_scalar_enough() -> None:
    for shape in ((), (1,), (1, 1)):
        x = Tensor(np.full(shape, 3.0), requires_grad=True)
        (x * x).backward()
        np.testing.assert_array_equal(x.grad, np.full(shape, 6.0))


def test_the_seed_is_left_alone_and_may_be_a_tensor() -> None:
    x, seed = leaf(1.0, 2.0), np.array([3.0, 4.0])
    (x + 0.0).backward(seed)
    x.grad[...] = 0.0
    np.testing.assert_array_equal(seed, [3.0, 4.0])
    x.grad = None
    (x + 0.0).backward(Tensor(seed))
    np.testing.assert_array_equal(x.grad, [3.0, 4.0])
    x.grad = None
    x.backward(seed)
    assert not np.shares_memory(x.grad, seed)


# ---- chosen inputs ----


def test_only_nodes_on_the_way_to_the_inputs_are_visited() -> None:
    x, y, calls = leaf(2.0), leaf(3.0), []
    hidden = counted(x, calls, 0)
    out = counted(hidden, calls, 1) * counted(y, calls, 2)
    out.backward(inputs=[y], retain_graph=True)
    assert calls == [2]
    out.backward(inputs=(tensor for tensor in (hidden, hidden)), retain_graph=True)  # any iterable, named twice
    assert calls == [2, 1]
    assert (x.grad, y.grad, hidden.grad) == (None, [2.0], [3.0])
    out.backward()
    assert calls == [2, 1, 2, 1, 0]


def test_an_input_that_requires_no_gradient_raises() -> None:
    x, constant = leaf(2.0), Tensor(np.array([3.0]))
    with pytest.raises(RuntimeError, match="does not require a gradient"):
        (x * constant).backward(inputs=[constant])
    with pytest.raises(RuntimeError, match="does not require a gradient"):
        grad(x * constant, constant, allow_unused=True)


def test_the_gradient_of_a_transposed_leaf_is_its_own_and_lies_in_memory_as_the_leaf_does() -> None:
    x = Tensor(np.zeros((3, 5), np.float32).T, requires_grad=True)
    x.sum(0).sum().backward()
    np.testing.assert_array_equal(x.grad, np.ones((5, 3)))
    assert x.grad.strides == x.data.strides
    assert x.grad.flags.owndata
    assert x.grad.flags.writeable


def test_an_operation_gives_no_gradient_to_a_leaf_that_was_frozen_when_it_was_recorded() -> None:
    weight, real, fake = leaf(2.0), Tensor(np.array([1.0])), leaf(3.0)
    before = (weight * real).sum()
    weight.requires_grad = False
    while_frozen = (weight * fake).sum() + F.cat([weight, weight, fake]).sum()
    weight.requires_grad = True
    assert grad(while_frozen, [weight], retain_graph=True, allow_unused=True) == (None,)
    (before + while_frozen).backward()
    np.testing.assert_array_equal(weight.grad, [1.0])  # of `before` alone
    np.testing.assert_array_equal(fake.grad, [3.0])
