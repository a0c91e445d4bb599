"""Checkpointing changes what is kept, not what is computed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from minidl import Tensor, amp, backward, checkpoint, kernels, manual_seed, nn, no_grad
from minidl import functional as F

X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def layers() -> nn.Module:
    manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Dropout(0.5), nn.Linear(5, 3), nn.Dropout(0.2)
    )


def ran(is_checkpointed: bool) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray, float]:
    model, x = layers(), Tensor(X, requires_grad=True)
    y = checkpoint(model, x) if is_checkpointed else model(x)
    (y**2).mean().backward()
    after = float(nn.Dropout(0.5)(Tensor(X)).sum().item())  # draws where the model has left off
    return [p.grad for p in model.parameters()], [b.numpy() for b in model.buffers()], x.grad, after


def test_gradients_statistics_and_later_random_numbers_are_the_same_to_the_bit():
    for got, want in zip(ran(True), ran(False), strict=True):
        np.testing.assert_equal(got, want)


def test_there_is_exactly_one_extra_forward_pass():
    model, calls = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), []

    def counted(x: Tensor) -> Tensor:
        calls.append(1)
        return model(x)

    work = {}
    for name, function in (("plain", counted), ("checkpointed", partial(checkpoint, counted))):
        model.zero_grad()
        x = Tensor(X, requires_grad=True)
        with kernels.counted() as forward:
            y = function(x).sum()
        with kernels.counted() as back:
            y.backward()
        work[name] = forward.flops, back.flops
    with kernels.counted() as one:
        model(Tensor(X))
    assert len(calls) == 3
    assert work["checkpointed"][0] == work["plain"][0]
    assert work["checkpointed"][1] == work["plain"][1] + one.flops


def test_a_hook_is_called_once_when_the_gradient_is_final():
    layer, called = nn.Linear(4, 4), []
    layer.weight.register_post_accumulate_grad_hook(lambda weight: called.append(weight.grad.copy()))
    x = Tensor(X, requires_grad=True)
    layer(checkpoint(layer, checkpoint(layer, x))).sum().backward()
    assert len(called) == 1
    np.testing.assert_array_equal(called[0], layer.weight.grad)
    plain = nn.Linear(4, 4)
    plain.load_state_dict(layer.state_dict())
    plain(plain(plain(Tensor(X)))).sum().backward()
    np.testing.assert_allclose(called[0], plain.weight.grad, rtol=1e-5)


def test_checkpoints_may_be_nested():
    model, x = layers(), Tensor(X, requires_grad=True)
    first, second = model[:3], model[3:]
    y = checkpoint(lambda x: checkpoint(second, checkpoint(first, x)), x)
    (y**2).mean().backward()
    np.testing.assert_equal([p.grad for p in model.parameters()], ran(False)[0])


def test_tuples_pass_and_what_needs_no_gradient_needs_none():
    weight = nn.Parameter(np.ones((4, 4), np.float32))
    labels = np.arange(6)

    def function(pair: tuple[Tensor, Tensor], labels: np.ndarray, scale: float) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        x, mask = pair
        return x @ weight * scale, (x.exp(), mask * 2)

    x, mask = Tensor(X, requires_grad=True), Tensor(np.ones(3, np.float32))
    y, (e, doubled) = checkpoint(function, (x, mask), labels, 3.0)
    assert not doubled.requires_grad
    (y.sum() + (e * e).sum()).backward()
    again = Tensor(X, requires_grad=True)
    got, weight.grad = weight.grad, None
    y, (e, _) = function((again, mask), labels, 3.0)
    (y.sum() + (e * e).sum()).backward()
    np.testing.assert_array_equal(x.grad, again.grad)
    np.testing.assert_array_equal(got, weight.grad)


def test_named_tuples_pass_as_well():
    x, again = (Tensor(X, requires_grad=True) for _ in range(2))
    found = checkpoint(lambda pair: pair.values.sort(), x.max(1, keepdims=True))
    found.values.sum().backward()
    again.max(1, keepdims=True).values.sum().backward()
    assert type(found).__name__ == "ValuesAndIndices"
    np.testing.assert_array_equal(x.grad, again.grad)


def test_a_tensor_that_the_function_captures_gets_its_gradient():
    x = Tensor(X, requires_grad=True)
    before = x * 2
    checkpoint(lambda y: y * before, Tensor(X)).sum().backward()
    np.testing.assert_allclose(x.grad, 2 * X)


def plus_one(w):
    return w + 1.0


@pytest.mark.parametrize(
    ("make", "function"),
    [
        (plus_one, lambda p, w, h: p * h * w),
        (lambda w: w * 3.0, lambda p, w, h: p * h * w),
        (F.tanh, lambda p, w, h: checkpoint(lambda q: q * h * w, p * h)),
        (plus_one, lambda p, w, h: checkpoint(lambda q: q * q * h, h) * p),
        (plus_one, lambda p, w, h: checkpoint(lambda q, r: q * q * h * r, h, w) * p),
        (plus_one, lambda p, w, h: p * p * checkpoint(lambda q: q * h, h) * h),
    ],
    ids=["sum", "product", "nested", "passed and captured", "both passed and captured", "used outside, too"],
)
@pytest.mark.parametrize("passed", ["x", "w", "h"])
def test_captured_tensors_may_be_made_from_each_other_and_may_be_passed_too(make, function, passed):
    """Each gets the gradient by its own use, and none twice."""

    def gradients(call):
        x = Tensor([5.0, 7.0], requires_grad=True)
        w = Tensor([2.0, 3.0], requires_grad=True)
        h = make(w)
        (call(lambda p: function(p, w, h), {"x": x, "w": w, "h": h}[passed]) + h).sum().backward()
        return x.grad, w.grad

    for got, want in zip(gradients(checkpoint), gradients(lambda f, p: f(p)), strict=True):
        assert (got is None) == (want is None)
        if want is not None:
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_leaf_that_is_passed_and_captured_gets_both_gradients():
    w = Tensor([2.0, 3.0], requires_grad=True)
    checkpoint(lambda p: (p * p * w).sum(), w).backward()
    np.testing.assert_allclose(w.grad, [12.0, 27.0])


def test_an_input_that_is_returned_and_one_that_is_not_used():
    x, unused = Tensor(X, requires_grad=True), Tensor(X, requires_grad=True)
    checkpoint(lambda x, unused: x, x, unused).sum().backward()
    assert x.grad.tolist() == np.ones_like(X).tolist()
    assert unused.grad is None


def test_within_no_grad_it_is_a_plain_call():
    with no_grad():
        assert not checkpoint(layers(), Tensor(X)).requires_grad


def test_the_second_call_converts_as_the_first():
    def gradient(is_checkpointed: bool) -> np.ndarray:
        model = layers()
        with amp.autocast(dtype="bfloat16"):
            y = checkpoint(model, Tensor(X)) if is_checkpointed else model(Tensor(X))
        (y.float() ** 2).mean().backward()
        return model[0].weight.grad

    np.testing.assert_array_equal(gradient(True), gradient(False))


def test_an_update_between_forward_and_backward_is_an_error():
    layer = nn.Linear(4, 4)
    y = checkpoint(layer, Tensor(X)).sum()
    with no_grad():
        layer.weight.copy_(np.zeros((4, 4), np.float32))
    with pytest.raises(RuntimeError, match="was overwritten in place"):
        y.backward()


def test_a_function_that_returns_something_else_the_second_time_is_an_error():
    sizes = iter((4, 3))
    layer = nn.Linear(4, 4)
    y = checkpoint(lambda x: layer(x)[:, : next(sizes)], Tensor(X)).sum()
    with pytest.raises(RuntimeError, match="it must compute the same both times"):
        y.backward()


@pytest.mark.parametrize("result", [None, 3.0, {"a": 1}])
def test_a_function_that_returns_no_tensor_is_an_error(result: object):
    with pytest.raises(TypeError, match="must return a tensor, or a tuple or list of them"):
        checkpoint(lambda x: result, Tensor(X))


def test_an_error_in_the_second_call_leaves_everything_as_it_was():
    layer, calls = nn.BatchNorm1d(4), []

    def fails(x: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) > 1:
            raise OSError("gone")
        return layer(x)

    y = checkpoint(fails, Tensor(X)).sum()
    with pytest.raises(OSError, match="gone"):
        y.backward()
    before = layer.running_mean.numpy().copy()
    layer(Tensor(X + 1))
    assert (layer.running_mean.numpy() != before).all()  # statistics move again


def test_deferred_backward_computes_what_is_inside_at_once():
    layer = nn.Linear(4, 4)
    rest = backward(checkpoint(layer, Tensor(X, requires_grad=True)).sum(), defer=True)
    assert layer.weight.grad is not None
    assert rest.nbytes == 0


def test_what_is_kept_is_the_input_alone():
    import tracemalloc

    deep = nn.Sequential(*[nn.Tanh() for _ in range(50)])
    x = Tensor(np.zeros(100_000, np.float32), requires_grad=True)
    tracemalloc.start()
    y = checkpoint(deep, x)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 2.2 * y.data.nbytes
    assert F.relu(y).requires_grad
