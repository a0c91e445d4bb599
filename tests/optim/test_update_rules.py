"""The update rules against what can be worked out on paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minidl import Tensor, optim
from tests.together import naming


def weights(values: Any) -> Tensor:
    return Tensor(np.array(values, dtype=np.float64), requires_grad=True)


def steps(optimizer: optim.Optimizer, tensor: Tensor, gradient: Any, count: int) -> np.ndarray:
    for _ in range(count):
        tensor.grad = np.array(gradient, dtype=tensor.dtype)
        optimizer.step()
    return tensor.data


GRADIENT = [300.0, -0.02, 5e-5]


def test_the_first_step_of_an_adaptive_rule_is_lr_times_the_sign():
    for make in [
        lambda w: optim.Adagrad([w], lr=0.1, eps=0.0),
        lambda w: optim.Adam([w], lr=0.1, eps=0.0),
        lambda w: optim.AdamW([w], lr=0.1, eps=0.0, weight_decay=0.0),
        lambda w: optim.RMSprop([w], lr=0.1, eps=0.0, alpha=0.0),
    ]:
        w = weights([1.0, 1.0, 1.0])
        np.testing.assert_allclose(steps(make(w), w, GRADIENT, 1), [0.9, 1.1, 0.9], rtol=1e-14)


def test_the_step_of_centered_rmsprop_tends_to_lr_times_the_gradient_over_eps():
    w = weights([0.0, 0.0, 0.0])
    optimizer = optim.RMSprop([w], lr=0.1, alpha=0.5, eps=0.25, centered=True)
    before = steps(optimizer, w, GRADIENT, 300).copy()
    np.testing.assert_allclose(steps(optimizer, w, GRADIENT, 1) - before, -0.4 * np.array(GRADIENT), rtol=1e-6)


def test_the_momentum_of_changing_gradients_is_the_sum_written_out():
    gradients = np.random.default_rng(0).normal(size=(6, 4))
    w = weights(np.zeros(4))
    optimizer = optim.SGD([w], lr=0.5, momentum=0.8, dampening=0.25)
    for gradient in gradients:
        steps(optimizer, w, gradient, 1)
    expected = np.zeros(4)
    for t in range(6):  # b_t = 0.8^t g_0 + 0.75 (sum over s from 1 to t of 0.8^(t-s) g_s)
        expected += 0.8**t * gradients[0] + sum(0.75 * 0.8 ** (t - s) * gradients[s] for s in range(1, t + 1))
    np.testing.assert_allclose(w.data, -0.5 * expected, rtol=1e-13)


def test_nesterovs_momentum_is_the_look_ahead_form_in_other_variables():
    curvature, lr, m = np.array([1.0, 0.1]), 0.3, 0.9
    w = weights([1.0, -2.0])
    optimizer = optim.SGD([w], lr=lr, momentum=m, nesterov=True)
    x, v = w.data.copy(), np.zeros(2)  # x: the look-ahead form's own iterate
    for _ in range(20):
        steps(optimizer, w, curvature * w.data, 1)
        v = m * v - lr * curvature * (x + m * v)
        x = x + v
        np.testing.assert_allclose(w.data, x + m * v, rtol=1e-10)


def both_forms(rates, corrected: bool = False, **options: Any) -> list[np.ndarray]:
    """Where each form of momentum is after a step at each of the rates; Goyal's factor corrects the v-form."""
    ends = []
    for form in "u", "v":
        w = weights([1.0, -2.0, 0.5])
        optimizer = optim.SGD([w], lr=rates[0], momentum=0.9, momentum_form=form, **options)
        random, before = np.random.default_rng(1), rates[0]
        for rate in rates:
            factor = rate / before if corrected and form == "v" else 1.0
            optimizer.param_groups[0].update(lr=rate, momentum=0.9 * factor)
            steps(optimizer, w, random.normal(size=3) + w.data, 1)
            before = rate
        ends.append(w.data)
    return ends


