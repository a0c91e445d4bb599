"""An image that a grid of ranks divides, with what one of them receives from its neighbours for a convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THINNEST = 1 / 60  # of the image's side: a thinner halo is drawn as wide as this
OTHER = "#E8E8E8"  # light grey: the ranks that are not looked at


def draw(axes: Axes, size: int, grid: tuple[int, int], place: tuple[int, int], halo: int, words: str) -> None:
    """Draw a square image of `size` pixels a side as the tiles of a grid, the place's own one with its halo around it.

    Parameters
        size    pixels a side
        grid    rows and columns of ranks
        place   row and column in the grid of the rank that is looked at
        halo    rows and columns that it receives from each neighbour; corners travel with the columns
        words   text on the right
    """
    from matplotlib.patches import Rectangle

    rows, columns = grid
    height, width = size / rows, size / columns
    top, left = place[0] * height, place[1] * width
    for row in range(rows):
        for column in range(columns):
            colour = style.SERIES[0] if (row, column) == place else OTHER
            corner = column * width, row * height
            axes.add_patch(Rectangle(corner, width, height, facecolor=colour, **style.BORDER))
    thick = max(halo, THINNEST * size) if halo else 0
    above, below = thick * (place[0] > 0), thick * (place[0] < rows - 1)
    for here, y in ((above, top - thick), (below, top + height)):
        axes.add_patch(Rectangle((left, y), width, here, facecolor=style.SERIES[1], linewidth=0))
    for here, x in ((place[1] > 0, left - thick), (place[1] < columns - 1, left + width)):
        tall = height + above + below if here else 0
        axes.add_patch(Rectangle((x, top - above), thick, tall, facecolor=style.SERIES[4], linewidth=0))
    axes.text(1.06 * size, size / 2, words, fontsize=7.5, va="center")
    axes.set(xlim=(-0.02 * size, 1.7 * size), ylim=(1.02 * size, -0.02 * size), aspect="equal")
    axes.axis("off")
