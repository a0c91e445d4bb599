"""Statistics over seeds: intervals hold the mean as often as stated, the median counts runs that miss the target."""

import numpy as np
import pytest

from minidl.parallel.measures.spread import estimate, mean, median_time, pareto_front
from minidl.random import Purpose, stream


@pytest.mark.parametrize(("runs", "low", "high"), [(3, 0.71, 0.79), (5, 0.80, 0.87), (20, 0.91, 0.95)])
def test_intervals_hold_the_true_mean_as_often_as_stated(runs: int, low: float, high: float) -> None:
    cases = 800
    values = stream(Purpose.MANUAL, 3, runs).normal(2.3, 1.7, size=(cases, runs))
    estimates = [estimate(mean, row, seed=seed) for seed, row in enumerate(values)]
    held = np.mean([one.low <= 2.3 <= one.high for one in estimates])
    assert low < held < high


def test_an_interval_lies_between_the_extremes_and_depends_on_the_seed() -> None:
    values = stream(Purpose.MANUAL, 5).exponential(size=13)
    one = estimate(mean, values)
    assert min(values) < one.low < one.value < one.high < max(values)
    assert one == estimate(mean, values) != estimate(mean, values, seed=1)
    assert one.value == pytest.approx(values.mean())


def test_with_all_runs_at_the_target_the_median_is_the_usual_one() -> None:
    for runs in (1, 2, 5, 8):
        seconds = stream(Purpose.MANUAL, 7, runs).exponential(size=(6, runs))
        np.testing.assert_allclose(median_time(seconds, np.ones_like(seconds)), np.median(seconds, axis=1))


def test_the_median_time_counts_runs_that_miss_the_target() -> None:
    assert median_time([2.0, 7.0, 7.0], [True, False, False]) == np.inf  # the mean of those that reach it is 2
    assert median_time([2.0, 3.5, 7.0], [True, True, False]) == 3.5
    assert median_time([2.0, 3.0, 7.0, 7.0], [True, True, False, False]) == np.inf  # half, but not more
    # Of the run that was stopped at 1 nothing is known; of the others 3 / 4, 1 / 2, 1 / 4 are not there after 2, 3, 5
    assert median_time([1.0, 2.0, 3.0, 5.0, 9.0], [False, True, True, True, False]) == pytest.approx(4.0)


def test_the_front_has_the_points_that_none_beats() -> None:
    rng = stream(Purpose.MANUAL, 11)
    points = [(float(x), float(y)) for x, y in rng.integers(0, 9, size=(40, 2))]
    beaten = [any(a <= x and b >= y and (a, b) != (x, y) for a, b in points) for x, y in points]
    assert sorted(pareto_front(points)) == [i for i, is_beaten in enumerate(beaten) if not is_beaten]
    assert pareto_front([]) == []


@pytest.mark.parametrize("samples", [(), ([],), ([1.0, 2.0], [1.0])])
def test_samples_that_are_not_one_number_per_run_are_refused(samples: tuple) -> None:
    with pytest.raises(ValueError, match="samples need one number per run, got shapes"):
        estimate(mean, *samples)
