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


def test_chain_rule_of_the_lecture() -> None:
    """f = (x + y) z: df/dx = df/dy = z, df/dz = x + y, exactly."""
    x, y, z = Tensor(-2.0, requires_grad=True), Tensor(5.0, requires_grad=True), Tensor(-4.0, requires_grad=True)
    f = (x + y) * z
    f.backward()
    assert f.item() == -12.0
    assert (x.grad, y.grad, z.grad) == (-4.0, -4.0, 3.0)


def test_local_gradients_of_add_max_and_mul() -> None:
    x, y = leaf(3.0), leaf(2.0)
    assert [g.item() for g in grad((x + y).sum(), [x, y])] == [1.0, 1.0]
    assert [g.item() for g in grad(F.max(F.cat([x, y])), [x, y])] == [1.0, 0.0]
    assert [g.item() for g in grad((x * y).sum(), [x, y])] == [2.0, 3.0]


def test_elements_that_tie_for_the_maximum_share_the_gradient_evenly() -> None:
    x = leaf(1.0, 3.0, 3.0, 2.0, 3.0)
    F.max(x).backward(np.array(6.0))
    np.testing.assert_array_equal(x.grad, [0.0, 2.0, 2.0, 0.0, 2.0])


def test_a_tensor_reused_twice_over_collects_four() -> None:
    a = leaf(1.0)
    b = a + a
    c = b + b
    c.backward()
    assert a.grad == [4.0]


def test_powers_of_two_by_doubling_visit_every_node_once() -> None:
    a, calls = leaf(1.0), []
    b = a
    for i in range(50):
        b = counted(b, calls, i)
        b = b + b
    b.backward()
    assert a.grad == [2.0**50]
    assert calls == list(range(49, -1, -1))


def test_a_residual_chain_costs_one_call_a_node() -> None:
    calls: list[int] = []
    x = leaf(1.0)
    y = x
    for i in range(200):
        y = y + counted(y, calls, i) * 0.5
    y.backward()
    assert calls == list(range(199, -1, -1))
    np.testing.assert_allclose(x.grad, [1.5**200], rtol=1e-12)


def test_a_diamond_is_visited_after_all_that_used_it() -> None:
    calls: list[int] = []
    x = leaf(2.0)
    top = counted(x, calls, 0)
    left, right = counted(top, calls, 1), counted(top, calls, 2)
    late = counted(top, calls, 3)
    (left * right * late).backward()
    assert calls == [3, 2, 1, 0]
    np.testing.assert_array_equal(x.grad, [12.0])


def test_tied_weights_collect_the_gradients_of_all_uses() -> None:
    random = np.random.default_rng(0)
    w = Tensor(random.standard_normal((3, 3)), requires_grad=True)
    x = Tensor(random.standard_normal((2, 3)))
    separate = [Tensor(w.data, requires_grad=True) for _ in range(3)]

    def network(weights: list[Tensor]) -> Tensor:
        h = x
        for weight in weights:
            h = F.tanh(F.linear(h, weight))
        return h.sum()

    network([w, w, w]).backward()
    network(separate).backward()
    np.testing.assert_allclose(w.grad, sum(s.grad for s in separate), rtol=1e-12)


def test_an_embedding_tied_to_the_output_layer_collects_both() -> None:
    w = Tensor(np.random.default_rng(0).standard_normal((5, 3)), requires_grad=True)
    indices = np.array([1, 3, 1])
    F.linear(F.embedding(indices, w), w).sum().backward()
    a, b = (Tensor(w.data, requires_grad=True) for _ in range(2))
    F.linear(F.embedding(indices, a), b).sum().backward()
    np.testing.assert_allclose(w.grad, a.grad + b.grad, rtol=1e-12)


@pytest.mark.parametrize("depth", [10_000, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.exhaustive])])
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


def test_a_wide_graph_of_many_leaves() -> None:
    leaves = [leaf(float(i)) for i in range(5_000)]
    F.cat(leaves).sum().backward()
    assert all(x.grad == [1.0] for x in leaves)


# ---- backward twice ----


def test_a_second_backward_says_what_to_do() -> None:
    x = leaf(1.0, 2.0)
    out = (x * x).sum()
    out.backward()
    with pytest.raises(RuntimeError, match=r"run the forward pass again, or pass retain_graph=True to the first"):
        out.backward()
    np.testing.assert_array_equal(x.grad, [2.0, 4.0])


