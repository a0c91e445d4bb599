"""Lines and points: the numbers that were given are drawn, and what cannot be drawn is refused in words."""

from itertools import pairwise

import numpy as np
import pytest

from minidl.plots import lines
from minidl.plots.lines import Line, Panel


def test_every_series_is_drawn_where_it_belongs() -> None:
    left = Panel([Line("a", [1, 2], [3.0, 4.0]), Line("b", [1, 2], [5.0, 6.0], "points")], "n", "loss", log="y")
    right = Panel([Line("c", [0, 1, 2], [7.0, 8.0, 9.0], "both")], "s", "loss", xlim=(0, 1), ylim=(0, 10))
    figure = lines.draw([left, right], source=("measured", "formula"), title="a title")
    drawn = [[list(line.get_ydata()) for line in axes.get_lines()] for axes in figure.axes]
    assert drawn == [[[3.0, 4.0], [5.0, 6.0]], [[7.0, 8.0, 9.0]]]
    assert [axes.get_yscale() for axes in figure.axes] == ["log", "linear"]
    assert figure.axes[1].get_ylim() == (0, 10)
    assert figure.axes[1].get_xlim() == (0, 1)
    assert figure.get_supxlabel() == "measured and formula"


def test_points_have_no_line_and_lines_no_markers() -> None:
    series = [Line(look, [0, 1], [0, 1], look) for look in lines.LOOKS]
    drawn = lines.draw([Panel(series, "x", "y")], source="formula").axes[0].get_lines()
    looks = {line.get_label(): (line.get_linestyle() != "None", line.get_marker() != "none") for line in drawn}
    assert looks == {"line": (True, False), "points": (False, True), "both": (True, True)}


def test_series_of_one_tone_look_alike_and_others_differ_also_in_grey() -> None:
    series = [Line("measured", [0], [0], "both", 2), Line("formula", [0], [0], "both", 2), Line("other", [0], [0])]
    series += [Line("", [0], [0], "both", number) for number in (0, 1)]
    drawn = lines.draw([Panel(series, "x", "y")], source="formula").axes[0].get_lines()
    one, same, other, first, second = ((x.get_color(), str(x.get_linestyle()), str(x.get_marker())) for x in drawn)
    assert one == same
    assert all(a != b for a, b in zip(first, second, strict=True))
    assert one[0] == other[0]  # the third line has tone 2 by its place


def test_whole_numbers_are_counted_in_whole_numbers() -> None:
    for most in (16, 22, 55):
        figure = lines.draw([Panel([Line("a", [0, most], [0, most])], "nodes", "times")], source="measured")
        figure.draw_without_rendering()
        for ticks in (figure.axes[0].get_xticks(), figure.axes[0].get_yticks()):
            assert list(ticks) == [int(tick) for tick in ticks]


def test_no_picture_is_wider_than_a_page_and_there_may_be_more_series_than_colours() -> None:
    many = [Line(str(k), [0, 1], [k, k]) for k in range(9)]
    for panels, inches in ((1, 5.5), (2, 8.6), (3, 9.6), (4, 9.6)):
        figure = lines.draw([Panel(many, "x", "y")] * panels, source=("measured", "simulated", "formula"))
        assert figure.get_size_inches()[0] == pytest.approx(inches)
        assert figure.get_supxlabel() == "measured, simulated and formula"


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="loss: 2 values of x, but 3 of y"):
        Line("loss", [0, 1], np.zeros(3))
    with pytest.raises(ValueError, match="look must be 'line', 'points' or 'both', got 'dots'"):
        Line("loss", [0], [0], "dots")


@pytest.mark.parametrize(
    ("x", "y"), [([0.2, 8], [6e-4, 3e-3]), ([0.88, 1.27], [0.97, 1.02]), ([2.1, 470], [31, 33]), ([0.4] * 2, [7, 9])]
)
def test_a_logarithmic_axis_names_at_least_two_values_and_no_two_touch(x: list[float], y: list[float]) -> None:
    figure = lines.draw([Panel([Line("a", x, y)], "minutes", "share", log="xy")] * 2, source="measured")
    figure.draw_without_rendering()
    for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis):
        low, high = axis.get_view_interval()
        ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        assert len(ticks) >= 2
        boxes = sorted((tick.label1.get_window_extent() for tick in ticks), key=lambda box: (box.x0, box.y0))
        assert not any(one.overlaps(other) for one, other in pairwise(boxes))
        assert not any(tick.label1.get_text() for tick in axis.get_minor_ticks())
