"""Checkpointing changes what is kept, not what is computed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from minidl import Tensor, amp, checkpoint, kernels, manual_seed, nn, no_grad
from minidl import functional as F
from tests.together import naming

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


def plus_one(w):
    return w + 1.0


def test_captured_tensors_may_be_made_from_each_other_and_may_be_passed_too():
    """Each gets the gradient by its own use, and none twice."""
    for name, make, function in (
        ("sum", plus_one, lambda p, w, h: p * h * w),
        ("product", lambda w: w * 3.0, lambda p, w, h: p * h * w),
        ("nested", F.tanh, lambda p, w, h: checkpoint(lambda q: q * h * w, p * h)),
        ("passed and captured", plus_one, lambda p, w, h: checkpoint(lambda q: q * q * h, h) * p),
        ("both", plus_one, lambda p, w, h: checkpoint(lambda q, r: q * q * h * r, h, w) * p),
        ("used outside, too", plus_one, lambda p, w, h: p * p * checkpoint(lambda q: q * h, h) * h),
    ):
        for passed in ("x", "w", "h"):

            def gradients(call, make=make, function=function, passed=passed):
                x = Tensor([5.0, 7.0], requires_grad=True)
                w = Tensor([2.0, 3.0], requires_grad=True)
                h = make(w)
                (call(lambda p: function(p, w, h), {"x": x, "w": w, "h": h}[passed]) + h).sum().backward()
                return x.grad, w.grad

            for got, want in zip(gradients(checkpoint), gradients(lambda f, p: f(p)), strict=True):
                with naming(f"{name}, {passed} passed"):
                    assert (got is None) == (want is None)
                    if want is not None:
                        np.testing.assert_allclose(got, want, rtol=1e-6)


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


def test_a_function_that_returns_no_tensor_is_an_error():
    for result in (None, 3.0, {"a": 1}):
        with pytest.raises(TypeError, match="must return a tensor, or a tuple or list of them"):
            checkpoint(lambda x, result=result: result, Tensor(X))


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
