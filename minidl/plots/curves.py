"""Learning curves: training loss and test accuracy against epochs and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@style.applied()
def draw(rows: Sequence[Mapping[str, Any]], *, source: str, title: str = "") -> Figure:
    """Draw training loss and test accuracy, left against epochs and right against seconds; return the figure.

    Parameters
        rows      one per epoch, with "epoch", "seconds" (since the start), "loss" and "accuracy" (0 to 1); other keys
                  are ignored
        source    "measured", "simulated" or "formula"
        title     text above the figure

    >>> figure = draw([{"epoch": 1, "seconds": 0.5, "loss": 1.2, "accuracy": 0.8}], source="measured")
    """
    from matplotlib.ticker import MaxNLocator

    epochs, seconds, loss, accuracy = ([row[key] for row in rows] for key in ("epoch", "seconds", "loss", "accuracy"))
    figure, (against_epochs, against_seconds) = style.new_figure(9.0, 3.4, columns=2)
    _panel(against_epochs, epochs, loss, accuracy, "epoch")
    against_epochs.xaxis.set_major_locator(MaxNLocator(integer=True))
    _panel(against_seconds, seconds, loss, accuracy, "time (s)")
    against_seconds.set_xlim(left=0)
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
