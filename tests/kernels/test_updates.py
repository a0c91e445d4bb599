"""The compiled updates mean what the reference's mean, and leave to it what they cannot take."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl.kernels import jit, reference
from minidl.kernels.jit.eligible import eligible
from tests.together import naming

Update = Callable[..., Any]

UPDATES: dict[str, Update] = {
    "sgd": lambda k, a: k.sgd(a[0], a[1], None, 0.1, 0.0, 0.0, 0.01, False),
    "sgd with momentum": lambda k, a: k.sgd(a[0], a[1], a[2], 0.1, 0.9, 0.2, 0.01, False),
    "sgd with nesterov": lambda k, a: k.sgd(a[0], a[1], a[2], 0.1, 0.9, 0.0, 0.01, True),
    "sgd, v-form": lambda k, a: k.sgd_velocity(a[0], a[1], a[2], 0.1, 0.9, 0.2, 0.01, False),
    "sgd, v-form with nesterov": lambda k, a: k.sgd_velocity(a[0], a[1], a[2], 0.1, 0.9, 0.0, 0.01, True),
    "adagrad": lambda k, a: k.adagrad(a[0], a[1], a[2], 0.1, 1e-3, 0.01),
    "rmsprop": lambda k, a: k.rmsprop(a[0], a[1], a[2], None, None, 0.1, 0.9, 1e-3, 0.01, 0.0),
    "rmsprop, centered": lambda k, a: k.rmsprop(a[0], a[1], a[2], a[3] / 9, None, 0.1, 0.9, 0.1, 0.01, 0.0),
    "rmsprop with momentum": lambda k, a: k.rmsprop(a[0], a[1], a[2], None, a[4], 0.1, 0.9, 1e-3, 0.01, 0.9),
    "adam": lambda k, a: k.adam(a[0], a[1], a[2], a[3], 3, 0.1, 0.9, 0.99, 1e-3, 0.01, False),
    "adamw": lambda k, a: k.adam(a[0], a[1], a[2], a[3], 3, 0.1, 0.9, 0.99, 1e-3, 0.01, True),
    "lars": lambda k, a: k.lars(a[0], a[1], a[2], 0.1, 0.9, 0.01),
    "lamb": lambda k, a: k.lamb_direction(a[0], a[1], a[2], a[3], 3, 0.9, 0.99, 1e-3, 0.01),
    "norm": lambda k, a: k.l2_norm(a[0]),
}
LAYOUTS = {
    "columns first": np.asfortranarray,
    "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "backwards": lambda a: a[::-1],
    "another dtype": lambda a: a.astype(np.float32),
}
every_update = pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)


def arrays(shape: tuple[int, ...], dtype: str = "float64") -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.uniform(0.5, 1.5, size=shape).astype(dtype) for _ in range(5)]


def assert_same(update: Update, ours: list[np.ndarray], expected: list[np.ndarray], tolerance: float) -> None:
    result, wanted = update(jit, ours), update(reference, expected)
    if wanted is not None:
        np.testing.assert_allclose(result, wanted, rtol=tolerance)
    for a, b in zip(ours, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance)


@every_update
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-14), ("float32", 1e-6)])
def test_the_compiled_update_equals_the_reference(update, dtype, tolerance):
    for shape in ((1003,), (3, 4, 5), (1,), (0,), ()):
        assert_same(update, arrays(shape, dtype), arrays(shape, dtype), tolerance)


@every_update
def test_an_array_that_the_loops_cannot_take_is_updated_all_the_same(update):
    for which in range(4):
        for name, layout in LAYOUTS.items():
            ours, expected = arrays((4, 5)), arrays((4, 5))
            ours[which] = layout(ours[which])
            expected[which] = layout(expected[which]).copy()
            with naming(f"{name}, array {which}"):
                assert_same(update, ours, expected, 1e-6 if ours[which].dtype == np.float32 else 1e-14)


def test_half_precision_and_long_doubles_go_to_the_reference():
    for dtype, tolerance in (("float16", 1e-3), ("longdouble", 1e-14)):
        assert_same(UPDATES["adam"], arrays((4, 5), dtype), arrays((4, 5), dtype), tolerance)


def test_arrays_of_different_sizes_and_parameters_that_are_read_only_raise():
    ours = arrays((6,))
    with pytest.raises(ValueError, match="broadcast"):
        jit.sgd(ours[0], ours[1][:5], None, 0.1, 0.0, 0.0, 0.0, False)
    ours[0].flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        jit.sgd(ours[0], ours[1], None, 0.1, 0.0, 0.0, 0.0, False)


def test_scalars_of_any_type_mean_the_same():
    expected = arrays((6,), "float32")
    jit.sgd(expected[0], expected[1], expected[2], 1.0, 0.5, 0.0, 0.0, False)
    for one, half in ((1, np.float64(0.5)), (np.float32(1), np.array(0.5)), (np.int64(1), np.float32(0.5))):
        ours = arrays((6,), "float32")
        jit.sgd(ours[0], ours[1], ours[2], one, half, 0, 0, False)
        np.testing.assert_array_equal(ours[0], expected[0])
        assert ours[0].dtype == np.float32


# ---- which arrays the compiled kernels take ----


def test_an_array_from_another_process_is_eligible():
    for dtype in ("float32", "float64"):
        here = np.ones(3, dtype)
        sent = pickle.loads(pickle.dumps(here))
        assert sent.dtype is not here.dtype  # equal, but another object: hence the test
        assert eligible(sent)
        assert eligible(here, sent)


def test_all_others_go_to_the_reference():
    x = np.ones((4, 4), np.float32)
    for other in (np.ones(3, np.float16), np.ones(3, np.int64), x[:, ::2], np.ones(0, np.float32), 1.0):
        assert not eligible(other)
        assert not eligible(x, other)
    assert not eligible(x, x.astype(np.float64))


def test_a_gradient_from_another_process_updates_in_the_compiled_loop(monkeypatch):
    monkeypatch.setattr("minidl.kernels.reference.sgd", None)
    p, g = np.ones(3, np.float32), pickle.loads(pickle.dumps(np.ones(3, np.float32)))
    jit.sgd(p, g, None, 0.25, 0.0, 0.0, 0.0, False)
    assert p.tolist() == [0.75] * 3
