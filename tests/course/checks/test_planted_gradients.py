"""What the check of `check_gradient` lends to an answer costs the check little, whatever it is given."""

from __future__ import annotations

import numpy as np
import pytest

from course.checks.backpropagation.planted_gradients import cases


@pytest.mark.parametrize("shape", [(), (6,), (5, 1), (50_000, 5, 1)], ids=str)
def test_an_x_of_another_shape_is_refused_before_anything_is_computed(shape: tuple[int, ...]) -> None:
    for case in cases((5, 20), 1e8, seed=0):
        if case.x.shape == (5,):
            with pytest.raises(ValueError, match=r"f: x has shape \(5,\), got"):
                case.lent_f(np.ones(shape))
            with pytest.raises(ValueError, match=r"gradient: x has shape \(5,\), got"):
                case.lent_gradient(np.ones(shape))


def test_near_x_the_lent_functions_have_the_true_values() -> None:
    for case in cases((5, 20), 1e8, seed=0):
        near = case.x + 1e-5 * np.abs(case.x).max()
        assert case.lent_f(near) == case.f(near)
        assert case.lent_gradient(case.x).tolist() == pytest.approx(case.gradient(case.x).tolist(), nan_ok=True)
