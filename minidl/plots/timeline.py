"""The Gantt picture of a run: a row a rank, time to the right, coloured by what the rank does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = tuple[int, str, float, float, str]  # rank, activity, start and end in seconds, label

BAR_HEIGHT = 0.8
LABEL_WIDTH = 0.012  # of the picture, for each letter of a label


@style.applied()
def draw(
    rows: Iterable[Row],
    *,
    ranks: int,
    source: str,
    start: float = 0.0,
    end: float | None = None,
    title: str = "",
    note: str = "",
) -> Figure:
    """Draw rows `(rank, activity, start, end, label)`, in seconds, and return the figure.

    activity: one of "compute", "send", "receive", "reduce" and "wait". source: "measured", "simulated" or "formula".
    start, end: the part of the time to show; to the end of the last row by default. Legible from 2 to 64 ranks.

    >>> figure = draw([(0, "compute", 0.0, 1.0, "forward"), (1, "wait", 0.0, 0.5, "")], ranks=2, source="measured")
    """
    rows = list(rows)
    if end is None:
        end = max((row[3] for row in rows), default=start + 1.0)
    figure, (axes,) = style.new_figure(9.0, min(1.5 + 0.36 * ranks, 9.5))
    factor, unit = style.time_unit(end - start)
    for kind, colour in style.ACTIVITY.items():
        bars = np.array([(rank, first, last) for rank, what, first, last, _ in rows if what == kind]).reshape(-1, 3)
        _bars(axes, bars * (1, factor, factor), kind, colour)
    _labels(axes, rows, start, end, factor, ranks)
    axes.set_xlim(start * factor, end * factor)
    axes.set_ylim(ranks - 0.4, -0.6)
    step = max(1, ranks // 16)
    axes.set_yticks(range(0, ranks, step), [f"rank {rank}" for rank in range(0, ranks, step)])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"time ({unit})")
    figure.legend(loc="outside upper right", ncols=len(style.ACTIVITY), handlelength=1.2, columnspacing=1.4, fontsize=8)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    style.label_source(figure, source, note)
    return figure


def _bars(axes: Axes, bars: np.ndarray, kind: str, colour: str) -> None:
    """Rectangles as one collection: a trace has thousands."""
    from matplotlib.collections import PolyCollection

    rank, first, last = bars.T
    low, high = rank - BAR_HEIGHT / 2, rank + BAR_HEIGHT / 2
    corners = np.stack([np.stack(pair, 1) for pair in ((first, low), (first, high), (last, high), (last, low))], 1)
    axes.add_collection(PolyCollection(list(corners), facecolor=colour, label=kind, linewidth=0))


def _labels(axes: Axes, rows: list[Row], start: float, end: float, factor: float, ranks: int) -> None:
    """Write the label into those compute bars that have room for it."""
    if ranks > 16:
        return
    for rank, kind, first, last, label in rows:
        first, last = max(first, start), min(last, end)
        if kind == "compute" and label and (last - first) > LABEL_WIDTH * len(label) * (end - start):
            middle = (first + last) / 2 * factor
            axes.text(middle, rank, label, ha="center", va="center", color="white", fontsize=7, clip_on=True)
