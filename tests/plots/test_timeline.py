"""The Gantt picture shows every activity in its colour, whatever the number of ranks."""

import io
from itertools import pairwise

import numpy as np
import pytest
from matplotlib import colors, image
from matplotlib.collections import LineCollection
from matplotlib.text import Text

from minidl import cluster
from minidl.plots import style, timeline
from minidl.plots.bars import Bar

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


def assert_areas(picture: np.ndarray, rel: float = 0.08, **seconds: float) -> None:
    """Each colour's area in proportion to the time, that of waiting being `wait`."""
    one = area(picture, style.ACTIVITY["wait"]) / seconds["wait"]
    for kind, expected in seconds.items():
        assert area(picture, style.ACTIVITY[kind]) / one == pytest.approx(expected, rel=rel), kind


def test_every_activity_has_the_area_of_its_time() -> None:
    picture = pixels(timeline.draw(ROWS, ranks=2, source="measured"))
    assert_areas(picture, compute=1.5, wait=1.0, send=0.5, receive=0.5, reduce=0.5)


def test_names_of_ranks_stay_apart_from_1_to_64() -> None:
    for ranks in (1, 17, 64):
        figure = timeline.draw([(r, "compute", 0.0, 1.0, "") for r in range(ranks)], ranks=ranks, source="simulated")
        figure.draw_without_rendering()
        boxes = sorted((label.get_window_extent() for label in figure.axes[0].get_yticklabels()), key=lambda b: b.y0)
        assert len(boxes) >= min(ranks, 16)
        assert all(lower.y1 <= upper.y0 for lower, upper in pairwise(boxes))


def test_the_time_axis_has_a_unit_that_fits_and_the_caption_says_where_the_numbers_come_from() -> None:
    for end, unit in ((3.0, "s"), (0.3, "ms"), (0.0003, "µs")):
        figure = timeline.draw([(0, "compute", 0.0, end, "")], ranks=1, source="simulated", note="3 events are lost")
        assert figure.axes[0].get_xlabel() == f"time ({unit})"
        assert figure.get_supxlabel() == "simulated; 3 events are lost"
    with pytest.raises(ValueError, match="source must be 'measured', 'simulated' or 'formula'"):
        timeline.draw(ROWS, ranks=2, source="guessed")


def test_where_bars_are_too_many_the_areas_stay_true() -> None:
    """30,000 bars, 50 a column: a plain drawing would mix them into colours that mean nothing."""
    edges = np.linspace(0.0, 1.0, 30_001)
    kinds = ["compute", "wait", "wait", "reduce", "compute"] * 6000
    rows = [(0, kind, a, b, "") for kind, a, b in zip(kinds, edges, edges[1:], strict=False)]
    figure = timeline.draw(rows, ranks=1, source="measured")
    assert_areas(pixels(figure), compute=0.4, reduce=0.2, wait=0.4)
    assert "stacked by their share" in figure.get_supxlabel()


def exchange(start: float, end: float, message: int, to: int = 1, lane: int = 0) -> list[Bar]:
    return [
        Bar(0, "send", start, end, f"to {to}\n4 KB", lane, "upper", ("there", message)),
        Bar(0, "receive", start, end, f"from {to}\n4 KB", lane, "lower", ("back", message)),
    ]


def rows_of(picture: np.ndarray, kind: str) -> np.ndarray:
    """The pixel rows in which that colour is, below the legend; some pixels at the edges of letters have it, too."""
    wanted = np.array(colors.to_rgb(style.ACTIVITY[kind])) * 255
    return np.nonzero((np.abs(picture[60:] - wanted) <= 1).all(-1).sum(axis=1) > 20)[0]


