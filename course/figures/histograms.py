"""Histograms of counted whole numbers side by side, with the points that a formula predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from minidl.plots import style


@dataclass(frozen=True)
class Histogram:
    """How often each whole number was counted.

    title      text above the axes
    counts     by number, how often it was counted
    predicted  by number, the share that a formula predicts; None: no formula
    """

    title: str
    counts: Mapping[int, int]
    predicted: Mapping[int, float] | None = None


@style.applied()
def histograms(cases: Sequence[Histogram], *, xlabel: str, ylabel: str, source: str | Sequence[str]) -> Figure:
    """Draw the shares of the numbers, one pair of axes per case, with one horizontal scale; points: the formula."""
    figure, places = style.new_figure(9.6, 2.9, columns=len(cases), sharex=True)
    for axes, case in zip(places, cases, strict=True):
        total = sum(case.counts.values())
        shares = [100 * count / total for count in case.counts.values()]
        look = {"width": 1.0, "color": style.SERIES[5], **style.BORDER}
        axes.bar(list(case.counts), shares, **look)
        if case.predicted is not None:
            points = [100 * share for share in case.predicted.values()]
            look = {"ls": "none", "marker": "o", "ms": 4, "color": style.SERIES[1], "markeredgecolor": "white"}
            axes.plot(list(case.predicted), points, **look, label="formula")
            axes.legend()
        axes.set_title(case.title, fontsize=9)
        axes.set_xlabel(xlabel)
        axes.grid(axis="y", color="0.92", linewidth=0.6)
        axes.set_axisbelow(True)
    places[0].set_ylabel(ylabel)
    style.label_source(figure, source)
    return figure
