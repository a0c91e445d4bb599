"""Lines and points in a row of panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minidl.arguments import one_of
from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LOOKS = ("line", "points", "both")
WIDEST = 9.6  # inches: a page shrinks wider pictures, letters included


@dataclass(frozen=True)
class Line:
    """One series of points.

    Parameters
        label    text in the legend; "": none
        x, y     coordinates, equally many
        look     "line", "points" or "both"
        tone     number of its colour, marker and dashes in the palette; default its position in the panel
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    look: str = "line"
    tone: int | None = None

    def __post_init__(self) -> None:
        one_of("look", self.look, LOOKS)
        if len(self.x) != len(self.y):
            raise ValueError(f"{self.label}: {len(self.x)} values of x, but {len(self.y)} of y")


@dataclass(frozen=True)
class Panel:
    """Lines on a pair of axes.

    Parameters
        lines             the series
        xlabel, ylabel    names of the axes with units
        title             text above the axes
        log               axes with a logarithmic scale: "", "x", "y" or "xy"
        xlim, ylim        range of each axis; default all points
    """

    lines: Sequence[Line]
    xlabel: str
    ylabel: str
    title: str = ""
    log: str = ""
    xlim: tuple[float, float] | None = None
    ylim: tuple[float, float] | None = None


@style.applied()
def draw(panels: Sequence[Panel], *, source: str | Sequence[str], title: str = "", height: float = 3.2) -> Figure:
    """Draw the panels in a row and return the figure; series of one tone share colour, marker and dashes.

    Parameters
        panels    one pair of axes each
        source    "measured", "simulated", "formula", or several of these
        title     text above the figure
        height    height of the figure in inches

    >>> line = Line("GD", [0, 1, 2], [1.0, 0.5, 0.25], look="both")
    >>> figure = draw([Panel([line], "updates", "loss", log="y")], source="measured")
    """
    width = min(max(5.5, 4.3 * len(panels)), WIDEST)
    figure, all_axes = style.new_figure(width, height, columns=len(panels))
    for axes, panel in zip(all_axes, panels, strict=True):
        _panel(axes, panel)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    style.label_source(figure, source)
    return figure


def _panel(axes: Axes, panel: Panel) -> None:
    count = len(style.SERIES)
    for place, line in enumerate(panel.lines):
        tone = (place if line.tone is None else line.tone) % count
        axes.plot(
            line.x,
            line.y,
            color=style.SERIES[tone],
            linestyle="none" if line.look == "points" else style.DASHES[tone],
            marker="none" if line.look == "line" else MARKERS[tone],
            markersize=4.5,
            linewidth=1.5,
            label=line.label,
        )
    for axis, set_scale in (("x", axes.set_xscale), ("y", axes.set_yscale)):
        if axis in panel.log:
            set_scale("log")
        else:
            axes.locator_params(axis=axis, steps=[1, 2, 5, 10])  # type: ignore[arg-type]  # no ticks at 2.5, 5, 7.5
    axes.set(xlim=panel.xlim, ylim=panel.ylim)
    for axis in panel.log:
        low, high = axes.get_xlim() if axis == "x" else axes.get_ylim()
        style.log_ticks(axes, axis, low, high)
    axes.set_xlabel(panel.xlabel)
    axes.set_ylabel(panel.ylabel)
    axes.set_title(panel.title, fontsize=9)
    axes.grid(color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)
    if any(line.label for line in panel.lines):
        axes.legend(fontsize=8, handlelength=2.8)
