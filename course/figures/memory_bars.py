"""Bars that show what fills the memory of a machine, one bar for each way to divide a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from minidl.plots import style


@style.applied()
def draw(components: Sequence[str], gigabytes: Mapping[str, Sequence[float]], *, limit: float, source: str) -> Figure:
    """Draw a bar for each way, divided by component, and a line at the memory that a machine has.

    Parameters
        components  names of what fills the memory
        gigabytes   for each way, by name, those of each component
        limit       gigabytes of a machine
    """
    figure, [axes] = style.new_figure(8.0, 0.35 * len(gigabytes) + 1.2)
    left = [0.0] * len(gigabytes)
    for number, name in enumerate(components):
        widths = [each[number] for each in gigabytes.values()]
        axes.barh(list(gigabytes), widths, left=left, label=name, color=style.SERIES[number], **style.BORDER)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.axvline(limit, color="0.2", linestyle="--", linewidth=1, label=f"{limit:g} GB")
    axes.invert_yaxis()
    axes.set(xlabel="GB on the machine that has most")
    axes.legend(fontsize=8, loc="lower right")
    style.label_source(figure, source)
    return figure
