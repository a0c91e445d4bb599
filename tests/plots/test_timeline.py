"""The Gantt picture shows every activity in its colour, whatever the number of ranks."""

import io
from itertools import pairwise

import numpy as np
import pytest
from matplotlib import colors, image

from minidl.plots import style, timeline

ROWS = [
    (0, "compute", 0.0, 1.0, "forward"),
    (0, "wait", 1.0, 2.0, ""),
    (1, "compute", 0.0, 0.5, ""),
    (1, "send", 0.5, 1.0, ""),
    (1, "receive", 1.0, 1.5, ""),
    (1, "reduce", 1.5, 2.0, ""),
]


def pixels(figure: object) -> np.ndarray:
    data = io.BytesIO(figure._repr_png_())  # type: ignore[attr-defined]
    return (image.imread(data)[..., :3] * 255).round().astype(int)


def area(picture: np.ndarray, colour: str) -> int:
    wanted = np.array(colors.to_rgb(colour)) * 255
    return int((np.abs(picture - wanted).max(axis=-1) <= 1).sum())


def test_every_activity_has_the_area_of_its_time() -> None:
    picture = pixels(timeline.draw(ROWS, ranks=2, source="measured"))
    seconds = {"compute": 1.5, "wait": 1.0, "send": 0.5, "receive": 0.5, "reduce": 0.5}
    for kind, expected in seconds.items():
        share = area(picture, style.ACTIVITY[kind]) / area(picture, style.ACTIVITY["wait"])
        assert share == pytest.approx(expected, rel=0.08), kind


@pytest.mark.parametrize("ranks", [1, 2, 16, 64])
def test_names_of_ranks_stay_apart_from_1_to_64(ranks: int) -> None:
    figure = timeline.draw([(r, "compute", 0.0, 1.0, "") for r in range(ranks)], ranks=ranks, source="simulated")
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_yticklabels()]
    boxes.sort(key=lambda box: box.y0)
    assert len(boxes) >= min(ranks, 16)
    assert all(lower.y1 <= upper.y0 for lower, upper in pairwise(boxes))


@pytest.mark.parametrize(("end", "unit"), [(3.0, "s"), (0.3, "ms"), (0.0003, "µs")])
def test_the_time_axis_has_a_unit_that_fits(end: float, unit: str) -> None:
    figure = timeline.draw([(0, "compute", 0.0, end, "")], ranks=1, source="measured")
    assert figure.axes[0].get_xlabel() == f"time ({unit})"


def test_the_caption_says_where_the_numbers_come_from() -> None:
    figure = timeline.draw(ROWS, ranks=2, source="simulated", note="the last 3 events were not kept")
    assert figure.get_supxlabel() == "simulated; the last 3 events were not kept"
    with pytest.raises(ValueError, match="measured, simulated, formula"):
        timeline.draw(ROWS, ranks=2, source="guessed")


def test_an_empty_trace_is_an_empty_picture() -> None:
    assert timeline.draw([], ranks=2, source="measured").axes[0].get_ylim() == (1.6, -0.6)


def test_the_activities_differ_in_lightness() -> None:
    def lightness(colour: str) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colors.to_rgb(colour)]
        luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        return 116 * luminance ** (1 / 3) - 16

    ladder = sorted(map(lightness, style.ACTIVITY.values()))
    assert min(np.diff(ladder)) > 10
