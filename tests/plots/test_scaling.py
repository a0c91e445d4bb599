"""Lines of times over nodes or bytes: an algorithm can look the same in several pictures."""

from __future__ import annotations

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
