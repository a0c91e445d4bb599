"""The style of all pictures: colours, sizes, ticks, numbers as text, and the label that says where they come from.

The colours of series are those of Okabe and Ito (2008), Color Universal Design, which colour-blind readers can
distinguish. Those of activities keep their hues, in even steps of lightness (CIELAB L 31, 47, 62, 77, 92) for grey
print.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from minidl.arguments import one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Locator

FORMATS = ("png", "svg", "pdf")  # of a picture in a file
SOURCES = ("measured", "simulated", "formula")
PLAIN = (1e-4, 1e6)  # numbers in this range on a logarithmic axis are written out

# Activities of a rank.
ACTIVITY = {
    "compute": "#004C80",  # blue
    "send": "#C04F00",  # vermilion
    "receive": "#F0B429",  # orange
    "reduce": "#2FA982",  # green
    "wait": "#E8E8E8",  # light grey: nothing happens
}


def axis_colours(axes: Iterable[str]) -> dict[str, str]:
    """The colours of a timeline that distinguishes communication by the axes of a mesh."""
    own = {"tp": "#C04F00", "pp": "#F0B429", "dp": "#2FA982"}  # vermilion, orange, green
    free = itertools.cycle(["#CC79A7", "#56B4E9", "#7A7A7A"])  # reddish purple, sky blue, grey
    of_axes = {axis: own.get(axis) or next(free) for axis in axes}
    return {"compute": ACTIVITY["compute"], **of_axes, "wait": ACTIVITY["wait"]}


# Actions of a pipeline's stage.
PIPELINE = {
    "forward": "#004C80",  # blue
    "backward": "#2FA982",  # green
    "backward for the inputs": "#F0B429",  # orange
    "backward for the weights": "#C04F00",  # vermilion
    "update": "#CC79A7",  # reddish purple
    "idle": "#E8E8E8",  # light grey: nothing happens
}
FAULT = "#CC79A7"  # reddish purple: a planned fault
BORDER: Any = {"edgecolor": "0.2", "linewidth": 0.5}  # of bars, so that light ones stand out from the page

SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))

_SETTINGS: Any = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


@contextlib.contextmanager
def applied() -> Iterator[None]:
    """Apply the project's style to everything drawn within the block."""
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        yield


def new_figure(
    width: float = 8.0, height: float = 3.5, columns: int = 1, heights: Sequence[float] = (1,), **axes: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes, row by row.

    Parameters
        width, height    size of the figure in inches
        columns          number of axes in each row
        heights          relative height of each row of axes
        axes             further arguments of `Figure.subplots`, such as sharex=True

    The figure has no window and does not use pyplot; a notebook shows it as a picture.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            data = io.BytesIO()
            self.savefig(data, format="png")
            return data.getvalue()

    figure = Picture(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(heights), columns, squeeze=False, height_ratios=heights, **axes)
    return figure, list(grid.flat)


def label_source(figure: Figure, source: str | Sequence[str], note: str = "") -> None:
    """Write the source under the figure: "measured", "simulated", "formula", or several of these."""
    sources = [source] if isinstance(source, str) else source
    for each in sources:
        one_of("source", each, SOURCES)
    words = " and ".join(filter(None, [", ".join(sources[:-1]), sources[-1]]))
    figure.supxlabel(
        f"{words}; {note}" if note else words, fontsize=8, style="italic", color="0.35", x=0.99, ha="right"
    )


def log_locator(low: float, high: float, most: float) -> Locator:
    """The places of ticks: at least two between `low` and `high`, also if these are close; `most` as in `log_ticks`."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    if not 0 < low <= high:
        return LogLocator()
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for subs in ((1.0,), (1.0, 2.0, 5.0))[int(high <= most * low) :]:
        if sum(low <= factor * 10.0**exponent <= high for exponent in exponents for factor in subs) >= 2:
            return LogLocator(subs=subs)
    return MaxNLocator(5, steps=[1, 2, 5, 10])


def log_ticks(axes: Axes, name: str, low: float, high: float, most: float = 100.0) -> None:
    """Make the axis "x" or "y" logarithmic and label its ticks.

    Parameters
        low, high    range of the values
        most         ratio of high to low up to which ticks are also at 2 and 5 times the powers of ten; beyond, their
                     labels would touch
    """
    from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, NullFormatter

    (axes.set_xscale if name == "x" else axes.set_yscale)("log")
    axis = axes.xaxis if name == "x" else axes.yaxis
    axis.set_major_locator(log_locator(low, high, most))
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


def in_lines(text: str, characters: int) -> str:
    """The text in lines of at most `characters` characters.

    >>> in_lines("one two three", 7)
    'one two\\nthree'
    """
    return "\n".join(fill(line, characters) for line in text.splitlines())


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the unit in which a duration is best read: `(units per second, name)`."""
    for factor, name in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 2:
            return factor, name
    return 1e6, "µs"


def time_text(seconds: float) -> str:
    """Return a duration with four digits, in seconds, milliseconds or microseconds.

    >>> time_text(2.5), time_text(0.14028), time_text(50e-6)
    ('2.5 s', '140.3 ms', '50 µs')
    """
    factor, unit = time_unit(seconds)
    return f"{float(f'{seconds * factor:.4g}'):g} {unit}"


def seconds_text(seconds: float) -> str:
    """A time to four digits, in the unit in which the number lies between 1 and 1000.

    >>> seconds_text(0.16), seconds_text(2e-5), seconds_text(0)
    ('160 ms', '20 µs', '0 s')
    """
    if not seconds:
        return "0 s"
    factor, unit = _unit(seconds)
    return f"{seconds * factor:.4g} {unit}"


def deviation_text(deviation: float, seconds: float) -> str:
    """A standard deviation of times, in the unit of their mean `seconds`.

    >>> deviation_text(3.71e-4, 0.0189), deviation_text(0.0254, 0.16)
    ('0.37 ms', '25 ms')
    """
    factor, unit = _unit(seconds)
    scaled = deviation * factor
    return f"{scaled:.0f} {unit}" if scaled >= 9.5 else f"{scaled:.2g} {unit}"


def _unit(seconds: float) -> tuple[float, str]:
    units = ((1, "s"), (1e3, "ms"), (1e6, "µs"))
    return next(((factor, unit) for factor, unit in units if seconds * factor >= 0.99995), (1e9, "ns"))


def bytes_text(nbytes: float) -> str:
    """Return a number of bytes with three digits, in powers of 1000.

    >>> bytes_text(100_000_000), bytes_text(65536), bytes_text(12)
    ('100 MB', '65.5 KB', '12 B')
    """
    for power, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if nbytes >= 0.9995 * power:
            return f"{nbytes / power:.3g} {unit}"
    return f"{nbytes:.3g} B"
