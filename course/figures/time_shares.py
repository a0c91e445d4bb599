"""Bars that show how a worker's time divides into computing, communicating and waiting, one bar for each program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from minidl.plots import style

KINDS = {"computing": "compute", "sending and receiving": "send", "waiting": "wait"}


@style.applied()
def time_shares(times: Mapping[str, tuple[float, Sequence[float]]], *, xlabel: str, title: str, source: str) -> Figure:
    """Draw a bar for each program.

    times: for each program, by name, its milliseconds and the shares of computing, communicating and waiting
    (`Trace.shares`).
    """
    figure, [axes] = style.new_figure(8.0, 0.35 * len(times) + 1.1)
    left = [0.0] * len(times)
    for number, (label, colour) in enumerate(KINDS.items()):
        widths = [total * shares[number] for total, shares in times.values()]
        axes.barh(list(times), widths, left=left, label=label, color=style.ACTIVITY[colour], **style.BORDER)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.set(xlabel=xlabel, title=title)
    axes.legend(fontsize=8, loc="lower right")
    style.label_source(figure, source)
    return figure
