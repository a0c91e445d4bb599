"""A step of ZeRO's stage 3 on one node: when it computes, gathers weights and sends gradients, and what it keeps."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from minidl.plots import style

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes

    from minidl.cluster.trace.trace import Trace

ROWS = ("computes", "gathers weights", "sends gradients", "units' weights here")
BAR = 0.8  # height of a bar; rows are 1 apart
HERE = "#56B4E9"  # sky blue: gathered weights in memory
NARROW = 0.018  # share of the picture below which a bar is too short for its number

Span = tuple[float, float]  # milliseconds


def draw(axes: Axes, trace: Trace, units: int) -> None:
    """Draw rank 0 of a simulated step that labels its computations: the forward of each unit, then each backward.

    units: of the model; each is gathered once in forward and once in backward, and its gradients are sent once. The
    last row is as high as the number of units whose weights have begun to arrive and are not released.
    """
    order = [*range(units), *reversed(range(units))]
    computed = [(1e3 * e.start, 1e3 * e.end) for e in trace.events if e.rank == 0 and e.kind == "compute" and e.label]
    gathered, sent = _spans(trace, "all_gather"), _spans(trace, "reduce_scatter")
    end = max(stop for _, stop in [*computed, *sent])

    def row(number: int, bars: Iterable[Span], names: Iterable[int], colour: str, text: str = "white") -> None:
        for (start, stop), name in zip(bars, names, strict=True):
            axes.broken_barh([(start, stop - start)], (number, BAR), facecolor=colour, **style.BORDER)
            if stop - start > NARROW * end:
                place = (start + stop) / 2, number + BAR / 2
                axes.text(*place, str(name), color=text, fontsize=7, ha="center", va="center", clip_on=True)

    row(0, computed[:units], order[:units], style.PIPELINE["forward"])
    row(0, computed[units:], order[units:], style.PIPELINE["backward"])
    row(1, gathered, order, style.ACTIVITY["receive"], "black")
    row(2, sent, order[units:], style.ACTIVITY["send"])
    here = [(start, stop) for (start, _), (_, stop) in zip(gathered, computed, strict=True)]
    for start, stop in pairwise(sorted({time for span in here for time in span})):
        if count := sum(first <= start < last for first, last in here):
            height = count * BAR / 2
            axes.broken_barh([(start, stop - start)], (3 + BAR - height, height), facecolor=HERE, edgecolor=HERE)
    axes.set_yticks([number + BAR / 2 for number in range(len(ROWS))], ROWS, fontsize=7)
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0)
    axes.set(xlabel="time (ms)", ylim=(len(ROWS), -0.2))


def _spans(trace: Trace, operation: str) -> list[Span]:
    """When each call of an operation on rank 0 begins and ends."""
    of_call: dict[int, list[float]] = {}
    for event in trace.events:
        if event.rank == 0 and event.operation == operation and event.kind in ("send", "receive"):
            of_call.setdefault(event.call, []).extend((1e3 * event.start, 1e3 * event.end))
    return [(min(times), max(times)) for times in of_call.values()]