def test_of_an_exchange_the_send_lies_above_the_receive_and_each_has_half_the_bar() -> None:
    whole = rows_of(pixels(timeline.draw([(0, "send", 0.0, 1.0, "")], ranks=1, source="measured")), "send")
    picture = pixels(timeline.draw(exchange(0.0, 1.0, 0), ranks=1, source="measured"))
    above, below = rows_of(picture, "send"), rows_of(picture, "receive")
    assert above.max() < below.min()
    for half in (above, below):  # edges are drawn wider before matplotlib 3.11
        assert len(half) == pytest.approx(len(whole) / 2, abs=2.5)


def test_where_exchanges_are_too_many_sends_still_lie_above_receives_with_half_the_area_each() -> None:
    rows: list[timeline.Row] = []
    for k in range(1200):  # two in each column
        rows += [*exchange(2 * k, 2 * k + 1, k), (0, "wait", 2 * k + 1, 2 * k + 2, "")]
    figure = timeline.draw(rows, ranks=1, source="measured")
    picture = pixels(figure)
    assert "stacked by their share" in figure.get_supxlabel()
    assert_areas(picture, send=0.5, receive=0.5, wait=1.0, rel=0.1)
    assert rows_of(picture, "wait").mean() < rows_of(picture, "send").mean() < rows_of(picture, "receive").mean()
    assert lines_of(figure) == []
    assert not figure.axes[0].texts


def gaps(*rows: timeline.Row) -> list[float]:
    """Where the white lines between messages are, from left to right, with a wait at the end."""
    figure = timeline.draw([*rows, (0, "wait", 9.0, 10.0, "")], ranks=1, source="simulated")
    return lines_of(figure)


def lines_of(figure: object) -> list[float]:
    lines = next(one for one in figure.axes[0].collections if isinstance(one, LineCollection))  # type: ignore[attr-defined]
    return sorted(float(line[0, 0]) for line in lines.get_segments())


def test_messages_that_follow_each_other_are_told_apart_where_there_is_room() -> None:
    def sends(*spans: tuple[float, float, int]) -> list[float]:
        return gaps(*(Bar(0, "send", start, end, "", message=message) for start, end, message in spans))

    assert sends((0.0, 2.0, 1), (2.0, 4.0, 2), (4.0, 6.0, 3)) == [2.0, 4.0]
    assert sends((0.0, 2.0, 1), (2.0, 4.0, 1)) == []  # one message in two parts
    assert sends((0.0, 2.0, 1), (3.0, 4.0, 2)) == []  # something else lies between
    assert sends((0.0, 2.0, 1), (2.0, 2.01, 2)) == []  # no room
    assert gaps(*exchange(0.0, 1.0, 1), *exchange(1.0, 2.0, 2)) == [1.0, 1.0]


def test_bars_of_different_labels_that_follow_each_other_have_a_line_between_them() -> None:
    def lines(*spans: tuple[str, float, float, str]) -> list[float]:
        return gaps(*((0, *span) for span in spans))

    assert lines(("compute", 0, 1, "forward"), ("compute", 1, 3, "backward"), ("compute", 3, 4, "update")) == [1, 3]
    assert lines(("compute", 0, 1, "forward"), ("compute", 1, 3, "forward")) == []  # one piece of work in two calls
    assert lines(("compute", 0, 1, "forward"), ("compute", 2, 3, "backward")) == []  # something else lies between
    assert lines(("compute", 0, 1, "forward"), ("reduce", 1, 2, "backward")) == []  # the colours tell them apart
    assert lines(("compute", 0, 1, "F"), ("compute", 1, 1.01, "tiny"), ("compute", 1.01, 2, "B")) == [1.01]
    run = cluster.launch(step, nodes=2, on="simulation")
    assert lines_of(run.trace.plot()) == [pytest.approx(2.0)] * 2  # milliseconds, on each rank


def step(comm: cluster.Communicator) -> None:
    comm.compute(seconds=2e-3, label="forward")
    comm.compute(seconds=4e-3, label="backward")


