"""The loss of several runs against time and against samples, with one column of panels per setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
MANY_TICKS = 20.0  # ratio of largest to smallest value beyond which labels at 1, 2 and 5 would touch

PANELS, LINE = 4.9, 0.18  # inches: height of the panels; of a line in the title or the legend
NARROWEST = 7.4  # inches: room for a title of 80 characters
HEADING = 0.1  # inches: width of a character in the heading of a column
MOST_CHARACTERS, FEWEST_CHARACTERS = 160, 20  # of a line in the title or the legend


@dataclass(frozen=True)
class Run:
    """One run, with one value per epoch.

    Parameters
        label      text in the legend
        seconds    time since the start at the end of each epoch
        samples    samples since the start, on all nodes
        loss       loss at the end of each epoch
        note       how the run ended, if early
        band       lower and upper ends of error bars around the loss, for the mean of several runs
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
    figure, axes = style.new_figure(width, 4 * PANELS, columns, [1, 1], sharex="row", sharey="all")
    timed, counted = axes[:columns], axes[columns:]
    handles: list[Line2D] = []
    for place, (heading, runs) in enumerate(places):
        for axes_of, name in ((timed[place], "seconds"), (counted[place], "samples")):
            lines = [_line(axes_of, run, getattr(run, name), number) for number, run in enumerate(runs)]
            handles = handles or lines
            _log_axis(axes_of, "y", all_losses)
            axes_of.grid(color="0.92", linewidth=0.6)
            axes_of.set_axisbelow(True)
        timed[place].set_title(fill(_plain(heading), int(width / columns / HEADING)), fontsize=9)
        _log_axis(timed[place], "x", all_seconds)
        timed[place].set_xlabel("time (s)")
        counted[place].set_xlabel("samples, all nodes")
        counted[place].locator_params(axis="x", nbins=4)  # more numbers of five digits would touch
    for first in (timed[0], counted[0]):
        first.set_ylabel(ylabel)
    legend_lines = _add_legend(figure, handles, _labels(places))
    title_lines = _add_title(figure, _plain(title)) if title else 0
    figure.draw_without_rendering()  # the layout begins from the last one
    figure.set_size_inches(width, PANELS + LINE * (legend_lines + title_lines))
    style.label_source(figure, source)
    return figure


def _add_legend(figure: Figure, handles: Sequence[Artist], labels: Sequence[str]) -> int:
    """Add the legend below the panels, in lines as long as the figure is wide; return its number of lines."""
    for characters in range(MOST_CHARACTERS, FEWEST_CHARACTERS - 1, -5):
        broken = [fill(label, characters) for label in labels]
        for ncols in (2, 1):
            legend = figure.legend(
                handles, broken, loc="outside lower center", ncols=ncols, fontsize=8, handlelength=3.2
            )
            if _is_inside(figure, legend) or (characters == FEWEST_CHARACTERS and ncols == 1):
                rows = sum(label.count("\n") + 1 for label in broken)
                return -(-rows // ncols)
            legend.remove()
    return 0


def _add_title(figure: Figure, title: str) -> int:
    """Add the title above the panels, in lines as long as the figure is wide; return its number of lines."""
    text = figure.suptitle("", x=0.01, ha="left", fontsize=9, fontweight="bold")
    for characters in range(MOST_CHARACTERS, FEWEST_CHARACTERS - 1, -5):
        lines = [part for line in title.splitlines() for part in fill(line, characters).splitlines()]
        text.set_text("\n".join(lines))
        if _is_inside(figure, text):
            break
    return len(lines)


def _is_inside(figure: Figure, artist: Artist) -> bool:
    """Whether the artist is as narrow as the figure; the layout sees to its height.

    The artist alone is measured: with the whole figure drawn for each try, a picture took up to 12 s.
    """
    box = artist.get_window_extent()
    return bool(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1)


def _labels(places: Sequence[tuple[str, Sequence[Run]]]) -> list[str]:
    """Return the runs' labels with their notes; notes that differ between places are given with the place."""
    labels = []
    for number, first in enumerate(places[0][1]):
        notes = [(heading, runs[number].note) for heading, runs in places if number < len(runs)]
        is_same = len({note for _, note in notes}) == 1
        text = first.note if is_same else "; ".join(f"{heading}: {note}" for heading, note in notes if note)
        labels.append(_plain(f"{first.label} ({text})" if text else first.label))
    return labels


def _plain(text: str) -> str:
    """The text without formulas: between two dollars matplotlib would typeset one."""
    return text.replace("$", r"\$")


def _line(axes: Axes, run: Run, x: Sequence[float], number: int) -> Line2D:
    count = len(style.SERIES)
    if run.band is not None:
        low, high = run.band
        errors = [
            [centre - edge for centre, edge in zip(run.loss, low, strict=True)],
            [edge - centre for edge, centre in zip(high, run.loss, strict=True)],
        ]
        color = style.SERIES[number % count]
        axes.errorbar(x, run.loss, yerr=errors, fmt="none", ecolor=color, elinewidth=1.0, capsize=4, zorder=1.9)
    (line,) = axes.plot(
        x,
        run.loss,
        color=style.SERIES[number % count],
        linestyle=style.DASHES[number % count],
        marker=MARKERS[number % len(MARKERS)],
        markersize=3.5,
        linewidth=1.4,
        label=run.label,
    )
    return line


def _log_axis(axes: Axes, name: str, values: Sequence[float]) -> None:
    if values:  # a logarithmic scale needs a value
        style.log_ticks(axes, name, min(values), max(values), MANY_TICKS)
