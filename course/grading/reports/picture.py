"""The statistics of a class as one picture: one bar per part of an exercise, with the shares of its outcomes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from course.grading.reports.statistics import Tally
from course.judging import Status
from course.plural import counted
from course.whole_file import replace
from minidl.plots.style import SERIES, applied, label_source, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHARES = (
    ("got it", SERIES[2], (Status.CORRECT,)),
    ("wrong", SERIES[4], (Status.WRONG,)),
    ("raised an error, deadlock or time-out", SERIES[1], (Status.RAISED, Status.STUCK)),
    ("not attempted", "#E8E8E8", (Status.NOT_ATTEMPTED,)),
)
"""The segments of a bar, from the left: label, colour, and the outcomes that it counts."""

LONGEST_TITLE = 62


def save_picture(tallies: Sequence[Tally], path: Path) -> None:
    """Write the picture of `tallies` as a PNG, whole or not at all."""
    picture = io.BytesIO()
    draw(tallies).savefig(picture, format="png")
    replace(path, picture.getvalue())


def draw(tallies: Sequence[Tally]) -> Figure:
    """The figure: one panel per assignment; under each exercise its parts."""
    assignments = list(dict.fromkeys(tally.assignment for tally in tallies))
    groups = [[tally for tally in tallies if tally.assignment == name] for name in assignments]
    heights = [len(group) + 3 for group in groups]
    with applied():
        figure, axes = new_figure(width=9.0, height=0.21 * sum(heights) + 0.8, heights=heights)
        for name, group, place in zip(assignments, groups, axes, strict=True):
            draw_assignment(place, name, group)
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=len(SHARES), fontsize=8)
        label_source(
            figure, "measured", "points by the checks, hidden cases included; answers in words are not counted"
        )
    return figure


def draw_assignment(axes: Axes, name: str, group: Sequence[Tally]) -> None:
    """The bars of one assignment; `n` is the number of judged submissions."""
    counts = sorted({tally.count for tally in group})
    least = f"{counts[0]} to " if len(counts) > 1 else ""
    axes.set_title(f"{name}, n = {least}{counted(counts[-1], 'submission')}")
    parts = [(place, tally) for place, tally in enumerate(group) if tally.part]
    places = [place for place, _ in parts]
    left = [0.0] * len(parts)
    for title, colour, statuses in SHARES:
        widths = [100 * tally.share(*statuses) for _, tally in parts]
        axes.barh(places, widths, left=left, height=0.75, color=colour, label=title, edgecolor="white", linewidth=0.4)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    titles = [shortened(tally.part) if tally.part else tally.exercise for tally in group]
    axes.set_yticks(range(len(group)), titles, fontsize=7)
    for place, (tally, label) in enumerate(zip(group, axes.get_yticklabels(), strict=True)):
        if not tally.part:
            label.set(fontweight="bold")
            mean = f"mean {tally.mean:.2f} of {counted(tally.possible, 'point')}"
            axes.text(0.5, place, mean, fontsize=7, style="italic", va="center")
    axes.tick_params(axis="y", length=0)
    axes.set(xlim=(0, 100), ylim=(len(group) - 0.4, -0.6), xlabel="submissions (%)")
    axes.spines["left"].set_visible(False)


def shortened(title: str) -> str:
    """A title, shortened to fit next to its bar."""
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 2].rstrip()} …"
