"""Bars divide the time of workers and programs, and show the shares of counts beside a formula's."""

from course.figures.histograms import Histogram, histograms
from course.figures.time_shares import time_shares
from course.figures.waiting import Run, waiting

CASES = [Histogram("equal", {7: 4}), Histogram("random", {0: 3, 2: 1}, {0: 0.5, 1: 0.25})]


def test_computing_and_waiting_add_up_to_the_time_of_the_run():
    [axes] = waiting([Run("lockstep", [1.0, 2.5], 4.0)], source="simulated", columns=1).axes
    spans = sorted((bar.get_y(), bar.get_x(), bar.get_width()) for bar in axes.patches)
    assert [(start, width) for _, start, width in spans] == [(0, 1.0), (1.0, 3.0), (0, 2.5), (2.5, 1.5)]


def test_worker_0_is_the_uppermost_one_and_unused_axes_are_hidden():
    figure = waiting([Run("one", [1.0], 1.0), Run("two", [1.0], 2.0)], source="simulated")
    assert all(axes.yaxis_inverted() for axes in figure.axes[:2])
    assert [axes.get_visible() for axes in figure.axes] == [True, True, False]


def test_bars_are_the_shares_in_percent():
    figure = histograms(CASES, xlabel="staleness", ylabel="share (%)", source="simulated")
    heights = [[(bar.get_center()[0], bar.get_height()) for bar in axes.patches] for axes in figure.axes]
    assert heights == [[(7.0, 100.0)], [(0.0, 75.0), (2.0, 25.0)]]
    assert figure.get_supxlabel() == "simulated"


def test_points_are_the_formulas_shares_in_percent():
    first, second = histograms(CASES, xlabel="staleness", ylabel="share (%)", source="formula").axes
    assert len(first.get_lines()) == 0
    assert second.get_lines()[0].get_xydata().tolist() == [[0, 50], [1, 25]]


def test_the_shares_of_each_program_add_up_to_its_time():
    times = {"queue": (10.0, (0.5, 0.2, 0.3)), "tree": (4.0, (1.0, 0.0, 0.0))}
    [axes] = time_shares(times, xlabel="time (ms)", title="two programs", source="simulated").axes
    spans = [(round(bar.get_x(), 9), round(bar.get_width(), 9)) for bar in axes.patches]
    assert spans[::2] == [(0, 5.0), (5.0, 2.0), (7.0, 3.0)]
    assert spans[1::2] == [(0, 4.0), (4.0, 0), (4.0, 0)]


def test_the_first_program_is_the_uppermost_one():
    times = {"first": (1.0, (1.0, 0.0, 0.0)), "second": (1.0, (1.0, 0.0, 0.0))}
    [axes] = time_shares(times, xlabel="", title="", source="simulated").axes
    assert axes.yaxis_inverted()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["first", "second"]
