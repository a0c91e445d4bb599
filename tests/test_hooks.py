"""Gradient-ready hooks: once a backward, when the gradient is final, with an array that belongs to the leaf alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from minidl import Tensor, functional, kernels, manual_seed, no_grad
from minidl import functional as F
from tests.functional.cases import Case, sweep
from tests.together import naming


def leaf(*values: float) -> Tensor:
    return Tensor(np.array(values), requires_grad=True)


def test_a_leaf_used_many_times_fires_once_with_the_whole_gradient() -> None:
    x, seen = leaf(1.0, 2.0), []
    x.register_post_accumulate_grad_hook(lambda tensor: seen.append(tensor.grad.copy()))
    y = x
    for _ in range(10):
        y = y + x * x  # twice in one operation, and in many operations
    (y.sum() + x.sum()).backward()
    assert len(seen) == 1
    np.testing.assert_array_equal(seen[0], 1 + 10 * 2 * x.data + 1)


def test_every_backward_fires_again_with_the_tensor_and_what_has_accumulated() -> None:
    x, seen = leaf(3.0), []
    x.register_post_accumulate_grad_hook(lambda tensor: seen.append((tensor is x, tensor.grad.item())))
    for _ in range(2):
        (x * x).backward(np.ones(1))
    x.backward()  # a leaf that is the output
    assert seen == [(True, 6.0), (True, 12.0), (True, 13.0)]


def test_hooks_fire_in_the_order_of_readiness_later_layers_first_and_tied_weights_after_their_first_use() -> None:
    weights = [Tensor(np.eye(3) + i, requires_grad=True) for i in range(4)]
    order: list[int] = []
    for i, weight in enumerate(weights):
        weight.register_post_accumulate_grad_hook(lambda tensor, i=i: order.append(i))
    x = Tensor(np.ones((2, 3)))
    for weight in (*weights, weights[1]):
        x = F.tanh(F.linear(x, weight))
    x.sum().backward()
    assert order == [3, 2, 1, 0]


def test_several_hooks_fire_in_the_order_of_registration_and_can_be_removed() -> None:
    x, seen = leaf(1.0), []
    handles = [x.register_post_accumulate_grad_hook(lambda tensor, i=i: seen.append(i)) for i in range(3)]
    handles[1].remove()
    handles[1].remove()  # twice is no error
    x.sum().backward()
    assert seen == [0, 2]
    handles[0].remove()
    handles[2].remove()
    x.sum().backward()
    assert seen == [0, 2]


def test_a_hook_may_remove_itself_and_drop_the_gradient() -> None:
    x, seen = leaf(1.0), []

    def once(tensor: Tensor) -> None:
        seen.append(1)
        tensor.grad = None
        handle.remove()

    handle = x.register_post_accumulate_grad_hook(once)
    x.sum().backward()
    assert x.grad is None
    x.sum().backward()
    assert seen == [1]


def test_a_hook_does_not_fire_for_a_leaf_that_was_not_reached_or_not_asked_for() -> None:
    x, y, seen = leaf(1.0), leaf(2.0), []
    for name, tensor in (("x", x), ("y", y)):
        tensor.register_post_accumulate_grad_hook(lambda tensor, name=name: seen.append(name))
    x.sum().backward()
    (x * y).sum().backward(inputs=[y])
    assert seen == ["x", "y"]


def test_an_exception_in_a_hook_reaches_the_caller() -> None:
    x = leaf(1.0)

    def fail(tensor: Tensor) -> None:
        raise OSError("the network is down")

    x.register_post_accumulate_grad_hook(fail)
    with pytest.raises(OSError, match="the network is down"):
        x.sum().backward()


def test_a_hook_needs_a_leaf_that_requires_a_gradient() -> None:
    for tensor in (leaf(1.0) * 2, Tensor([1.0])):
        with pytest.raises(RuntimeError, match="leaf that requires a gradient"):
            tensor.register_post_accumulate_grad_hook(print)
    with no_grad():
        leaf(1.0).register_post_accumulate_grad_hook(print)


@sweep
def test_a_gradient_shares_its_memory_with_nobody(cases: Callable[[], list[Case]], kernel: str) -> None:
    with kernels.use(kernel):
        for case in cases():
            with naming(case):
                manual_seed(0)
                tensors = [Tensor(a, requires_grad=d) for a, d in zip(case.arrays(), case.differentiable, strict=True)]
                out = case.function(functional, *tensors)
                seed = np.ones(out.shape)
                out.backward(seed)
                grads = [tensor.grad for tensor in tensors if tensor.grad is not None]
                assert len(grads) == sum(case.differentiable)
                for i, gradient in enumerate(grads):
                    assert gradient.flags.writeable
                    others = [*grads[:i], *grads[i + 1 :], *(tensor.data for tensor in tensors), out.data, seed]
                    assert not any(np.shares_memory(gradient, other) for other in others)


@sweep
def test_a_hook_may_overwrite_the_gradient_while_backward_runs(cases: Callable[[], list[Case]], kernel: str) -> None:
    """As an all-reduce in place does. A second backward over the retained graph must not notice, either."""

    def run(case: Case, destructive: bool) -> list[list[np.ndarray]]:
        manual_seed(0)
        arrays = case.arrays()
        received: list[list[np.ndarray]] = [[] for _ in range(2 * len(arrays))]

        def receive(tensor: Tensor, slot: int) -> None:
            received[slot].append(tensor.grad.copy())
            if destructive:
                tensor.grad[...] = np.nan
            tensor.grad = None

        def once(offset: int) -> Tensor:
            manual_seed(1)
            tensors = [Tensor(a, requires_grad=d) for a, d in zip(arrays, case.differentiable, strict=True)]
            for slot, tensor in enumerate(tensors):
                if tensor.requires_grad:
                    tensor.register_post_accumulate_grad_hook(lambda t, slot=slot + offset: receive(t, slot))
            return case.function(functional, *tensors)

        first, second = once(0), once(len(arrays))
        out = first + second  # hands one array to both
        seed = np.random.default_rng(2).standard_normal(out.shape)
        for _ in range(2):
            out.backward(seed, retain_graph=True)
        for slot in range(len(arrays)):  # what the second call of the operation did to the shared array
            for a, b in zip(received[slot], received[slot + len(arrays)], strict=True):
                np.testing.assert_array_equal(a, b)
        return received

    with kernels.use(kernel):
        for case in cases():
            with naming(case):
                for found, wanted in zip(run(case, True), run(case, False), strict=True):
                    assert len(found) == len(wanted)
                    for a, b in zip(found, wanted, strict=True):
                        np.testing.assert_array_equal(a, b)
