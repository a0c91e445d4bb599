"""Machines that average with their neighbours: which messages travel in a step, and each machine's number after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from minidl.parallel.averaging.mixing import Matrix

    Vector = NDArray[np.float64]

Place = tuple[float, float]
DISTANCE = 0.13  # from a machine's centre to the end of an arrow, in units of the picture's half width
STUB = 0.2  # length of an arrow across the edge of a grid


def on_circle(machines: int) -> list[Place]:
    """Places on a circle, clockwise, with rank 0 at the top."""
    angles = 2 * np.pi * np.arange(machines) / machines
    return [(float(np.sin(angle)), float(np.cos(angle))) for angle in angles]


def on_grid(shape: tuple[int, int]) -> list[Place]:
    """Places row by row, within the same square as a circle's."""
    rows, columns = shape
    across, down = (1.6 * (np.arange(count) + 0.5) / count - 0.8 for count in (columns, rows))
    return [(float(x), -float(y)) for y in down for x in across]


def draw_exchange(axes: Axes, w: Matrix, places: Sequence[Place], numbers: Sequence[float], highest: float) -> None:
    """Draw a step in which every machine i takes the sum over j of w[i, j] times the number of j.

    An arrow goes from j to i for each w[i, j] that is not zero, with two heads if both send. On a grid an arrow to the
    other edge is cut. A machine is the darker, the higher its number; at `highest` it is darkest.
    """
    is_grid = len({x for x, _ in places}) ** 2 <= len(places)
    spacing = min(float(np.hypot(places[0][0] - x, places[0][1] - y)) for x, y in places[1:])
    for i, j in zip(*np.nonzero(np.triu(w + w.T, 1)), strict=True):
        heads = "<->" if w[i, j] and w[j, i] else "->" if w[j, i] else "<-"
        a, b = np.array(places[i]), np.array(places[j])
        step = (b - a) / np.linalg.norm(b - a)
        if is_grid and np.linalg.norm(b - a) > 1.5 * spacing:  # over the edge
            for end, way in ((a, -step), (b, step)):
                _arrow(axes, end + DISTANCE * way, end + (DISTANCE + STUB) * way, heads)
        else:
            is_clockwise = j - i <= len(places) / 2  # on the shorter way
            is_chord = not is_grid and np.linalg.norm(b - a) > 1.5 * spacing
            bend = (0.25 if is_clockwise else -0.25) if is_chord else 0.0  # towards the middle of the circle
            _arrow(axes, a + DISTANCE * step, b - DISTANCE * step, heads, bend)
    for rank, ((x, y), number) in enumerate(zip(places, numbers, strict=True)):
        share = min(number / highest, 1.0)
        look = {"facecolor": style.SERIES[5], "alpha": 0.9 * share, "edgecolor": "none", "zorder": 3}
        for settings in (look, {"fill": False, **style.BORDER, "zorder": 4}):
            _circle(axes, x, y, settings)
        text = f"{number:.2g}" if number else "0"
        axes.text(x, y, text, ha="center", va="center", fontsize=7, zorder=5)
        if not is_grid:
            axes.text(1.2 * x, 1.2 * y, str(rank), ha="center", va="center", fontsize=6, color="0.4")
    axes.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal")
    axes.axis("off")


def _arrow(axes: Axes, start: Vector, end: Vector, heads: str, bend: float = 0.0) -> None:
    look = {"arrowstyle": heads, "color": style.ACTIVITY["send"], "shrinkA": 0, "shrinkB": 0, "linewidth": 0.9}
    bent = {"connectionstyle": f"arc3,rad={bend}", "mutation_scale": 7}
    axes.annotate("", (end[0], end[1]), (start[0], start[1]), arrowprops={**look, **bent})


def _circle(axes: Axes, x: float, y: float, settings: dict[str, Any]) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle((x, y), DISTANCE, **settings))