def test_a_graph_built_on_a_freed_one_says_what_to_do() -> None:
    x = leaf(1.0, 2.0)
    hidden = x * x
    hidden.sum().backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        (hidden * 2).sum().backward()


def test_retain_graph_allows_a_second_backward_which_accumulates() -> None:
    x = leaf(1.0, 2.0)
    out = (x * x).sum()
    out.backward(retain_graph=True)
    out.backward(retain_graph=True)
    out.backward()
    np.testing.assert_array_equal(x.grad, [6.0, 12.0])
    with pytest.raises(RuntimeError, match="already walked"):
        out.backward()


def test_gradients_of_several_minibatches_accumulate_to_that_of_the_whole() -> None:
    random = np.random.default_rng(0)
    x, t = random.standard_normal((12, 3)), random.standard_normal((12, 2))
    parts, whole = (Tensor(np.ones((2, 3)), requires_grad=True) for _ in range(2))
    for i in range(0, 12, 4):
        F.mse_loss(F.linear(x[i : i + 4], parts), t[i : i + 4], "sum").backward()
    F.mse_loss(F.linear(x, whole), t, "sum").backward()
    np.testing.assert_allclose(parts.grad, whole.grad, rtol=1e-12)


# ---- the seed ----


def test_a_non_scalar_needs_a_gradient_of_its_shape() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(ValueError, match=r"shape \(2,\) needs a gradient of that shape.*\.sum\(\)"):
        (x * x).backward()
    with pytest.raises(ValueError, match=r"gradient has shape \(3,\), the tensor has shape \(2,\)"):
        (x * x).backward(np.ones(3))
    (x * x).backward([1.0, 10.0])
    np.testing.assert_array_equal(x.grad, [2.0, 40.0])


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_any_tensor_of_one_number_is_scalar_enough(shape: tuple[int, ...]) -> None:
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


def test_nothing_to_differentiate_says_so() -> None:
    with pytest.raises(RuntimeError, match=r"does not require a gradient.*requires_grad=True"):
        Tensor([1.0]).backward()


# ---- chosen inputs ----


def test_only_the_inputs_get_their_gradient() -> None:
    x, y, z = leaf(2.0), leaf(3.0), leaf(4.0)
    (x * y * z).backward(inputs=[x, z])
    assert (x.grad, y.grad, z.grad) == ([12.0], None, [6.0])


def test_only_nodes_on_the_way_to_the_inputs_are_visited() -> None:
    x, y, calls = leaf(2.0), leaf(3.0), []
    hidden = counted(x, calls, 0)
    out = counted(hidden, calls, 1) * counted(y, calls, 2)
    out.backward(inputs=[y], retain_graph=True)
    assert calls == [2]
    out.backward(inputs=[hidden], retain_graph=True)
    assert calls == [2, 1]
    assert hidden.grad == [3.0]
    out.backward()
    assert calls == [2, 1, 2, 1, 0]


def test_backward_for_inputs_and_for_weights_apart_equals_backward_at_once() -> None:
    """As zero-bubble pipelines do: first the gradient that the stage before waits for, later that of the weights."""
    random = np.random.default_rng(0)
    x, w = (Tensor(random.standard_normal((3, 3)), requires_grad=True) for _ in range(2))
    out = F.tanh(F.linear(F.tanh(F.linear(x, w)), w))
    seed = random.standard_normal((3, 3))
    out.backward(seed, inputs=[x], retain_graph=True)
    assert w.grad is None
    out.backward(seed, inputs=[w])
    x2, w2 = (Tensor(t.data, requires_grad=True) for t in (x, w))
    F.tanh(F.linear(F.tanh(F.linear(x2, w2)), w2)).backward(seed)
    np.testing.assert_array_equal(x.grad, x2.grad)
    np.testing.assert_array_equal(w.grad, w2.grad)


def test_an_input_that_requires_no_gradient_raises() -> None:
    x, constant = leaf(2.0), Tensor(np.array([3.0]))
    with pytest.raises(RuntimeError, match="does not require a gradient"):
        (x * constant).backward(inputs=[constant])
    with pytest.raises(RuntimeError, match="does not require a gradient"):
        grad(x * constant, constant, allow_unused=True)


def test_inputs_may_be_any_iterable_and_an_input_may_be_named_twice() -> None:
    x, y = leaf(2.0), leaf(3.0)
    (x * y).backward(inputs=(tensor for tensor in (x, x)))
    assert (x.grad, y.grad) == ([3.0], None)


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
