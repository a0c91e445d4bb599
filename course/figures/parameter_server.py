"""Workers and the servers of their weights, with what travels between them at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT, ABOVE = 0.8, 0.35, 2.2
ARROWS = {"pushes": "-|>", "pulls": "<|-"}


def draw(axes: Axes, states: Sequence[str], servers: int, size: str) -> None:
    """Draw a worker for each of `states`, below, and the servers, above, each with its shard's colour.

    Parameters
        states    what each worker does; "pushes" and "pulls" draw an arrow for each shard
        servers   number of servers, which cut the vector into equal shards
        size      the bytes of a shard, written into each server
    """
    width = WIDTH / servers
    place = [(server + 0.5) * len(states) / servers for server in range(servers)]
    for server, middle in enumerate(place):
        _box(axes, middle - WIDTH / 2, ABOVE, WIDTH, _colour(server))
        axes.text(middle, ABOVE + HEIGHT / 2, size, ha="center", va="center", fontsize=8, color="white")
        axes.text(middle, ABOVE + HEIGHT + 0.08, f"server {server}", ha="center", fontsize=8)
    for worker, state in enumerate(states):
        left = worker + 0.5 - WIDTH / 2
        for shard in range(servers):
            _box(axes, left + shard * width, 0.0, width, _colour(shard))
            if state in ARROWS:
                look = {"arrowstyle": ARROWS[state], "color": _colour(shard), "linewidth": 1.6}
                ends = (place[shard], ABOVE - 0.04), (left + (shard + 0.5) * width, HEIGHT + 0.04)
                axes.annotate("", *ends, arrowprops=look)
        axes.text(worker + 0.5, -0.1, f"worker {worker}\n{state}", ha="center", va="top", fontsize=8)
    axes.set(xlim=(0, len(states)), ylim=(-0.75, ABOVE + HEIGHT + 0.4))
    axes.axis("off")


def _colour(shard: int) -> str:
    return style.SERIES[shard % len(style.SERIES)]


def _box(axes: Axes, left: float, bottom: float, width: float, colour: str) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((left, bottom), width, HEIGHT, facecolor=colour, **style.BORDER))
