"""A convolution divided over channels and filters, and the grids of a network's layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from minidl.parallel.convolution_grids import ConvolutionGrid

EXTENTS = {"samples": 1, "rows and columns": 4, "channels": 2, "filters": 0}
"""What a grid divides, with the colours of the bars."""


def draw_owners(axes: Axes, p: int, channels: int, words: str) -> None:
    """Draw x above the weights and y beside them, each cell in the colour and with the number of its machine.

    Parameters
        p         machines
        channels  groups of channels, a divisor of p
        words     text below
    """
    filters = p // channels
    size, gap = 4.0 / p, 0.5
    for k in range(p):
        _cell(axes, k * size, gap, size, 0.5, k)  # x
        _cell(axes, 4 + gap, -(k + 1) * size, 0.5, size, k)  # y
        for i in range(channels):
            _cell(axes, i * 4 / channels, -(k + 1) * size, 4 / channels, size, i * filters + k % filters)
    axes.text(-0.2, gap + 0.25, "x", ha="right", va="center", fontstyle="italic")
    axes.text(-0.2, -2, "w", ha="right", va="center", fontstyle="italic")
    axes.text(4 + gap + 0.25, 0.2, "y", ha="center", va="bottom", fontstyle="italic")
    axes.text(2, gap + 0.65, "channels →", ha="center", va="bottom", fontsize=7)
    axes.text(5.15, -2, "filters →", ha="left", va="center", rotation=-90, fontsize=7)
    axes.text(0, -4.3, words, va="top", fontsize=7.5)
    axes.set(xlim=(-0.7, 6.2), ylim=(-5.9, 1.8))
    axes.set_aspect("equal")
    axes.axis("off")


def _cell(axes: Axes, left: float, bottom: float, width: float, height: float, rank: int) -> None:
    from matplotlib.patches import Rectangle

    colour = style.SERIES[rank % len(style.SERIES)]
    axes.add_patch(Rectangle((left, bottom), width, height, facecolor=colour, **style.BORDER))
    axes.text(left + width / 2, bottom + height / 2, rank, ha="center", va="center", fontsize=6, color="white")


def draw_grids(axes: Axes, grids: Sequence[ConvolutionGrid], stages: Sequence[str], words: str) -> None:
    """Draw for each layer how many ways each dimension is divided, as bars on top of each other; their product is p.

    Parameters
        grids   of the layers, in order
        stages  by layer, the part of the network that it belongs to, written below its first layer
        words   title
    """
    bottom = np.zeros(len(grids))
    for name, colour in EXTENTS.items():
        ways = [grid.rows * grid.columns if name == "rows and columns" else getattr(grid, name) for grid in grids]
        heights = np.log2(ways)
        axes.bar(range(len(grids)), heights, 1.0, bottom, color=style.SERIES[colour], label=name, **style.BORDER)
        bottom += heights
    first = [i for i, stage in enumerate(stages) if not i or stage != stages[i - 1]]
    axes.set_xticks([i - 0.5 for i in first], [stages[i] for i in first], fontsize=8, ha="left")
    ticks = range(0, int(bottom.max() + 0.5) + 1, 2)
    axes.set_yticks(ticks, [f"{2**tick:,}" for tick in ticks])
    axes.set(xlabel="layers", ylabel="machines (product)", title=words, xlim=(-0.5, len(grids) - 0.5))
    axes.legend(fontsize=7, ncols=2, loc="lower left", frameon=True)
