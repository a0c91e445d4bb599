"""Lines of times over nodes or bytes: an algorithm can look the same in several pictures."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from minidl.plots import scaling, style
from minidl.plots.scaling import Line, Panel

X = [2.0, 4.0]


def looks(*lines: Line) -> list[tuple[str, str]]:
    """Colour and marker of each line as drawn."""
    figure = scaling.draw([Panel("", lines)], columns=1, xlabel="ranks", source="formula")
    return [(str(line.get_color()), str(line.get_marker())) for line in figure.axes[0].get_lines()]


def test_a_line_with_a_series_looks_the_same_wherever_it_stands():
    ring = Line("ring", X, [1.0, 2.0], series=3)
    alone, among = looks(ring), looks(Line("tree", X, [3.0, 4.0], series=1), ring)
    assert among[1] == alone[0]
    assert alone[0][0] == style.SERIES[3]


def test_a_long_heading_does_not_reach_the_legend():
    panels = [Panel("a/network/in/a/folder/" * 4 + "net.json, 64 nodes", [Line("ring", X, [1.0, 2.0])])]
    figure = scaling.draw(panels, columns=1, xlabel="bytes", source="simulated", title="all_reduce")
    figure.draw_without_rendering()
    (heading,) = (text for text in figure.findobj(Text) if text.get_text().startswith("a/network"))
    assert heading.get_window_extent().x1 <= figure.legends[0].get_window_extent().x0


def test_lines_take_the_looks_in_their_order_and_a_choice_takes_none_from_the_others():
    chosen = Line("auto", X, [1.0, 2.0], is_choice=True)
    _, first, second = looks(chosen, Line("tree", X, [1.0, 2.0]), Line("ring", X, [3.0, 4.0]))
    assert (first[0], second[0]) == style.SERIES[:2]
    assert first[1] != second[1]


def bars(times: list[float]) -> Figure:
    lines = [Line(f"algorithm_number_{place}", [8], [seconds]) for place, seconds in enumerate(times)]
    figure = scaling.draw([Panel("10gbe", lines)], columns=1, xlabel="nodes", source="simulated", title="all_reduce")
    figure.draw_without_rendering()
    return figure


@pytest.mark.parametrize(("longest", "scale"), [(0.3, "linear"), (3.9, "linear"), (4.3, "log"), (700.0, "log")])
def test_bars_that_span_more_than_a_factor_of_20_have_a_logarithmic_axis_that_says_so(longest, scale):
    (axes,) = bars([0.2, 0.21, longest]).axes
    assert axes.get_xscale() == scale
    assert ("logarithmic" in axes.get_xlabel()) == (scale == "log")
    shortest = axes.patches[0].get_window_extent().width / axes.patches[-1].get_window_extent().width
    assert 0.05 < shortest < 1  # a bar that can be seen


@pytest.mark.parametrize("times", [[0.37], [0.21] * 3, [0.031 * 1.4**place for place in range(20)]])
def test_the_texts_of_up_to_20_bars_do_not_touch_and_stay_inside(times):
    figure = bars(times)
    (axes,) = figure.axes
    low, high = axes.get_xlim()
    ticks = [text for text in axes.get_xticklabels() if low <= text.get_position()[0] <= high]
    lines = [*axes.texts, *axes.get_yticklabels(), axes.xaxis.label]
    texts = [text for text in (*ticks, *lines, *figure.texts) if text.get_text()]
    boxes = [text.get_window_extent() for text in texts]
    for place, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert not any(box.overlaps(other) for other in boxes[place + 1 :]), texts[place].get_text()


def test_the_legend_of_20_lines_ends_inside_the_picture():
    lines = [Line(f"algorithm {place}", X, [1.0 + place, 2.0 + place]) for place in range(20)]
    figure = scaling.draw([Panel("", lines)], columns=1, xlabel="nodes", source="simulated")
    figure.draw_without_rendering()
    assert figure.legends[0].get_window_extent().y0 >= 0


def test_the_fastest_bar_is_marked_and_named_with_those_that_read_the_same():
    lines = [Line("auto", [8], [0.12], is_choice=True), Line("ring", [8], [0.120004]), Line("tree", [8], [0.3])]
    lines.append(Line("server", [8], [0.12]))
    (axes,) = scaling.draw([Panel("10gbe", lines)], columns=1, xlabel="", source="simulated").axes
    heading = " ".join(axes.get_title(loc="left").split())
    assert heading == "10gbe fastest: server and ring, 120 ms; tree takes 2.5 times as long"
    colours = [patch.get_facecolor() for patch in axes.patches]
    assert colours[1] == colours[3] != colours[2]
    assert scaling.fastest({"ring": 0.1}, {"auto": 0.1}) == ""
    assert scaling.fastest({"ring": 0.1, "tree": 0.1}, {}) == "ring and tree, 100 ms"


def test_auto_is_named_where_its_options_are_faster_than_all_others():
    times = {"hierarchical 4 x 16": 0.268, "ring": 0.839}
    best = scaling.fastest(times, {"auto: hierarchical": 0.233})
    assert best == "auto: hierarchical, 233 ms; hierarchical 4 x 16 takes 1.15 times as long"
