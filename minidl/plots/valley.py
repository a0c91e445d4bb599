"""A loss of two weights as a contour map, with the path of an optimizer: one small map per path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GRID = 121  # points per side of the grid on which the loss is evaluated
CONTOURS = 9


@style.applied()
def draw(
    loss: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]],
    paths: Mapping[str, ArrayLike],
    *,
    x: tuple[float, float],
    y: tuple[float, float],
    minimum: tuple[float, float] = (0.0, 0.0),
    columns: int = 3,
    source: str = "measured",
    title: str = "",
) -> Figure:
    """Draw one map per path, with the start (circle), the end (square) and the minimum (star); return the figure.

    Parameters
        loss       function of two arrays, the first and the second weight, to an array of their shape; positive except
                   at the minimum
        paths      maps a name to an array (steps + 1, 2)
        x, y       range of each weight in the picture; a path is cut at the edge
        minimum    position of the minimum
        columns    maps per row
        source     "measured", "simulated" or "formula"
        title      text above the figure

    Contours are evenly spaced in the logarithm of the loss.

    >>> path = [(1.0, 1.0), (0.5, -0.5), (0.2, 0.1)]
    >>> figure = draw(lambda a, b: a**2 + 9 * b**2, {"GD": path}, x=(-1.2, 1.2), y=(-1.2, 1.2))

    Raises ValueError for a path that is not (steps + 1, 2).
    """
    first, second = np.meshgrid(np.linspace(*x, GRID), np.linspace(*y, GRID))
    height = np.log10(np.maximum(loss(first, second), np.finfo(np.float64).tiny))
    low, high = np.percentile(height, [1, 100])
    columns = min(columns, len(paths))
    rows = -(-len(paths) // columns)
    figure, all_axes = style.new_figure(
        2.9 * columns + 0.4, 2.3 * rows + 0.5, columns, [1] * rows, sharex=True, sharey=True
    )
    for axes, (place, (name, path)) in zip(all_axes, enumerate(paths.items()), strict=False):
        steps = np.asarray(path, dtype=np.float64)
        if steps.ndim != 2 or steps.shape[1] != 2:
            raise ValueError(f"the path of {name} has shape {steps.shape}, not (steps + 1, 2)")
        axes.contour(first, second, height, np.linspace(low, high, CONTOURS), cmap="Greys_r", linewidths=0.6)
        _path(axes, steps, style.SERIES[place % len(style.SERIES)])
        axes.plot(*minimum, "*", color="black", markersize=9, zorder=4)
        axes.set(xlim=x, ylim=y, title=f"{name}, {len(steps) - 1} steps")
    for axes in all_axes[len(paths) :]:
        axes.set_visible(False)
    for axes in all_axes[(rows - 1) * columns :]:
        axes.set_xlabel("weight 1")
    for axes in all_axes[::columns]:
        axes.set_ylabel("weight 2")
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    style.label_source(figure, source)
    return figure


def _path(axes: Axes, steps: NDArray[np.float64], color: str) -> None:
    axes.plot(*steps.T, "-", color=color, linewidth=1.1, marker=".", markersize=4, zorder=3)
    axes.plot(*steps[0], "o", color=color, markersize=7, fillstyle="none", zorder=4)
    axes.plot(*steps[-1], "s", color=color, markersize=6, zorder=4)
