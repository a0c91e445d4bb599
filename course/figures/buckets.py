"""A rank's buckets of gradients in time: backward fills them, and a full one is all-reduced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from minidl.cluster.trace.trace import Trace

WAITING = "#56B4E9"  # sky blue: a final gradient in a bucket that is not full
BAR = 0.8  # height of a bar; rows are 1 apart
NARROW = 0.15  # share of the picture below which a bar is too short for its name
HAIR = 0.4  # points around a bar: the shortest stay visible
MANY = 10  # buckets beyond which only some of them are named


class Bucket(NamedTuple):
    """When each gradient of a bucket is final, and when their all-reduce runs; in seconds."""

    final: Sequence[float]
    start: float
    end: float


def buckets(trace: Trace, final: Sequence[float]) -> list[Bucket]:
    """The buckets of rank 0 in a simulated step; `final`: when each gradient is final, equally many for each bucket."""
    spans: dict[int, tuple[float, float]] = {}  # by all-reduce
    for event in trace.events:
        if event.rank == 0 and event.kind in ("send", "receive"):
            start, _ = spans.setdefault(event.call, (event.start, event.end))
            spans[event.call] = start, event.end
    each = len(final) // len(spans)
    return [Bucket(final[i * each : (i + 1) * each], *span) for i, span in enumerate(sorted(spans.values()))]


def draw(axes: Axes, rows: Sequence[Bucket], forward: float, moment: float) -> None:
    """Draw what has happened until `moment`: the computation, and below it a row for each bucket.

    A gradient fills its share of the bucket's height from the moment when it is final. forward: the end of forward.
    """
    from matplotlib.patches import Patch

    end, backward = rows[-1].end, rows[-1].final[-1]
    top = -max(BAR, 0.17 * len(rows))  # of the computation's bar: legible above many rows

    def bar(start: float, stop: float, low: float, height: float, colour: str) -> None:
        if start < moment:
            span = (1e3 * start, 1e3 * (min(stop, moment) - start))
            axes.broken_barh([span], (low, -height), facecolor=colour, edgecolor=colour, linewidth=HAIR)

    for name, start, stop in (("forward", 0.0, forward), ("backward", forward, backward)):
        bar(start, stop, 0, -top, style.ACTIVITY["compute"])
        if min(stop, moment) - start > NARROW * end:
            middle = 1e3 * (start + min(stop, moment)) / 2
            axes.text(middle, top / 2, name, color="white", fontsize=7, ha="center", va="center", clip_on=True)
    for row, (final, start, stop) in enumerate(rows):
        height = BAR / len(final)
        for slot, time in enumerate(final):
            bar(time, start, row + 1 - slot * height, height, WAITING)
        bar(start, stop, row + 1, BAR, style.ACTIVITY["send"])
    axes.axvline(1e3 * forward, color="white", linewidth=1.0)
    axes.axvline(1e3 * backward, color="black", linewidth=0.8)
    named = range(len(rows)) if len(rows) <= MANY else (0, len(rows) - 1)
    axes.set_yticks([row + 1 - BAR / 2 for row in named], [f"bucket {row}" for row in named], fontsize=7)
    axes.set(xlabel="time (ms)", xlim=(0, 1e3 * end), ylim=(len(rows) + 0.2, top - 0.25 * (len(rows) - top)))
    colours = {
        "compute": style.ACTIVITY["compute"],
        "gradients in a bucket": WAITING,
        "all-reduce": style.ACTIVITY["send"],
    }
    patches = [Patch(facecolor=colour, label=name) for name, colour in colours.items()]
    axes.legend(handles=patches, fontsize=7, loc="upper left", ncols=3, frameon=False)
