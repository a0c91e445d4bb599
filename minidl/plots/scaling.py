"""Time against the number of nodes or bytes: one line per algorithm, or measured times and the line fitted to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
HEADING = 45  # characters of a line above a panel: beyond it is the legend
WIDEST = 20  # ratio of the longest bar to the shortest, beyond which the axis is logarithmic


@dataclass(frozen=True)
class Line:
    """The times of one algorithm.

    Parameters
        label        text in the legend
        x            numbers of nodes or bytes
        seconds      time at each x
        is_choice    True for the choice of "auto": circles around the points of the chosen lines
        series       number of colour, dashes and marker, for equal looks in several pictures; default its position
    """

    label: str
    x: Sequence[float]
    seconds: Sequence[float]
    is_choice: bool = False
    series: int | None = None


@dataclass(frozen=True)
class Panel:
    """Lines on one pair of axes."""

    title: str
    lines: Sequence[Line]


@style.applied()
def draw(
    panels: Sequence[Panel],
    *,
    columns: int,
    xlabel: str,
    source: str,
    title: str = "",
    name_x: Callable[[float], str] = "{:g}".format,
) -> Figure:
    """Draw the panels, each on its own scale of time, and return the figure.

    Parameters
        panels     one pair of axes each
        columns    panels per row
        xlabel     name of the x axis
        source     "measured", "simulated" or "formula"
        title      text above the figure
        name_x     function that writes a value of x at the axis

    If every line has a single x, times are drawn as bars, and the fastest is marked and named. Where the slowest takes
    over 20 times as long, their axis is logarithmic.

    >>> lines = [Line("ring", [2, 4], [1.0, 1.5]), Line("tree", [2, 4], [2.0, 4.0])]
    >>> figure = draw([Panel("10gbe", lines)], columns=1, xlabel="nodes", source="simulated")
    """
    rows = -(-len(panels) // columns)
    has_bars = all(len(line.x) == 1 for panel in panels for line in panel.lines)
    most = max(len(panel.lines) for panel in panels)  # each has a bar, or a place in the legend
    width = max(5.2, 3.6 * columns + 1.6)
    height = max(1.2, 0.5 + 0.24 * most) * rows + 0.8 if has_bars else max(2.6 * rows, 0.2 * most) + 0.8
    figure, all_axes = style.new_figure(width, height, columns, [1] * rows, sharex=not has_bars)
    for axes, panel in zip(all_axes, panels, strict=True):
        axes.set_title(style.in_lines(panel.title, HEADING), fontsize=9)
        if has_bars:
            _bars(axes, panel.lines)
            times, choices = ({line.label: line.seconds[0] for line in panel.lines if line.is_choice is choice}
                              for choice in (False, True))  # fmt: skip
            if best := fastest(times, choices):
                axes.set_title(style.in_lines(f"{panel.title}\nfastest: {best}", HEADING), fontsize=9)
        else:
            _lines(axes, panel.lines, name_x)
    if not has_bars:
        for axes in all_axes[-columns:]:
            axes.set_xlabel(xlabel)
        for axes in all_axes[::columns]:
            axes.set_ylabel("time")
        handles, labels = all_axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", fontsize=8, handlelength=3.2)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    style.label_source(figure, source)
    return figure


def _lines(axes: Axes, lines: Sequence[Line], name_x: Callable[[float], str]) -> None:
    from matplotlib.ticker import EngFormatter, NullLocator

    count, place = len(style.SERIES), 0
    for line in lines:
        if line.is_choice:  # circles around the points of the chosen line
            axes.plot(line.x, line.seconds, "o", color="black", fillstyle="none", markersize=11, label=line.label)
            continue
        color = place if line.series is None else line.series
        axes.plot(
            line.x,
            line.seconds,
            color=style.SERIES[color % count],
            linestyle=style.DASHES[(color + color // count) % count],
            marker=MARKERS[color % len(MARKERS)],
            markersize=max(7 - 0.6 * place, 3),  # later lines are narrower, so that coinciding lines stay visible
            linewidth=max(2.4 - 0.25 * place, 1),
            label=line.label,
        )
        place += 1
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = sorted({x for line in lines for x in line.x})
    axes.set_xticks(ticks, [name_x(x) for x in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    if len(ticks) > 6:
        axes.tick_params(axis="x", labelrotation=90)
    seconds = [value for line in lines for value in line.seconds]
    axes.yaxis.set_major_locator(style.log_locator(min(seconds), max(seconds), 100))
    axes.yaxis.set_major_formatter(EngFormatter(unit="s"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color="0.9", linewidth=0.6)


def fastest(times: Mapping[str, float], choices: Mapping[str, float]) -> str:
    """The fastest, with those that are equal to four digits, and how much longer the next takes; "" if there is one.

    choices: the times of "auto". It counts if it is faster than all others, by options that none of them has.

    >>> fastest({"ring": 0.12, "tree": 0.3}, {"auto": 0.12})
    'ring, 120 ms; tree takes 2.5 times as long'
    """
    shortest = min(times.values(), default=0.0)
    faster = {name: each for name, each in choices.items() if each < shortest and not _is_least(each, shortest)}
    times = {**times, **faster}
    ranked = sorted(times, key=times.__getitem__)
    if len(ranked) < 2:
        return ""
    least = times[ranked[0]]
    equal = [name for name in ranked if _is_least(times[name], least)]
    best = f"{' and '.join(filter(None, [', '.join(equal[:-1]), equal[-1]]))}, {style.seconds_text(least)}"
    if len(equal) == len(ranked) or not least:
        return best
    after = ranked[len(equal)]
    return f"{best}; {after} takes {times[after] / least:.3g} times as long"


def _is_least(seconds: float, least: float) -> bool:
    return style.seconds_text(seconds) == style.seconds_text(least)


def _bars(axes: Axes, lines: Sequence[Line]) -> None:
    from matplotlib.ticker import EngFormatter, MaxNLocator

    name = EngFormatter(unit="s")
    times = [line.seconds[0] for line in lines]
    is_wide = max(times) > WIDEST * min(times) > 0
    for position, (line, seconds) in enumerate(zip(lines, times, strict=True)):
        is_best = len(lines) > 1 and _is_least(seconds, min(times))
        color = "0.6" if line.is_choice else style.SERIES[2 if is_best else 0]
        axes.barh(position, seconds, height=0.6, color=color, **style.BORDER)
        text = name(float(f"{seconds:.4g}"))
        weight = "bold" if is_best else "normal"
        axes.annotate(
            text, (seconds, position), (3, 0), textcoords="offset points", va="center", fontsize=8, fontweight=weight
        )
    if is_wide:
        decade = 10 ** math.floor(math.log10(min(times)))
        axes.set_xscale("log")
        axes.set_xlim(decade / 2 if min(times) < 1.5 * decade else decade, max(times) * (max(times) / decade) ** 0.3)
        axes.set_xlabel("time, on a logarithmic axis")
        axes.minorticks_off()
    else:
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.margins(x=0.2)
    axes.xaxis.set_major_formatter(name)
    axes.set_yticks(range(len(lines)), [line.label for line in lines])
    axes.set_ylim(len(lines) - 0.4, -0.6)


@style.applied()
def draw_fit(
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
        points        pairs (bytes, seconds)
        alpha         latency in seconds
        beta          seconds per byte
        source        source of the points, "measured" or "simulated"
        limit         number of bytes to mark with a vertical line
        limit_name    text at that line
        title         text above the figure

    >>> figure = draw_fit([(64, 2e-5), (1 << 20, 1e-3)], alpha=2e-5, beta=1e-9, source="measured")
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
