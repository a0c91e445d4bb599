"""Pictures of ratios: an axis that can be read, however narrow its range."""

from __future__ import annotations

from benchmarks.peers.ratios import Panel, Point, draw


def test_the_axis_names_at_least_three_ratios() -> None:
    for ratio in (0.56, 0.3, 0.01, 1.5, 1.03):
        points = [Point("gpt", "1 node", ratio, (ratio * 0.95, ratio * 1.05))]
        figure = draw([Panel("scaling", points, "ratio")], source="measured")
        figure.draw_without_rendering()
        (axes,) = figure.axes
        low, high = axes.get_xlim()
        named = [
            label for label in axes.get_xticklabels() if label.get_text() and low <= label.get_position()[0] <= high
        ]
        assert len(named) >= 3, ratio
