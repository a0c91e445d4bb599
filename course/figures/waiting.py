"""Bars that show how the time of every worker divides into computing and waiting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from minidl.plots import style


@dataclass(frozen=True)
class Run:
    """The times of one run.

    title      text above the bars
    computing  by worker, the seconds that it computed
    total      the seconds of the run; the rest of each worker's time is waiting
    """

    title: str
    computing: Sequence[float]
    total: float


@style.applied()
def waiting(runs: Sequence[Run], *, source: str, note: str = "", columns: int = 3) -> Figure:
    """Draw a bar per worker, computing then waiting, one pair of axes per run, all with the same axes."""
    rows = -(-len(runs) // columns)
    figure, places = style.new_figure(9.6, 2.1 * rows + 0.5, columns, (1,) * rows, sharex=True, sharey=True)
    for axes, run in zip(places, runs, strict=False):
        workers = range(len(run.computing))
        look = {"height": 0.75, **style.BORDER}
        axes.barh(workers, run.computing, color=style.ACTIVITY["compute"], label="compute", **look)
        rest = [run.total - seconds for seconds in run.computing]
        axes.barh(workers, rest, left=run.computing, color=style.ACTIVITY["wait"], label="wait", **look)
        axes.set_yticks(workers)
        axes.set_title(run.title, fontsize=9)
    places[0].invert_yaxis()  # of all: they share the axis
    for axes in places[len(runs) :]:
        axes.set_visible(False)
    for axes in places[max(len(runs) - columns, 0) : len(runs)]:
        axes.set_xlabel("time (s)")
    for axes in places[::columns]:
        axes.set_ylabel("worker")
    handles, labels = places[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2, fontsize=8)
    style.label_source(figure, source, note)
    return figure