def test_both_forms_of_momentum_make_the_same_steps_at_a_constant_rate():
    for options in [{}, {"nesterov": True}, {"dampening": 0.3}, {"weight_decay": 0.1}]:
        with naming(options):
            u, v = both_forms([0.1] * 50, **options)
            np.testing.assert_allclose(u, v, rtol=1e-14, atol=1e-15)


CHANGING = [0.1] * 5 + [0.4] * 5 + [0.04] * 5


def test_goyals_factor_on_the_momentum_makes_the_forms_equal_again():
    u, v = both_forms(CHANGING)
    assert np.abs(u - v).max() > 1e-2
    u, v = both_forms(CHANGING, corrected=True)
    np.testing.assert_allclose(u, v, rtol=1e-14, atol=1e-15)


def test_the_v_form_is_the_textbooks_recurrence():
    gradients = np.random.default_rng(3).normal(size=(6, 2))
    w, x, v = weights([0.0, 0.0]), np.zeros(2), np.zeros(2)
    optimizer = optim.SGD([w], lr=0.1, momentum=0.8, momentum_form="v")
    for t, gradient in enumerate(gradients):
        optimizer.param_groups[0]["lr"] = lr = 0.1 * (t + 1)
        steps(optimizer, w, gradient, 1)
        v = 0.8 * v - lr * gradient
        x = x + v
        np.testing.assert_allclose(optimizer.state[w]["velocity"], v, rtol=1e-14)
    np.testing.assert_allclose(w.data, x, rtol=1e-14)


def test_adagrads_steps_under_a_constant_gradient_are_one_over_the_root_of_t():
    w = weights([0.0])
    expected = -0.1 * sum(1 / (np.sqrt(t) * (1 + 0.5 * (t - 1))) for t in range(1, 21))
    np.testing.assert_allclose(steps(optim.Adagrad([w], lr=0.1, lr_decay=0.5, eps=0.0), w, [7.0], 20), expected, 1e-13)


def test_adam_matches_a_scalar_transcription_of_the_paper_with_eps_outside_the_root():
    for rule in ["Adam", "AdamW"]:
        with naming(rule):
            gradients = np.random.default_rng(2).normal(size=20)
            lr, beta1, beta2, eps, decay = 0.05, 0.8, 0.9, 0.1, 0.3
            w = weights([1.5])
            optimizer = getattr(optim, rule)([w], lr, (beta1, beta2), eps, decay)
            x, m, v = 1.5, 0.0, 0.0
            for t, gradient in enumerate(gradients, start=1):
                steps(optimizer, w, [gradient], 1)
                g = gradient + decay * x if rule == "Adam" else gradient
                m = beta1 * m + (1 - beta1) * g
                v = beta2 * v + (1 - beta2) * g**2
                step = lr * (m / (1 - beta1**t)) / ((v / (1 - beta2**t)) ** 0.5 + eps)
                x = x - step - (lr * decay * x if rule == "AdamW" else 0.0)
            assert w.data[0] == pytest.approx(x, rel=1e-13)


def test_a_centered_variance_that_rounding_takes_below_zero_gives_no_nan():
    w = Tensor(np.zeros(64, np.float32), requires_grad=True)
    optimizer = optim.RMSprop([w], lr=0.01, alpha=0.5, centered=True, eps=1.0)
    gradient = np.random.default_rng(3).normal(size=64)
    assert np.isfinite(steps(optimizer, w, gradient, 200)).all()


def test_an_option_of_rmsprop_that_is_switched_on_midway_starts_from_zeros():
    for option, value, buffer in [("momentum", 0.9, "momentum_buffer"), ("centered", True, "grad_avg")]:
        with naming(option):
            w, other = (Tensor([1.0, -2.0], requires_grad=True) for _ in range(2))
            switched, always = optim.RMSprop([w], lr=0.1), optim.RMSprop([other], lr=0.1, **{option: value})
            w.grad = other.grad = np.array([0.5, 3.0], np.float32)
            switched.step()
            always.step()
            other.data[...] = w.data
            always.state[other][buffer][...] = 0
            switched.param_groups[0][option] = value
            for _ in range(3):
                switched.step()
                always.step()
                np.testing.assert_array_equal(w.data, other.data)
