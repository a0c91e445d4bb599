"""Ratios on a logarithmic axis with 1 marked: a row for each case, a mark for each series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minidl.plots import style
from minidl.plots.scaling import MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW_INCHES = 0.24
NARROW = 5.0  # the largest ratio over the smallest, up to which 0.1, 0.2, ... and 1, 2, ... have labels
NARROWER = 2.0  # up to which labels have equal distances


@dataclass(frozen=True)
class Point:
    """One ratio.

    Parameters
        row          text at the left
        series       text in the legend
        ratio        the median
        quartiles    ends of the line through the mark
    """

    row: str
    series: str
    ratio: float
    quartiles: tuple[float, float]


@dataclass(frozen=True)
class Panel:
    """Ratios on one pair of axes; `xlabel` names the quantity."""

    title: str
    points: Sequence[Point]
    xlabel: str


@style.applied()
def draw(panels: Sequence[Panel], *, source: str) -> Figure:
    """Draw the panels below each other, and return the figure.

    >>> figure = draw([Panel("step", [Point("mlp", "PyTorch", 0.5, (0.4, 0.6))], "ratio")], source="measured")
    """
    from matplotlib.ticker import LogLocator, MaxNLocator

    rows = [list(dict.fromkeys(point.row for point in panel.points)) for panel in panels]
    height = sum(ROW_INCHES * len(names) + 0.8 for names in rows) + 0.3
    figure, all_axes = style.new_figure(8.0, height, 1, [len(names) + 1 for names in rows])
    for axes, panel, names in zip(all_axes, panels, rows, strict=True):
        axes.set_title(panel.title)
        ends = [1.0, *(end for point in panel.points for end in (*point.quartiles, point.ratio))]
        style.log_ticks(axes, "x", min(ends), max(ends))
        spread = max(ends) / min(ends)
        if spread < NARROW:  # between two ticks, there may be none
            axes.xaxis.set_major_locator(MaxNLocator(6) if spread < NARROWER else LogLocator(subs=range(1, 10)))
        axes.axvline(1.0, color="0.3", linewidth=1.0)
        for number, series in enumerate(dict.fromkeys(point.series for point in panel.points)):
            chosen = [point for point in panel.points if point.series == series]
            places = [names.index(point.row) for point in chosen]
            color = style.SERIES[number % len(style.SERIES)]
            axes.hlines(places, *zip(*(point.quartiles for point in chosen), strict=True), color=color, linewidth=1.4)
            marker = MARKERS[number % len(MARKERS)]
            axes.plot([point.ratio for point in chosen], places, marker, color=color, markersize=6, label=series)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel(panel.xlabel, fontsize=8)
        axes.grid(axis="x", color="0.9", linewidth=0.6)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    style.label_source(figure, source)
    return figure
