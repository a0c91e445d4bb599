"""A race: the numbers that were given, above against time and below against samples."""

from __future__ import annotations

from itertools import pairwise

import pytest
from matplotlib.colors import to_rgb

from minidl.plots import race
from minidl.plots.race import Run

FAST = Run("fast", [0.1, 0.2], [100, 200], [1.0, 0.5])
SLOW = Run("slow", [1.0, 2.0], [100, 200], [0.9, 0.4])
LOST = Run("lost", [], [], [], "diverged in epoch 1")


def test_each_place_has_the_loss_against_seconds_and_against_samples_on_the_same_scales() -> None:
    """A run that ended early is named with how it ended, and with the place if only there."""
    lost_here = Run("slow", [], [], [], "diverged in epoch 2")
    places = [("1gbe", [FAST, SLOW, LOST]), ("10gbe", [FAST, lost_here, LOST])]
    figure = race.draw(places, source="simulated", title="a title")
    drawn = [[(list(line.get_xdata()), list(line.get_ydata())) for line in axes.get_lines()] for axes in figure.axes]
    assert drawn == [
        [(getattr(run, x), run.loss) for run in runs] for x in ("seconds", "samples") for _, runs in places
    ]
    assert [axes.get_title("left") for axes in figure.axes] == ["1gbe", "10gbe", "", ""]
    assert [axes.get_xlabel() for axes in figure.axes] == ["time (s)"] * 2 + ["samples, all nodes"] * 2
    assert figure.get_supxlabel() == "simulated"
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    assert [len({axes.get_xlim() for axes in row}) for row in (figure.axes[:2], figure.axes[2:])] == [1, 1]
    assert {axes.get_yscale() for axes in figure.axes} == {"log"}
    labels = ["fast", "slow (10gbe: diverged in epoch 2)", "lost (diverged in epoch 1)"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == labels


@pytest.mark.filterwarnings("error")
def test_where_no_run_has_an_epoch_there_is_a_picture_all_the_same() -> None:
    figure = race.draw([("1gbe", [LOST])], source="measured")
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_runs_look_alike_in_all_panels_and_unlike_each_other_and_have_their_names_in_the_legend() -> None:
    many = [Run(name, [1, 2], [1, 2], [1, 2]) for name in ("_mine", "a$b$", *map(str, range(10)))]
    figure = race.draw([("a", many)], source="simulated", title="costs $1 or $2")
    figure.draw_without_rendering()
    looks = [[(line.get_color(), line.get_marker()) for line in axes.get_lines()] for axes in figure.axes]
    assert looks[0] == looks[1]
    assert len(set(looks[0])) == 12
    legend = figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["_mine", r"a\$b\$", *map(str, range(10))]
    assert [line.get_color() for line in legend.get_lines()] == [colour for colour, _ in looks[0]]


def test_error_bars_have_the_colour_of_their_line_and_fit_into_the_panel() -> None:
    run = Run("mean", [0.1, 0.2], [100, 200], [1.0, 0.5], band=([0.5, 0.1], [2.0, 9.0]))
    figure = race.draw([("1gbe", [SLOW, run])], source="simulated")
    for axes in figure.axes:
        (bars,) = axes.collections
        ends = [end for path in bars.get_paths() for end in path.vertices[:, 1]]
        assert ends == pytest.approx([0.5, 2.0, 0.1, 9.0])
        (line,) = (line for line in axes.get_lines() if line.get_label() == "mean")
        assert tuple(bars.get_edgecolor()[0][:3]) == to_rgb(line.get_color())
        assert axes.get_ylim()[0] < 0.1
        assert axes.get_ylim()[1] > 9.0


def test_legend_and_title_stay_inside_the_figure_and_leave_the_panels_their_height_however_long_they_are() -> None:
    name = "synchronous:lr=0.2,momentum=0.9,compressor=ef(quantized_all_reduce(half(bf16)))," + 8 * "and_more=1,"
    many = f"{'words of usual width, ' * 8}\n{name}\n" + "\n".join(map(str, range(8)))
    heights = []
    for label, count, title in (("fast", 1, "M" * 200), ("run of a strategy with settings", 30, many), (name, 2, "")):
        runs = [Run(f"{label}{i}", [0.1, 0.2], [100, 200], [1.0, 0.5]) for i in range(count)]
        figure = race.draw([("1gbe", runs)], source="simulated", title=title)
        figure.draw_without_rendering()
        legend = figure.legends[0]
        for artist in (legend, *legend.legend_handles, *figure.texts):
            box = artist.get_window_extent()  # type: ignore[union-attr]
            assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1, label
            assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1, label
        heights.append(figure.axes[0].bbox.height)
    assert 0.7 < heights[1] / heights[0] < 1.4


def test_headings_of_columns_are_as_narrow_as_their_column() -> None:
    figure = race.draw([(f"networks/of_a_long_name_{i}_of_one.json", [FAST]) for i in range(3)], source="simulated")
    figure.draw_without_rendering()
    titles = [title for axes in figure.axes[:3] for title in (axes.title, axes._left_title)]  # type: ignore[attr-defined]
    boxes = [box for title in titles if (box := title.get_window_extent()).width > 1]
    assert len(boxes) == 3
    for left, right in pairwise(boxes):
        assert left.x1 <= right.x0
    assert boxes[-1].x1 <= figure.bbox.x1
