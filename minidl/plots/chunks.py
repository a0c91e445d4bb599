"""Which rank has which chunk: one grid per moment, with a row per rank, a column per chunk, and arrows for messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EMPTY, FULL = (1.0, 1.0, 1.0), (0.0, 0.30, 0.50)  # white, and the blue of "compute"
DARK = 0.6  # from this share of FULL on, text is white


class Cell(NamedTuple):
    """The text of a cell and its share of the whole: 0 (white) to 1 (dark)."""

    text: str
    share: float


class Arrow(NamedTuple):
    """A chunk that was sent from rank `src` to rank `dst`, in column `column`."""

    src: int
    dst: int
    column: int


@dataclass(frozen=True)
class Panel:
    """One moment: `cells[rank][column]`, and arrows to the chunks that have just arrived, whose cells get a frame."""

    title: str
    cells: Sequence[Sequence[Cell]]
    arrows: Sequence[Arrow] = ()


@style.applied()
def draw(panels: Sequence[Panel], *, columns: int, source: str, title: str = "") -> Figure:
    """Draw the panels and return the figure.

    Parameters
        panels     one grid each
        columns    panels per row
        source     "measured", "simulated" or "formula"
        title      text above the figure

    >>> cells = [[Cell("A", 0.5)], [Cell("B", 0.5)]]
    >>> figure = draw([Panel("before", cells), Panel("after", cells, [Arrow(0, 1, 0)])], columns=2, source="simulated")
    """
    rows = -(-len(panels) // columns)
    tallest = max(len(panel.cells) for panel in panels)
    figure, all_axes = style.new_figure(9.0, rows * (0.6 + 0.33 * tallest) + 0.3, columns, [1] * rows)
    for axes, panel in zip(all_axes, panels, strict=False):
        draw_on(axes, panel)
    for axes in all_axes[len(panels) :]:
        axes.set_axis_off()
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    style.label_source(figure, source)
    return figure


def draw_on(axes: Axes, panel: Panel) -> None:
    """Draw one panel on axes of your own, for example one frame of several."""
    from matplotlib.patches import Rectangle

    width = max(len(row) for row in panel.cells)
    arrived = {(arrow.dst, arrow.column) for arrow in panel.arrows}
    for rank, row in enumerate(panel.cells):
        for column, (text, share) in enumerate(row):
            colour = tuple(empty + share * (full - empty) for empty, full in zip(EMPTY, FULL, strict=True))
            is_new = (rank, column) in arrived
            axes.add_patch(
                Rectangle(
                    (column - 0.46, rank - 0.42), 0.92, 0.84, facecolor=colour, zorder=3 if is_new else 2,
                    edgecolor="black" if is_new else "0.75", linewidth=1.6 if is_new else 0.6,
                )
            )  # fmt: skip
            letters = "white" if share >= DARK else "black"
            axes.text(column, rank, text, ha="center", va="center", fontsize=7, color=letters, zorder=4)
    for arrow in panel.arrows:
        _draw_arrow(axes, arrow)
    axes.set_title(panel.title, fontsize=8.5)
    axes.set_xlim(-0.6, width - 0.4)
    axes.set_ylim(len(panel.cells) - 0.4, -0.6)
    axes.set_xticks([])
    axes.set_yticks(range(len(panel.cells)), [f"rank {rank}" for rank in range(len(panel.cells))], fontsize=7)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_arrow(axes: Axes, arrow: Arrow) -> None:
    """Draw an arrow: straight to a neighbour, else bent past the ranks between, on two lanes to avoid overlaps.

    A white outline sets it off from dark cells.
    """
    from matplotlib.patheffects import withStroke

    is_down, is_far = arrow.dst > arrow.src, abs(arrow.dst - arrow.src) > 1
    side = 0.34 + (0.07 if arrow.src % 2 else -0.07) * is_far
    side = side if is_down else -side
    start = (arrow.column + side, arrow.src + (0.3 if is_down else -0.3))
    end = (arrow.column + side, arrow.dst - (0.36 if is_down else -0.36))
    bow = "arc3,rad=-0.22" if is_far else "arc3"
    colour = style.ACTIVITY["send"]
    look: Any = {
        "arrowstyle": "-|>",
        "connectionstyle": bow,
        "color": colour,
        "linewidth": 1.2,
        "shrinkA": 0,
        "shrinkB": 0,
    }
    look["path_effects"] = [withStroke(linewidth=3.0, foreground="white")]
    axes.annotate("", xy=end, xytext=start, arrowprops=look, zorder=5)
