"""Ticks of a logarithmic axis: at powers of ten, and in a small range also at 2 and 5 times these."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLAIN = (1e-4, 1e6)  # numbers in this range are written out


def log_ticks(axes: Axes, name: str, low: float, high: float, most: float = 100.0) -> None:
    """Make the axis "x" or "y" logarithmic and label its ticks.

    Parameters
        low, high    range of the values
        most         ratio of high to low up to which ticks are also at 2 and 5 times the powers of ten; beyond, their
                     labels would touch
    """
    from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, LogLocator, NullFormatter

    (axes.set_xscale if name == "x" else axes.set_yscale)("log")
    axis = axes.xaxis if name == "x" else axes.yaxis
    is_wide = high > most * low
    axis.set_major_locator(LogLocator(subs=(1.0,) if is_wide else (1.0, 2.0, 5.0)))
    is_plain = PLAIN[0] <= low and high < PLAIN[1]
    power = LogFormatterSciNotation()
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}" if is_plain else power(value)))
    axis.set_minor_formatter(NullFormatter())


def named_log_ticks(axes: Axes, most: float = 100.0) -> None:
    """Relabel the logarithmic axes that have matplotlib's default ticks; leave others as they are."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator

    for name, axis, limits in (("x", axes.xaxis, axes.get_xlim()), ("y", axes.yaxis, axes.get_ylim())):
        is_default = isinstance(axis.get_major_formatter(), LogFormatterSciNotation)
        if is_default and isinstance(axis.get_major_locator(), LogLocator):
            log_ticks(axes, name, min(limits), max(limits), most)
