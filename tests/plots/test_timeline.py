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


def test_where_bars_are_too_many_the_areas_stay_true() -> None:
    """30,000 bars, 50 a column: a plain drawing would mix them into colours that mean nothing."""
    edges = np.linspace(0.0, 1.0, 30_001)
    kinds = ["compute", "wait", "wait", "reduce", "compute"] * 6000
    rows = [(0, kind, a, b, "") for kind, a, b in zip(kinds, edges, edges[1:], strict=False)]
    figure = timeline.draw(rows, ranks=1, source="measured")
    picture = pixels(figure)
    for kind, share in {"compute": 0.4, "reduce": 0.2, "wait": 0.4}.items():
        found = area(picture, style.ACTIVITY[kind])
        assert found / area(picture, style.ACTIVITY["wait"]) == pytest.approx(share / 0.4, rel=0.08), kind
    assert "stacked by their share" in figure.get_supxlabel()


def test_what_runs_beside_the_program_lies_below_its_bar() -> None:
    rows = [(0, "compute", 0.0, 1.0, ""), (0, "send", 0.0, 1.0, "", 1), (0, "reduce", 0.0, 1.0, "", 2)]
    picture = pixels(timeline.draw(rows, ranks=1, source="measured"))[60:]  # without the legend
    height = {
        kind: np.mean(
            np.nonzero((np.abs(picture - np.array(colors.to_rgb(style.ACTIVITY[kind])) * 255) <= 1).all(-1))[0]
        )
        for kind in ("compute", "send", "reduce")
    }
    assert height["compute"] < height["send"] < height["reduce"]
    assert area(picture, style.ACTIVITY["compute"]) > 3 * area(picture, style.ACTIVITY["send"])


def test_a_fault_is_marked_and_in_the_legend_only_if_there_is_one() -> None:
    figure = timeline.draw([*ROWS, (1, "fault", 0.7, 0.7, "killed")], ranks=2, source="measured")
    assert "fault" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert "killed" in [text.get_text() for text in figure.axes[0].texts]
    assert area(pixels(figure)[60:], style.FAULT) > 20
    plain = timeline.draw(ROWS, ranks=2, source="measured")
    assert [text.get_text() for text in plain.legends[0].get_texts()] == list(style.ACTIVITY)


def test_an_outline_goes_round_spans_that_follow_each_other_and_joins_the_ranks() -> None:
    spans = [(0, 0, 0.0, 0.5), (0, 0, 0.5, 1.0), (1, 0, 1.0, 1.5)]
    figure = timeline.draw(ROWS, ranks=2, source="measured", outline=spans)
    lines = figure.axes[0].collections[-1].get_segments()  # type: ignore[attr-defined]
    assert len(lines) == 3  # two frames and the line between them
    (left, right), joint = (sorted({x for x, _ in lines[0].tolist()})), lines[2]
    assert (left, right) == (0.0, 1.0)
    assert set(joint[:, 0].tolist()) == {1.0}
    assert "critical path" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_runs_one_above_the_other_share_their_scale_and_each_says_what_it_is() -> None:
    short = [(0, "compute", 0.0, 0.5, "")]
    figure = timeline.compare(
        [timeline.Panel(ROWS, 2, "measured", "processes"), timeline.Panel(short, 1, "simulated", note="a note")]
    )
    upper, lower = figure.axes
    assert upper.get_xlim() == lower.get_xlim() == (0.0, 2.0)
    assert upper.get_title(loc="left") == "measured: processes, 2 s"
    assert lower.get_title(loc="left") == "simulated, 0.5 s, a note"
    assert (upper.get_xlabel(), lower.get_xlabel()) == ("", "time (s)")
    assert figure.get_supxlabel() == "measured and simulated"


def test_an_empty_trace_is_an_empty_picture() -> None:
    assert timeline.draw([], ranks=2, source="measured").axes[0].get_ylim() == (1.6, -0.6)


def test_the_activities_differ_in_lightness() -> None:
    def lightness(colour: str) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colors.to_rgb(colour)]
        luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        return 116 * luminance ** (1 / 3) - 16

    ladder = sorted(map(lightness, style.ACTIVITY.values()))
    assert min(np.diff(ladder)) > 10
