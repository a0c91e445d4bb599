"""A what-if panel: sliders where a person sits in front of the kernel; elsewhere small multiples, or drawn pictures.

def draw(axes, nodes, network):
    axes.plot(...)

explore(draw, "the more nodes, the longer it takes.", nodes=[2, 4, 8, 16], network=["1gbe", "10gbe"],
        multiples=[{"nodes": 2}, {"nodes": 16}])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import ipywidgets

from course.figures.page import in_words, see
from course.interaction import frontend
from course.interaction.multiples import label, numbers_alone, offered, single, small_multiples, value_text
from course.interaction.redrawn import Redrawn
from course.interaction.without_kernel import show_panel

MOST_MULTIPLES = 4


def explore(
    draw: Callable[..., None],
    words: str,
    /,
    *,
    multiples: Sequence[Mapping[str, Any]] = (),
    width: float = 6.5,
    height: float = 3.5,
    shared: bool = True,
    source: str | Sequence[str] = (),
    **values: Sequence[Any],
) -> None:
    """Show `draw(axes, **setting)`, with a widget for each parameter; without a person, as small multiples.

    Behind these stands a panel for pages without a kernel: it has the same controls, with at most 40 pictures
    (`without_kernel.py` says which), and takes the place of the small multiples where scripts run.

    Parameters
        draw         draws on the given axes, with a value for each parameter
        words        what to see in it, for those who do not
        values       by parameter: the values that the reader may choose; the first one is the default. Numbers get a
                     slider, all others a list
        multiples    the settings of the static figure; a parameter that is left out has its default. Default: up to
                     four values of the first parameter
        width, height   of one picture, in inches
        shared       equal limits of all small multiples
        source       "measured", "simulated", "formula", or several: written under the figure

    Errors: ValueError for no parameter, for a parameter without values, and for multiples that name an unknown
    parameter or value.
    """
    if not values or not all(len(choice) for choice in values.values()):
        raise ValueError("explore needs a parameter with values to choose from, such as nodes=[2, 4, 8]")
    settings = [setting(chosen, values) for chosen in multiples or spread(values)]
    if frontend.person_is_there():
        widgets = {name: widget(name, choice) for name, choice in values.items()}
        picture = Redrawn(lambda **chosen: single(draw, chosen, width, height, source), widgets)
        picture.show(*widgets.values())
        in_words(words)
    else:
        see(small_multiples(draw, settings, width, height, shared, source), words)
        show_panel(draw, values, settings, width, height, source)


def setting(chosen: Mapping[str, Any], values: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """A value for each parameter: the chosen one, or its default. Raises ValueError for unknown names and values."""
    for name, value in chosen.items():
        if name not in values:
            raise ValueError(f"multiples name the parameter {name!r}, but the parameters are {', '.join(values)}")
        if value not in values[name]:
            raise ValueError(f"multiples have {name}={value!r}, which is not among its values {list(values[name])}")
    return {name: chosen.get(name, choice[0]) for name, choice in values.items()}


def spread(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Up to four values of the first parameter, the first and the last among them."""
    name, choice = next(iter(values.items()))
    count = min(MOST_MULTIPLES, len(choice))
    places = {round(place * (len(choice) - 1) / max(count - 1, 1)) for place in range(count)}
    return [{name: choice[place]} for place in sorted(places)]


def widget(name: str, choice: Sequence[Any]) -> ipywidgets.Widget:
    """A slider for numbers, from the least to the greatest; a drop-down list for all else. It starts at the first."""
    sliders = partial(ipywidgets.SelectionSlider, continuous_update=False)
    kind = sliders if numbers_alone(choice) else ipywidgets.Dropdown
    options = [(value_text(value), value) for value in offered(choice)]
    return kind(options=options, value=choice[0], description=label(name), style={"description_width": "initial"})
