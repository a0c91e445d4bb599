"""The spirals."""

import numpy as np
import pytest

from minidl.data import spirals


def test_spirals_hold_out_a_fifth_and_have_equally_large_classes() -> None:
    train, test = spirals(n=1001, classes=4)
    assert (len(train), len(test)) == (801, 200)
    assert train.x.shape == (801, 2)
    assert (train.x.dtype, train.y.dtype) == (np.float32, np.int64)
    counts = np.bincount(np.concatenate([train.y, test.y]))
    assert counts.tolist() == [251, 250, 250, 250]


def test_without_noise_every_point_lies_on_its_arm() -> None:
    for part in spirals(n=300, classes=3, noise=0):
        radius = np.hypot(*part.x.T)
        angle = 2 * np.pi * part.y / 3 + 4 * radius
        np.testing.assert_allclose(part.x, (radius * [np.cos(angle), np.sin(angle)]).T, atol=1e-5)


def test_the_seed_fixes_the_points() -> None:
    np.testing.assert_array_equal(spirals(seed=1).train.x, spirals(seed=1).train.x)
    assert not np.array_equal(spirals(seed=1).train.x, spirals(seed=2).train.x)


def test_impossible_spirals_are_refused() -> None:
    for options in ({"n": 0}, {"classes": 1}, {"noise": -0.1}, {"noise": float("nan")}, {"seed": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
            spirals(**options)  # type: ignore[arg-type]
    for wrong in ({"n": True}, {"n": 100.0}, {"noise": "0.1"}, {"seed": None}):
        with pytest.raises(TypeError, match=f"{next(iter(wrong))} must be a (whole )?number"):
            spirals(**wrong)  # type: ignore[arg-type]
