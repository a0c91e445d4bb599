"""Plans: the time of a step against the memory of the fullest accelerator, a point for each way to divide the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from minidl.arguments import real_number
from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FURTHEST = 3.0
"""Points beyond this multiple of the capacity or of the least time are left out."""


@style.applied()
def draw(points: Sequence[tuple[float, float]], *, capacity: float, limit: str) -> Figure:
    """Draw points (bytes, seconds), the fastest one that fits as a star, the capacity as a line; return the figure.

    Parameters
        points    of all plans
        capacity  bytes of an accelerator
        limit     what binds, in a sentence above the picture

    Raises
        ValueError  no point fits

    >>> figure = draw([(40e9, 3.0), (70e9, 2.5), (90e9, 2.0)], capacity=80e9, limit="Memory binds.")
    """
    figure, (axes,) = style.new_figure(6.4, 4.0)
    scatter(axes, points, capacity=capacity)
    axes.set_title(style.in_lines(limit, 66), fontsize=9)
    axes.legend(loc="upper right", frameon=True, framealpha=0.9, edgecolor="none")
    style.label_source(figure, "formula", "a point for each way to divide the work")
    return figure


def scatter(axes: Axes, points: Sequence[tuple[float, float]], *, capacity: float) -> None:
    """The same on given axes, without title and legend."""
    real_number("plans: capacity", capacity, above=0)
    fitting = sorted((each for each in points if each[0] <= capacity), key=lambda each: each[1])
    if not fitting:
        raise ValueError(f"no point has at most {style.bytes_text(capacity)}")
    least = fitting[0][1]
    near = [(x, y) for x, y in points if x <= FURTHEST * capacity and y <= FURTHEST * least]
    groups = (
        ("too large", [each for each in near if each[0] > capacity], style.SERIES[1], "x"),
        ("fits", [each for each in near if each[0] <= capacity], style.SERIES[0], "o"),
    )
    for label, group, colour, marker in groups:
        x, y = [each[0] / 1e9 for each in group], [each[1] for each in group]
        axes.scatter(x, y, s=10, color=colour, marker=marker, linewidths=0.7, label=label, alpha=0.6)
    axes.axvline(capacity / 1e9, color="0.2", linestyle="--", linewidth=1.2)
    axes.text(capacity / 1e9, axes.get_ylim()[1], " memory", va="top", fontsize=8)
    axes.scatter([fitting[0][0] / 1e9], [least], s=90, color="black", marker="*", label="the fastest that fits")
    axes.set_xlabel("memory of the fullest accelerator [GB]")
    axes.set_ylabel("time of a step [s]")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