def test_a_message_says_whom_it_goes_to_and_its_bytes_as_far_as_there_is_room() -> None:
    def texts(rows: list[timeline.Row], ranks: int = 1) -> list[str]:
        figure = timeline.draw([*rows, (0, "wait", 9.0, 10.0, "")], ranks=ranks, source="simulated")
        return [text.get_text() for text in figure.axes[0].texts]

    def send(end: float) -> list[timeline.Row]:
        return [Bar(0, "send", 0.0, end, "to 3\n4 KB", message=1)]

    assert texts(send(5.0)) == ["to 3, 4 KB"]
    assert texts(send(0.5)) == ["to 3\n4 KB"]
    assert texts(send(0.1)) == []
    assert texts([*exchange(0.0, 5.0, 1)]) == ["to 1, 4 KB", "from 1, 4 KB"]
    assert texts([*exchange(0.0, 0.5, 1)]) == ["to 1", "from 1"]  # half a bar has no second line
    assert texts([*exchange(0.0, 5.0, 1, lane=1)]) == []
    assert texts([*exchange(0.0, 5.0, 1), (0, "send", 0.0, 1.0, "", 1)]) == []  # thinner bars, for what lies beside
    assert texts(send(5.0), ranks=17) == []
    assert texts([(0, "send", 0.0, 5.0, "forward")]) == []  # not known which message: its label is the program's mark


def test_the_letters_of_a_message_stay_inside_its_bar() -> None:
    """Rank 0 has 1 exchange, rank 1 has 2 of half the length, and so on: every label has its tightest bar."""
    rows: list[timeline.Row] = []
    for rank in range(16):
        for k, (start, end) in enumerate(pairwise(np.linspace(0.0, 1.0, rank + 2).tolist())):
            rows += [bar._replace(rank=rank) for bar in exchange(start, end, k, to=10 + k % 6)]
    figure = timeline.draw(rows, ranks=16, source="simulated", end=1.0)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    spans = {((bar[2] + bar[3]) / 2, bar[0]): bar[3] - bar[2] for bar in rows}
    assert len(axes.texts) > 80
    for text in axes.texts:
        box = text.get_window_extent().transformed(axes.transData.inverted())
        x, y = text.get_position()
        assert box.width <= spans[x / 1e3, round(y)] * 1e3
        assert abs(box.height) <= 0.42


def test_what_runs_beside_the_program_lies_below_its_bar() -> None:
    rows = [(0, "compute", 0.0, 1.0, ""), (0, "send", 0.0, 1.0, "", 1), (0, "reduce", 0.0, 1.0, "", 2)]
    picture = pixels(timeline.draw(rows, ranks=1, source="measured"))
    program, first, second = (rows_of(picture, kind) for kind in ("compute", "send", "reduce"))
    assert program.max() < first.min() <= first.max() < second.min()
    assert len(program) > 3 * len(first)


def test_a_fault_is_marked_and_in_the_legend_only_if_there_is_one() -> None:
    figure = timeline.draw([*ROWS, (1, "fault", 0.7, 0.7, "killed")], ranks=2, source="measured")
    assert "fault" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert "killed" in [text.get_text() for text in figure.axes[0].texts]
    assert area(pixels(figure)[60:], style.FAULT) > 20
    plain = timeline.draw(ROWS, ranks=2, source="measured")
    assert [text.get_text() for text in plain.legends[0].get_texts()] == list(style.ACTIVITY)
    rows = [(0, "compute", 0.0, 1.0, ""), (0, "reduce", 1.0, 1.0, ""), (0, "send", 1.0, 2.0, "")]
    legend = timeline.draw(rows, ranks=1, source="simulated").legends[0]  # of what is in the chart alone
    assert [text.get_text() for text in legend.get_texts()] == ["compute", "send"]
    assert timeline.draw([], ranks=2, source="measured").axes[0].get_ylim() == (1.6, -0.6)


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
    """A long title is broken into lines that fit the picture; a run that is cut off does not say how long it lasts."""
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
    cut = timeline.compare([timeline.Panel(ROWS, 2, "measured"), timeline.Panel(short, 1, "simulated")], end=1.3)
    assert [axes.get_title(loc="left") for axes in cut.axes] == ["measured", "simulated, 500 ms"]
    panel = timeline.Panel(ROWS, 2, "simulated", "all_reduce of 100 MB on " + "a/network/in/a/folder/" * 6 + "net.json")
    figure = timeline.compare([panel, panel])
    figure.draw_without_rendering()
    headings = [text for text in figure.findobj(Text) if "net.json" in text.get_text()]
    assert len(headings) == 2
    assert all(text.get_window_extent().x1 <= figure.bbox.x1 for text in headings)


