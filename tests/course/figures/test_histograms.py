"""The histograms show shares of the counts, and the formula's points where there is one."""

from course.figures.histograms import Histogram, histograms

CASES = [Histogram("equal", {7: 4}), Histogram("random", {0: 3, 2: 1}, {0: 0.5, 1: 0.25})]


def test_bars_are_the_shares_in_percent():
    figure = histograms(CASES, xlabel="staleness", ylabel="share (%)", source="simulated")
    heights = [[(bar.get_center()[0], bar.get_height()) for bar in axes.patches] for axes in figure.axes]
    assert heights == [[(7.0, 100.0)], [(0.0, 75.0), (2.0, 25.0)]]
    assert figure.get_supxlabel() == "simulated"


def test_points_are_the_formulas_shares_in_percent():
    first, second = histograms(CASES, xlabel="staleness", ylabel="share (%)", source="formula").axes
    assert len(first.get_lines()) == 0
    assert second.get_lines()[0].get_xydata().tolist() == [[0, 50], [1, 25]]
