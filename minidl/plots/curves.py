"""Learning curves: training loss and test accuracy against epochs and time, and the nodes that cost time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS = 8  # of the nodes that others waited for


@style.applied()
def draw(
    rows: Sequence[Mapping[str, Any]],
    *,
    source: str,
    title: str = "",
    deaths: Sequence[tuple[str, float]] = (),
    waits: Mapping[str, float] | None = None,
) -> Figure:
    """Draw training loss and test accuracy against epochs and against seconds; return the figure.

    Parameters
        rows      one per epoch, with "epoch", "seconds" (since the start), "loss" and "accuracy" (0 to 1); other keys
                  are ignored
        source    "measured", "simulated" or "formula"
        title     text above the figure
        deaths    names of nodes that died, and when: lines on the axis of seconds
        waits     by name of a node: seconds that others waited because of it. A third panel has those with the most

    >>> figure = draw([{"epoch": 1, "seconds": 0.5, "loss": 1.2, "accuracy": 0.8}], source="measured")
    """
    from matplotlib.ticker import MaxNLocator

    epochs, seconds, loss, accuracy = ([row[key] for row in rows] for key in ("epoch", "seconds", "loss", "accuracy"))
    waits = {name: waited for name, waited in (waits or {}).items() if waited > 0}
    figure, (against_epochs, against_seconds, *more) = style.new_figure(12.0 if waits else 9.0, 3.4, 3 if waits else 2)
    _panel(against_epochs, epochs, loss, accuracy, "epoch")
    against_epochs.xaxis.set_major_locator(MaxNLocator(integer=True))
    _panel(against_seconds, seconds, loss, accuracy, "time (s)")
    against_seconds.set_xlim(left=0)
    for name, moment in deaths:
        against_seconds.axvline(moment, color=style.FAULT, linewidth=1.2)
        against_seconds.annotate(
            f"{name} died", (moment, 0.03), (-3, 0), against_seconds.get_xaxis_transform(), "offset points",
            rotation=90, ha="right", fontsize=8,
        )  # fmt: skip
    for axes in more:
        _bars(axes, waits, {name for name, _ in deaths})
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    style.label_source(figure, source)
    return figure


def _panel(axes: Axes, x: Sequence[float], loss: Sequence[float], accuracy: Sequence[float], name: str) -> None:
    """Draw loss on the left axis, accuracy in percent on the right one; axis labels have the lines' colours."""
    blue, vermilion = style.SERIES[:2]
    axes.plot(x, loss, style.DASHES[0], color=blue, marker="o", markersize=3)
    axes.set_xlabel(name)
    axes.set_ylabel("training loss (solid)", color=blue)
    axes.set_ylim(bottom=0)
    right = axes.twinx()
    right.spines["right"].set_visible(True)
    right.plot(x, [100 * value for value in accuracy], style.DASHES[1], color=vermilion, marker="s", markersize=3)
    right.set_ylabel("test accuracy in % (dashed)", color=vermilion)
    right.set_ylim(top=101)


def _bars(axes: Axes, waits: Mapping[str, float], dead: Collection[str]) -> None:
    """Draw a bar for each of the nodes that others waited for longest."""
    most = sorted(waits, key=lambda name: -waits[name])[:MOST_BARS][::-1]
    colours = [style.FAULT if name in dead else style.SERIES[0] for name in most]
    axes.barh([f"{name}, died" if name in dead else name for name in most], [waits[name] for name in most],
              color=colours, **style.BORDER)  # fmt: skip
    axes.set_ylim(len(most) - MOST_BARS - 0.5, len(most) - 0.5)
    axes.set_xlabel("others waited for it (s)")
