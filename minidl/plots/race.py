"""The loss of several runs against time and against samples, with one column of panels per setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

from minidl.plots import style
from minidl.plots.log_axis import log_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
MANY_TICKS = 20.0  # ratio of largest to smallest value beyond which labels at 1, 2 and 5 would touch

PANELS, LINE = 4.9, 0.18  # inches: height of the panels; of a line in the title or the legend
NARROWEST = 7.4  # inches: room for a title of 80 characters
BOLD, NORMAL, HANDLE = (
    0.09,
    0.07,
    0.9,
)  # inches: width of a character in title and legend, of an entry's line


@dataclass(frozen=True)
class Run:
    """One run, with one value per epoch.

    Parameters
        label      text in the legend
        seconds    time since the start at the end of each epoch
        samples    samples since the start, on all nodes
        loss       loss at the end of each epoch
        note       how the run ended, if early
        band       lower and upper edge of a band around the loss, for the mean of several runs
    """

    label: str
    seconds: Sequence[float]
    samples: Sequence[float]
    loss: Sequence[float]
    note: str = ""
    band: tuple[Sequence[float], Sequence[float]] | None = None


@style.applied()
def draw(
    places: Sequence[tuple[str, Sequence[Run]]],
    *,
    source: str,
    title: str = "",
    ylabel: str = "test loss",
) -> Figure:
    """Draw the runs of each place, such as a network: above against seconds, below against samples.

    Parameters
        places    pairs of a heading and runs; the same runs in the same order everywhere
        source    "measured" or "simulated"
        title     text above the figure
        ylabel    name of the loss axis

    Seconds and losses have logarithmic scales, the same in all panels, so that places can be compared.

    >>> run = Run("synchronous", [0.1, 0.2], [100, 200], [1.0, 0.5])
    >>> figure = draw([("10gbe", [run])], source="simulated")
    """
    columns = len(places)
    all_seconds = [seconds for _, runs in places for run in runs for seconds in run.seconds]
    all_losses = [
        loss for _, runs in places for run in runs for losses in (run.loss, *(run.band or ())) for loss in losses
    ]
    width = max(NARROWEST, 2.6 * columns + 1.2)
    labels = [fill(label, round((width - HANDLE) / NORMAL)) for label in _labels(places)]
    lines = [part for line in title.splitlines() for part in fill(line, int(width / BOLD)).splitlines()]
    longest = max((len(line) for label in labels for line in label.splitlines()), default=0)
    ncols = 2 if 2 * (longest * NORMAL + HANDLE) < width else 1
    rows = sum(label.count("\n") + 1 for label in labels) / ncols
    height = PANELS + LINE * (len(lines) + rows)
    figure, axes = style.new_figure(width, height, columns, [1, 1], sharex="row", sharey="all")
    timed, counted = axes[:columns], axes[columns:]
    for place, (heading, runs) in enumerate(places):
        for axes_of, name in ((timed[place], "seconds"), (counted[place], "samples")):
            for number, run in enumerate(runs):
                _line(axes_of, run, getattr(run, name), number)
            _log_axis(axes_of, "y", all_losses)
            axes_of.grid(color="0.92", linewidth=0.6)
            axes_of.set_axisbelow(True)
        timed[place].set_title(heading, fontsize=9)
        _log_axis(timed[place], "x", all_seconds)
        timed[place].set_xlabel("time (s)")
        counted[place].set_xlabel("samples, all nodes")
    for first in (timed[0], counted[0]):
        first.set_ylabel(ylabel)
    handles, _ = timed[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=ncols, fontsize=8, handlelength=3.2)
    if lines:
        figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=9, fontweight="bold")
    style.label_source(figure, source)
    return figure


def _labels(places: Sequence[tuple[str, Sequence[Run]]]) -> list[str]:
    """Return the runs' labels with their notes; notes that differ between places are given with the place."""
    labels = []
    for number, first in enumerate(places[0][1]):
        notes = [(heading, runs[number].note) for heading, runs in places if number < len(runs)]
        is_same = len({note for _, note in notes}) == 1
        text = first.note if is_same else "; ".join(f"{heading}: {note}" for heading, note in notes if note)
        labels.append(f"{first.label} ({text})" if text else first.label)
    return labels


def _line(axes: Axes, run: Run, x: Sequence[float], number: int) -> None:
    count = len(style.SERIES)
    if run.band is not None:
        axes.fill_between(x, *run.band, color=style.SERIES[number % count], alpha=0.18, linewidth=0)
    axes.plot(
        x,
        run.loss,
        color=style.SERIES[number % count],
        linestyle=style.DASHES[number % count],
        marker=MARKERS[number % len(MARKERS)],
        markersize=3.5,
        linewidth=1.4,
        label=run.label,
    )


def _log_axis(axes: Axes, name: str, values: Sequence[float]) -> None:
    if values:  # a logarithmic scale needs a value
        log_ticks(axes, name, min(values), max(values), MANY_TICKS)
