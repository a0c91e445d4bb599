"""Timelines of the core's simulated runs, from `Run.messages` and `Run.work`: who computes, sends, receives, waits."""

from collections.abc import Mapping
from itertools import pairwise

from matplotlib.figure import Figure

from minidl.mini.cluster import Run
from minidl.plots.bars import Bar
from minidl.plots.timeline import Panel, compare


def bars(run: Run, rank: int) -> list[Bar]:
    """The bars of a rank until its last message. Computations are numbered; an exchange has two halves."""
    doing = [Bar(rank, "send", each.start, each.end, message=each) for each in run.messages if each.src == rank]
    doing += [Bar(rank, "receive", each.start, each.end, message=each) for each in run.messages if each.dst == rank]
    work = [each for each in run.work if each.rank == rank]
    doing += [Bar(rank, "compute", each.start, each.end, str(number)) for number, each in enumerate(work, 1)]
    cut = []
    for start, end in pairwise(sorted({0.0, *(time for bar in doing for time in (bar.start, bar.end))})):
        now = [bar for bar in doing if bar.start <= start and end <= bar.end] or [Bar(rank, "wait", start, end)]
        halves = ("upper", "lower") if len(now) > 1 else ("",)
        cut += [bar._replace(start=start, end=end, half=half) for bar, half in zip(now, halves, strict=True)]
    return cut


def draw(runs: Mapping[str, Run], end: float | None = None) -> Figure:
    """Draw the runs, by title, below each other on one time axis. end: the last second shown (default: all)."""
    panels = [
        Panel([bar for rank in range(size) for bar in bars(run, rank)], size, "simulated", title)
        for title, run, size in ((title, run, len(run.results)) for title, run in runs.items())
    ]
    return compare(panels, end=end, row_height=0.26)
