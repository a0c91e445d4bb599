"""Treemap: what a node's memory is filled with; areas are bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from minidl.arguments import one_of, real_number
from minidl.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEMORY = {
    "weights": "#004C80",  # blue
    "gradients": "#C04F00",  # vermilion
    "optimizer": "#2FA982",  # green
    "activations": "#F0B429",  # orange
    "buffers": "#E8E8E8",  # light grey
}
"""The colours of the components, in even steps of lightness for grey print."""

DARK = ("weights", "gradients")  # on which text is white
WIDTH, HEIGHT = 3.4, 3.6  # of a panel, in inches
POINTS = 7  # size of the text inside


class Rectangle(NamedTuple):
    """A rectangle of a treemap, from its lower left corner."""

    x: float
    y: float
    width: float
    height: float


@style.applied()
def draw(
    memories: Mapping[str, Sequence[tuple[str, str, float]]], *, source: str | Sequence[str], capacity: float = 0
) -> Figure:
    """Draw each memory as a square whose area is its bytes, cut by component, and these by layer; return the figure.

    Parameters
        memories  by title, the entries of a memory: name of the layer, component, bytes
        source    "measured", "simulated" or "formula", or several of them
        capacity  bytes that a device has, drawn as a dashed square; 0: none

    Raises
        TypeError   bytes are no number
        ValueError  there is no memory, or one without bytes; a component is unknown; bytes are negative

    >>> node = [("0", "weights", 4200), ("2", "weights", 2040), ("0", "optimizer", 8400)]
    >>> figure = draw({"rank 0": node}, source="formula", capacity=16_000)
    """
    real_number("treemap: capacity", capacity, at_least=0, hint="0: none")
    for name, component, nbytes in chain(*memories.values()):
        one_of(f"treemap: the component of {name!r}", component, MEMORY)
        real_number(f"treemap: the bytes of {name!r}", nbytes, at_least=0)
    totals = {title: sum(nbytes for _, _, nbytes in entries) for title, entries in memories.items()}
    if not memories or not all(totals.values()):
        raise ValueError(f"a treemap is drawn of one memory or more that have bytes, got {totals}")
    side = max(*totals.values(), capacity) ** 0.5
    figure, panels = style.new_figure(WIDTH * len(memories), HEIGHT, columns=len(memories))
    for axes, (title, entries) in zip(panels, memories.items(), strict=True):
        axes.set_xlim(-0.01 * side, 1.01 * side)
        axes.set_ylim(-0.01 * side, 1.01 * side)
        axes.set_aspect("equal")
        axes.set_axis_off()
        axes.set_title(f"{title}: {style.bytes_text(totals[title])}")
        _memory(axes, entries, totals[title] ** 0.5, side)
        if capacity:
            _frame(axes, Rectangle(0, 0, capacity**0.5, capacity**0.5), linestyle="--", linewidth=1.2)
    used = {component for entries in memories.values() for _, component, _ in entries}
    handles = [_patch(MEMORY[component], component) for component in MEMORY if component in used]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 3 * len(memories)))
    note = f"dashed: a device of {style.bytes_text(capacity)}" if capacity else "areas are bytes"
    style.label_source(figure, source, note)
    return figure


def _memory(axes: Axes, entries: Sequence[tuple[str, str, float]], side: float, whole: float) -> None:
    """Draw one memory as a square of that side; whole: that of the panel."""
    sums = {component: sum(n for _, of, n in entries if of == component) for component in MEMORY}
    sums = {component: nbytes for component, nbytes in sums.items() if nbytes}
    for component, place in zip(sums, squarified([*sums.values()], Rectangle(0, 0, side, side)), strict=True):
        layers: dict[str, float] = {}
        for name, of, nbytes in entries:
            if of == component and nbytes:
                layers[name] = layers.get(name, 0) + nbytes
        inner = squarified([*layers.values()], place)
        for rectangle in inner:
            _frame(axes, rectangle, facecolor=MEMORY[component], edgecolor="white", linewidth=0.3, fill=True)
        _frame(axes, place, linewidth=1.0, zorder=4)  # above the headings
        colour, size = "white" if component in DARK else "black", style.bytes_text(sums[component])
        points = 72 * (HEIGHT - 0.85) / whole  # per square root of a byte
        top = place.y + place.height - 2 / points
        middle = place.x + place.width / 2
        texts = (f"{component} {size}", f"{component}\n{size}", size)
        if fitting := [text for text in texts if _fits(text, place, points)]:
            axes.text(
                middle, top, fitting[0], ha="center", va="top", color=colour, fontsize=POINTS, fontweight="bold",
                bbox={"facecolor": MEMORY[component], "edgecolor": "none", "pad": 1},  # over the borders of the layers
            )  # fmt: skip
        for name, (x, y, width, height) in zip(layers, inner, strict=True):
            below_heading = min(height, place.y + place.height - 25 / points - y)
            parts = name.split(", ")[0].split(".")  # the end of the first name says enough
            ends = [".".join(parts[i:]) for i in range(len(parts))] if len(layers) > 1 else []
            if fitting := [end for end in ends if _fits(end, Rectangle(x, y, width, below_heading), points)]:
                left, low = x + width / 2, y + below_heading / 2
                axes.text(left, low, fitting[0], ha="center", va="center", color=colour, fontsize=POINTS)


def _fits(text: str, place: Rectangle, points: float) -> bool:
    """Whether the text can be written into the rectangle, of which a unit is that many points."""
    lines = text.splitlines()
    width, height = 0.62 * POINTS * max(map(len, lines)), POINTS * (1.3 * len(lines) + 0.5)
    return width < place.width * points and height < place.height * points


def squarified(sizes: Sequence[float], place: Rectangle) -> list[Rectangle]:
    """Cut a rectangle into rectangles whose areas are in the ratio of the sizes, each as close to a square as may be.

    In rows along the shorter side, from the largest size: a row takes one more as long as its worst ratio improves.

    Bruls, Huizing, van Wijk, Squarified treemaps (2000), section 3.

    >>> squarified([2, 6], Rectangle(0, 0, 4, 2))
    [Rectangle(x=3.0, y=0, width=1.0, height=2.0), Rectangle(x=0, y=0, width=3.0, height=2.0)]
    """
    total = sum(sizes)
    order = sorted((i for i, size in enumerate(sizes) if size), key=lambda i: -sizes[i])
    areas = [sizes[i] * place.width * place.height / total for i in order]
    found = [Rectangle(place.x, place.y, 0, 0)] * len(sizes)
    x, y, width, height = place
    begun = 0
    while begun < len(order):
        short, end = min(width, height), begun + 1
        while end < len(order) and _worst(areas[begun : end + 1], short) <= _worst(areas[begun:end], short):
            end += 1
        thickness, along = sum(areas[begun:end]) / short, 0.0
        for i, area in zip(order[begun:end], areas[begun:end], strict=True):
            length = area / thickness
            if width >= height:
                found[i] = Rectangle(x, y + along if along else y, thickness, length)
            else:
                found[i] = Rectangle(x + along if along else x, y, length, thickness)
            along += length
        if width >= height:
            x, width = x + thickness, width - thickness
        else:
            y, height = y + thickness, height - thickness
        begun = end
    return found


def _worst(areas: Sequence[float], short: float) -> float:
    """The largest ratio of the sides in a row of these areas along a side of that length."""
    thickness = sum(areas) / short
    return max(max(area / thickness**2, thickness**2 / area) for area in areas)


def _frame(axes: Axes, place: Rectangle, **options: object) -> None:
    from matplotlib.patches import Rectangle as Patch

    chosen = {"fill": False, "edgecolor": "0.2", **options}
    axes.add_patch(Patch((place.x, place.y), place.width, place.height, **chosen))  # type: ignore[arg-type]


def _patch(colour: str, label: str) -> object:
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, label=label, **style.BORDER)
