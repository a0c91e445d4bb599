"""Intervals between checkpoints: published values, the optimum, and formulas against simulated failures."""

import numpy as np
import pytest

from minidl.parallel.measures.checkpoint_interval import best_interval, daly, failures, goodput, simulated, young

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


@pytest.mark.parametrize(("mtbf", "published"), [(24 * HOUR, 117), (6 * HOUR, 57), (15 * MINUTE, 9.1)])
def test_dalys_interval_is_the_one_that_he_prints(mtbf, published):
    """Daly (2006), figures 3 to 5: checkpoints of 5 minutes."""
    assert daly(5 * MINUTE, mtbf) / MINUTE == pytest.approx(published, rel=0.006)


@pytest.mark.parametrize("blocking", [None, 0.7, 0.0])
@pytest.mark.parametrize("ratio", [0.0013, 0.41, 3.7])
def test_no_other_interval_has_a_larger_goodput(ratio, blocking):
    cost, mtbf = 17.3, 17.3 / ratio
    best = best_interval(cost, mtbf, blocking)
    shortest = 0.0 if blocking is None else cost - blocking
    others = [each for each in best * np.linspace(0.5, 1.5, 41) if each > shortest]
    reached = [goodput(each, cost, mtbf, 31.0, blocking) for each in others]
    assert goodput(best, cost, mtbf, 31.0, blocking) >= max(reached) > min(reached)
    assert best_interval(cost, mtbf, cost) == best_interval(cost, mtbf)


def test_short_checkpoints_make_all_formulas_agree_and_long_ones_ruin_youngs():
    short, long = best_interval(1.0, 1e6), best_interval(1.0, 2.0)
    assert (young(1.0, 1e6), daly(1.0, 1e6)) == (pytest.approx(short, rel=1e-3), pytest.approx(short, rel=1e-7))
    assert (young(1.0, 2.0) > 1.3 * long, daly(1.0, 2.0)) == (True, pytest.approx(long, rel=0.01))
    assert daly(3.0, 1.5) == 1.5
    assert best_interval(1.7e-14, 1.0) == pytest.approx(young(1.7e-14, 1.0), rel=1e-6)


def step_by_step(times, seconds, interval, cost, restart, blocking):
    """The saved work, second by second of a run in whole seconds."""
    saved, resumes, work, stopped, writing = 0, 0, 0, 0, None
    for now in range(seconds):
        if now in times:
            resumes, work, stopped, writing = now + restart, 0, 0, None
        if now < resumes:
            continue
        if writing is not None:
            writing -= 1
        if stopped:
            stopped -= 1
        else:
            work += 1
        if writing == 0:
            saved, writing = saved + interval, None
        if work == interval and not stopped:
            work, stopped, writing = 0, blocking, cost
    return saved


@pytest.mark.parametrize(("interval", "cost", "blocking"), [(13, 5, 5), (11, 9, 2), (7, 7, 0)])
def test_a_simulated_run_saves_what_one_saves_second_by_second(interval, cost, blocking):
    times = np.unique(np.round(failures(7, 900.0, 4000.0, shape=0.6, seed=5)))
    run = simulated(times, 4001, interval, cost, 3, blocking)
    assert run.work.sum() == step_by_step(set(times), 4001, interval, cost, 3, blocking) > 1000
    assert run.seconds.sum() == 4001
    assert min(part.min() for part in (run.restart, run.work, run.blocked, run.lost)) >= 0
    assert run.restart[0] == 0


@pytest.mark.parametrize("blocking", [None, 0.0, 11.0])
@pytest.mark.parametrize("node_mtbf", [3 * HOUR, 4.1 * DAY, 30 * DAY])
@pytest.mark.parametrize("nodes", [8, 333, 16_384])
def test_the_expected_goodput_is_that_of_simulated_failures(nodes, node_mtbf, blocking):
    """Within four standard errors, over some 4,000 failures, at the best interval and at twice and half of it."""
    mtbf = node_mtbf / nodes
    cost, restart, seconds = min(41.0, 2 * mtbf), min(97.0, mtbf), 4000 * mtbf
    blocking = None if blocking is None else min(blocking, cost)
    times = failures(nodes, node_mtbf, seconds, seed=11)
    for factor in (0.5, 1.0, 2.0):
        shortest = 0.0 if blocking is None else cost - blocking
        interval = max(factor * best_interval(cost, mtbf, blocking), shortest)
        run = simulated(times, seconds, interval, cost, restart, blocking)
        expected = goodput(interval, cost, mtbf, restart, blocking)
        assert abs(run.goodput - expected) < 4 * run.standard_error < 0.05


@pytest.mark.parametrize(("shape", "on_the_first_day"), [(1.0, 500 / 3), (0.7, 500 * 0.595)])
def test_nodes_fail_as_often_as_their_mean_says_and_with_a_small_shape_early(shape, on_the_first_day):
    """0.595 failures of a node on its first day solve the renewal equation m = F + F' * m for shape 0.7."""
    times = failures(500, 3 * DAY, 120 * DAY, shape, seed=2)
    assert (np.diff(times) >= 0).all()
    assert (times > 60 * DAY).sum() == pytest.approx(500 * 20, rel=0.03)
    assert (times < DAY).sum() == pytest.approx(on_the_first_day, rel=0.2)


def test_impossible_numbers_are_refused():
    for call, message in (
        (lambda: young(0, 10), "cost must be above 0, got 0"),
        (lambda: goodput(5, 10, 100, blocking=2), "interval=5: the last checkpoint takes 8 s to be written"),
        (lambda: goodput(50, 10, 100, blocking=11), "blocking must be from 0 to 10, got 11"),
        (lambda: failures(3, 10, np.nan), "seconds must be finite and above 0, got nan"),
        (lambda: failures(3, 10, 5, shape=0.01), "shape must be at least 0.1, got 0.01"),
        (lambda: simulated([3.1, 2.7], 10, 1, 1), "failures must be in ascending order, from 0 to seconds=10"),
        (lambda: simulated([3.1, 12.7], 10, 1, 1), "failures must be in ascending order, from 0 to seconds=10"),
        (lambda: simulated([np.nan], 10, 1, 1), "failures must be in ascending order, from 0 to seconds=10"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
