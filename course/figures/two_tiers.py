"""A device that computes with what its host keeps: when it computes, when the link transfers, when the host updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minidl.plots import style

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes

    from minidl.cluster.trace.trace import Trace

FORWARD, BACKWARD, FETCH, SEND, UPDATE = "forward", "backward", "fetch", "send back", "update"
COLOURS = {
    FORWARD: style.PIPELINE["forward"],
    BACKWARD: style.PIPELINE["backward"],
    FETCH: style.ACTIVITY["receive"],
    SEND: style.ACTIVITY["send"],
    UPDATE: style.PIPELINE["update"],
}
ROWS = {
    "device computes": (FORWARD, BACKWARD),
    "link, to the device": (FETCH,),
    "link, to the host": (SEND,),
    "host updates": (UPDATE,),
}
BAR = 0.8  # height of a bar; rows are 1 apart
NARROW = 0.02  # share of the picture below which a bar is too short for a number
HAIR = 1e-4  # share of the picture below which a bar is not drawn


class Span(NamedTuple):
    """Something that happens, from `start` to `stop` seconds; kind: a key of COLOURS."""

    kind: str
    start: float
    stop: float
    label: str = ""


def spans_of(trace: Trace, start: float, stop: float) -> list[Span]:
    """What one node of a run with `Sharded(offload=...)` does between two times, counted from the first of them."""
    found = []
    for event in trace.events:
        if event.operation in ("fetch", "send_back") and event.kind in ("receive", "send"):
            kind = FETCH if event.operation == "fetch" else SEND
        elif event.kind == "compute" and event.label in (FORWARD, BACKWARD, UPDATE):
            kind = event.label
        else:
            continue
        begin, end = max(event.start, start), min(event.end, stop)
        if begin < end:
            found.append(Span(kind, begin - start, end - start))
    return found


def draw(axes: Axes, spans: Iterable[Span], rows: Sequence[str] = tuple(ROWS), end: float = 0) -> None:
    """Draw what happens when; rows: some of ROWS; end: of the picture in seconds, by default of the last span."""
    spans = list(spans)
    end = end or max(span.stop for span in spans)
    factor, unit = style.time_unit(end)
    for number, name in enumerate(rows):
        for kind, start, stop, label in spans:
            if kind not in ROWS[name] or stop - start < HAIR * end:
                continue
            place = [(start * factor, (stop - start) * factor)]
            axes.broken_barh(place, (number, BAR), facecolor=COLOURS[kind], **style.BORDER)
            if label and stop - start > NARROW * end:
                colour = "black" if kind == FETCH else "white"
                middle = (start + stop) / 2 * factor
                axes.text(middle, number + BAR / 2, label, color=colour, fontsize=7, ha="center", va="center")
    axes.set_yticks([number + BAR / 2 for number in range(len(rows))], rows, fontsize=7)
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel=f"time ({unit})", ylim=(len(rows), -0.2), xlim=(0, end * factor))
