"""Times, the line fitted to them, and the residuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@style.applied()
def draw(
    points: Sequence[tuple[float, float]],
    alpha: float,
    beta: float,
    *,
    source: str,
    limit: float | None = None,
    limit_name: str = "",
    title: str = "",
) -> Figure:
    """Draw points (bytes, seconds) and the line alpha + beta n; below, points / line - 1. Return the figure.

    Parameters
        points         pairs (bytes, seconds)
        alpha          latency in seconds
        beta           seconds per byte
        source         source of the points, "measured" or "simulated"
        limit          number of bytes to mark with a vertical line
        limit_name     text at that line
        title          text above the figure

    >>> figure = draw([(64, 2e-5), (1 << 20, 1e-3)], alpha=2e-5, beta=1e-9, source="measured")
    """
    n, seconds = np.array(points, dtype=np.float64).T
    line = np.geomspace(max(n.min(), 1.0) / 2, n.max() * 2, 200)
    figure, (above, below) = style.new_figure(6.5, 4.6, heights=(2.2, 1), sharex=True)
    blue, vermilion = style.SERIES[:2]
    above.loglog(line, (alpha + beta * line) * 1e6, style.DASHES[1], color=vermilion, label="fitted: alpha + beta n")
    above.loglog(np.maximum(n, line[0]), seconds * 1e6, "o", color=blue, markersize=5, label=source)
    above.set_ylabel("time (µs)")
    above.legend(fontsize=8)
    rate = f", 1/beta = {1e-9 / beta:.3g} GB/s" if beta else ""
    above.set_title(f"{title}: alpha = {alpha * 1e6:.3g} µs{rate}".removeprefix(": "), fontsize=10)
    below.axhline(0, color=vermilion, linestyle=style.DASHES[1], linewidth=1.2)
    below.semilogx(np.maximum(n, line[0]), 100 * (seconds / (alpha + beta * n) - 1), "o", color=blue, markersize=5)
    below.set_ylabel(f"{source} / fitted\n- 1, in %")
    below.set_xlabel("bytes (n)")
    below.set_ylim(*(np.array((-1.15, 1.15)) * max(abs(value) for value in (*below.get_ylim(), 1.0))))
    if limit is not None:
        for axes in (above, below):
            axes.axvline(limit, color="0.6", linewidth=0.8, linestyle=":")
        above.annotate(limit_name, (limit, 1), (0, -3), xycoords=("data", "axes fraction"), textcoords="offset points",
                       ha="center", va="top", fontsize=7, color="0.35")  # fmt: skip
    style.label_source(figure, source if source == "simulated" else (source, "formula"))
    return figure
