"""Small multiples: the same picture for several settings, in one figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from minidl.plots import style

TOTAL_WIDTH = 9.5
MOST_COLUMNS = 3
MANY_TICKS = 20.0  # ratio of the limits of a small logarithmic axis beyond which labels at 1, 2 and 5 would touch


@style.applied()
def small_multiples(
    draw: Callable[..., None],
    settings: Sequence[Mapping[str, Any]],
    width: float,
    height: float,
    shared: bool = True,
    source: str | Sequence[str] = (),
) -> Figure:
    """Draw `draw(axes, **setting)` for each setting, side by side; its title says the setting.

    width, height: inches of one picture; it is scaled down where several would be too wide.
    shared: equal limits of all axes, so that the pictures can be compared.
    A legend that is the same in all pictures stands in the first one.
    """
    columns = len(settings) if len(settings) <= MOST_COLUMNS else (2 if len(settings) == 4 else MOST_COLUMNS)
    rows = -(-len(settings) // columns)
    each = min(width, TOTAL_WIDTH / columns)
    tall = height * max(each / width, 0.75)
    figure, places = style.new_figure(
        each * columns, tall * rows, columns=columns, heights=(1,) * rows, sharex=shared, sharey=shared
    )
    for place, (axes, setting) in enumerate(zip(places, settings, strict=False)):
        before = len(figure.axes)
        draw(axes, **setting)
        title(axes, described(setting))
        for twin in figure.axes[before:]:  # a second axis on the right
            if shared and (place + 1) % columns:
                twin.set_ylabel("")
    for axes in places[len(settings) :]:
        axes.remove()
    for place, axes in enumerate(places[: len(settings)]):
        if shared and place + columns < len(settings):  # a picture stands below, with the same axis
            axes.set_xlabel("")
        elif shared:
            axes.tick_params(labelbottom=True)
        if shared and place % columns:
            axes.set_ylabel("")
    for axes in places[: len(settings)]:
        style.named_log_ticks(axes, MANY_TICKS)
    keep_one_legend(places[: len(settings)])
    if source:
        style.label_source(figure, source)
    return figure


@style.applied()
def single(draw: Callable[..., None], setting: Mapping[str, Any], width: float, height: float, source: Any) -> bytes:
    """The picture for one setting, as PNG."""
    picture: bytes = single_figure(draw, setting, width, height, source)._repr_png_()  # type: ignore[attr-defined]
    return picture


@style.applied()
def single_figure(
    draw: Callable[..., None], setting: Mapping[str, Any], width: float, height: float, source: Any
) -> Figure:
    """The picture for one setting."""
    figure, [axes] = style.new_figure(width, height)
    draw(axes, **setting)
    style.named_log_ticks(axes)
    if source:
        style.label_source(figure, source)
    return figure


def keep_one_legend(places: Sequence[Axes]) -> None:
    """Remove the legends of all pictures but the first, if they are the same."""
    legends = [axes.get_legend() for axes in places]
    entries = [[text.get_text() for text in legend.get_texts()] if legend else [] for legend in legends]
    if all(entry == entries[0] for entry in entries):
        for legend in filter(None, legends[1:]):
            legend.remove()


def title(axes: Axes, words: str) -> None:
    """Put the setting above the title that the picture may have."""
    own = axes.get_title(loc="left") or axes.get_title()
    axes.set_title("")
    axes.set_title("", loc="left")
    axes.set_title(f"{words}\n{own}" if own else words, loc="left")


def described(setting: Mapping[str, Any]) -> str:
    """A setting in words: "nodes 16, network 1gbe"; a letter: "B = 16"."""
    return ", ".join(f"{label(name)}{sign(name)}{value_text(value)}" for name, value in setting.items())


def sign(name: str) -> str:
    """What stands between a parameter and its value."""
    return " = " if len(name) == 1 else " "


def numbers_alone(choice: Sequence[Any]) -> bool:
    """Whether a slider offers these values; a list offers all others."""
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in choice)


def offered(choice: Sequence[Any]) -> list[Any]:
    """The values in the order in which a control offers them: numbers from the least to the greatest."""
    return sorted(choice) if numbers_alone(choice) else list(choice)


def label(name: str) -> str:
    """A parameter's name as a reader sees it: `ms_per_sample` as "ms/sample"."""
    return name.replace("_per_", "/").replace("_", " ")


def value_text(value: Any) -> str:
    """A value as a reader sees it."""
    return f"{value:,.6g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
