"""A picture that is drawn again whenever a widget changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets
from IPython.display import display


class Redrawn:
    """An image and a line for its errors, below the widgets that set the values.

    picture    returns the PNG for given values
    widgets    by parameter: the widget that holds its value
    """

    def __init__(self, picture: Callable[..., bytes], widgets: Mapping[str, ipywidgets.Widget]) -> None:
        self.picture = picture
        self.widgets = widgets
        self.image = ipywidgets.Image(format="png", value=picture(**self.values()))
        self.image.layout.max_width = "100%"
        self.problem = ipywidgets.Output()
        for widget in widgets.values():
            widget.observe(self.redraw, names="value")

    def values(self) -> dict[str, Any]:
        """The present value of each parameter."""
        return {name: widget.value for name, widget in self.widgets.items()}

    def redraw(self, change: object = None) -> None:
        """Draw the picture for the present values; if that fails, show the error in its place."""
        self.problem.clear_output()
        self.image.layout.visibility = "hidden"
        with self.problem:  # shows an exception's traceback
            self.image.value = self.picture(**self.values())
            self.image.layout.visibility = "visible"

    def show(self, *controls: ipywidgets.Widget) -> None:
        """Show the controls, with the picture below."""
        display(ipywidgets.VBox([*controls, self.problem, self.image]))
