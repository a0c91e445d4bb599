"""A picture in steps: with buttons back and forward if a person uses the kernel, else some frames side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets

from course.figures.page import in_words, see
from course.interaction import frontend
from course.interaction.multiples import label, single, small_multiples, value_text
from course.interaction.redrawn import Redrawn
from course.interaction.without_kernel import show_panel


def step_through(
    draw: Callable[..., None],
    words: str,
    /,
    *,
    frames: Sequence[Any],
    multiples: Sequence[Any],
    name: str = "step",
    width: float = 6.5,
    height: float = 3.5,
    shared: bool = True,
    source: str | Sequence[str] = (),
) -> None:
    """Show `draw(axes, frame)` for one of `frames` at a time, or for those in `multiples` side by side.

    Without a person, buttons stand behind the picture that work without a kernel, as with `explore`.

    Parameters
        draw         draws one frame on the given axes
        words        what to see in it, printed below; also for readers who cannot see it
        frames       the frames through which the reader steps, in order
        multiples    the frames of the static figure
        name         what a frame is called: "step 3"
        width, height   of one picture, in inches
        shared       equal limits of all small multiples
        source       "measured", "simulated", "formula", or several: written under the figure

    Errors: ValueError for fewer than two frames, and for multiples that are no frames.
    """
    frames = list(frames)
    if len(frames) < 2:
        raise ValueError(f"step_through needs at least two frames, got {frames}")
    if not multiples or any(frame not in frames for frame in multiples):
        raise ValueError(f"multiples are some of the frames {frames}, got {list(multiples)}")

    def draw_frame(axes: Any, **chosen: Any) -> None:
        draw(axes, chosen[name])

    if frontend.person_is_there():
        slider = ipywidgets.SelectionSlider(
            options=[(value_text(frame), frame) for frame in frames], continuous_update=False, description=label(name)
        )
        picture = Redrawn(lambda **chosen: single(draw_frame, chosen, width, height, source), {name: slider})
        picture.show(ipywidgets.HBox([button("◀ back", slider, -1), button("forward ▶", slider, +1), slider]))
        in_words(words)
    else:
        settings = [{name: frame} for frame in multiples]
        see(small_multiples(draw_frame, settings, width, height, shared, source), words)
        show_panel(draw_frame, {name: frames}, settings, width, height, source, in_steps=True)


def button(words: str, slider: ipywidgets.SelectionSlider, by: int) -> ipywidgets.Button:
    """A button that moves the slider by `by` frames; it is disabled where there is no further frame."""
    pressed = ipywidgets.Button(description=words)

    def move(_: object) -> None:
        slider.index = min(max(slider.index + by, 0), len(slider.options) - 1)

    def update(_: object = None) -> None:
        pressed.disabled = not 0 <= slider.index + by < len(slider.options)

    pressed.on_click(move)
    slider.observe(update, names="index")
    update()
    return pressed