def test_runs_with_axes_of_their_own_fill_the_width_each_in_its_unit_and_the_caption_says_so() -> None:
    runs = [[(0, "compute", 0.0, 3.7e-6, "")], [(0, "compute", 0.0, 0.41, "")]]
    panels = [timeline.Panel(rows, 1, "simulated") for rows in runs]
    for own_axes in (True, False):
        figure = timeline.compare(panels, own_axes=own_axes)
        figure.draw_without_rendering()
        ends = [axes.transData.inverted().transform(axes.bbox.max)[0] for axes in figure.axes]
        assert ends == pytest.approx([3.7, 410.0] if own_axes else [410.0, 410.0])
        assert [axes.get_xlabel() for axes in figure.axes] == ["time (µs)" if own_axes else "", "time (ms)"]
        assert ("each run has a time axis of its own" in figure.get_supxlabel()) == own_axes


def test_more_ranks_than_rows_have_no_borders_because_little_else_would_be_seen() -> None:
    for ranks, dark in ((timeline.MOST_ROWS, True), (256, False)):
        rows = [(rank, "send", 0.0, 1.0, "") for rank in range(ranks)]
        picture = pixels(timeline.draw(rows, ranks=ranks, source="simulated"))
        assert (area(picture[100:-150, 200:-100], "0.2") > 0) == dark


def test_bars_of_one_activity_that_touch_are_one_bar_with_its_label() -> None:
    layers = [(0, "compute", k / 64, (k + 1) / 64, "forward" if k < 32 else "backward") for k in range(64)]
    axes = timeline.draw(layers, ranks=1, source="simulated").axes[0]
    assert [text.get_text() for text in axes.texts] == ["forward", "backward"]
    assert [text.get_position()[0] for text in axes.texts] == pytest.approx([250, 750])  # ms
    assert [len(shapes.get_paths()) for shapes in axes.collections[:1]] == [2]


def test_stretches_of_one_activity_have_a_border_where_there_is_room() -> None:
    messages = [Bar(0, "send", k / 1000, (k + 1) / 1000, message=k) for k in range(500)]
    rows = [*messages, Bar(0, "wait", 0.5, 0.501), Bar(0, "wait", 0.6, 1.0)]
    borders = timeline.draw(rows, ranks=1, source="measured").axes[0].collections[-3]
    edges = [sorted({round(x, 6) for x, _ in path.vertices}) for path in borders.get_paths()]  # type: ignore[union-attr, misc]
    assert edges == [[0.0, 500.0], [600.0, 1000.0]]  # milliseconds


def test_the_activities_differ_in_lightness() -> None:
    def lightness(colour: str) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colors.to_rgb(colour)]
        luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        return 116 * luminance ** (1 / 3) - 16

    ladder = sorted(map(lightness, style.ACTIVITY.values()))
    assert min(np.diff(ladder)) > 10


def test_low_rows_make_a_low_picture_and_drop_the_letters_that_have_no_room() -> None:
    rows = [Bar(rank, "send", 0.0, 1.0, "to 1\n1 MB", half="upper", message=rank) for rank in range(8)]
    high, low = (timeline.compare([timeline.Panel(rows, 8, "simulated")], row_height=inches) for inches in (0.36, 0.17))
    assert low.get_figheight() == pytest.approx(high.get_figheight() - 8 * 0.19)
    assert [len(figure.axes[0].texts) for figure in (high, low)] == [8, 0]
