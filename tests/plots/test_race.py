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


def test_each_place_has_the_loss_against_seconds_and_against_samples() -> None:
    figure = race.draw([("1gbe", [FAST, SLOW]), ("10gbe", [FAST])], source="simulated", title="a title")
    drawn = [[(list(line.get_xdata()), list(line.get_ydata())) for line in axes.get_lines()] for axes in figure.axes]
    of = {run.label: (list(run.seconds), list(run.samples), list(run.loss)) for run in (FAST, SLOW)}
    timed = {name: (seconds, loss) for name, (seconds, _, loss) in of.items()}
    counted = {name: (samples, loss) for name, (_, samples, loss) in of.items()}
    assert drawn == [
        [timed["fast"], timed["slow"]],
        [timed["fast"]],
        [counted["fast"], counted["slow"]],
        [counted["fast"]],
    ]
    assert [axes.get_title("left") for axes in figure.axes] == ["1gbe", "10gbe", "", ""]
    assert [axes.get_xlabel() for axes in figure.axes] == ["time (s)"] * 2 + ["samples, all nodes"] * 2
    assert figure.get_supxlabel() == "simulated"


def test_all_panels_have_the_same_scale_of_loss_and_those_of_time_the_same_scale_of_time() -> None:
    figure = race.draw([("1gbe", [SLOW]), ("10gbe", [FAST])], source="simulated")
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
    assert figure.axes[2].get_xlim() == figure.axes[3].get_xlim()
    assert {axes.get_yscale() for axes in figure.axes} == {"log"}


def test_a_run_that_ended_early_is_named_with_how_it_ended() -> None:
    figure = race.draw([("1gbe", [FAST, LOST])], source="measured")
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["fast", "lost (diverged in epoch 1)"]


@pytest.mark.filterwarnings("error")
def test_where_no_run_has_an_epoch_there_is_a_picture_all_the_same() -> None:
    figure = race.draw([("1gbe", [LOST])], source="measured")
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_runs_look_alike_in_all_panels_and_unlike_each_other() -> None:
    many = [Run(str(number), [1, 2], [1, 2], [1, 2]) for number in range(12)]
    figure = race.draw([("a", many), ("b", many)], source="simulated")
    looks = [[(line.get_color(), line.get_marker()) for line in axes.get_lines()] for axes in figure.axes]
    assert looks[0] == looks[1] == looks[2] == looks[3]
    assert len(set(looks[0])) == 12


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


@pytest.mark.parametrize("label", ["synchronous", "W" * 60, "synchronous:compressor=ef(top_k(0.01)),lr=0.05" * 2])
def test_legend_and_title_of_one_network_and_three_strategies_are_inside_the_figure(label: str) -> None:
    runs = [Run(f"{label}{i}", [0.1, 0.2], [100, 200], [1.0, 0.5]) for i in range(3)]
    figure = race.draw([("1gbe", runs)], source="simulated", title="M" * 200)
    figure.draw_without_rendering()
    for artist in (figure.legends[0], figure._suptitle, *figure.legends[0].legend_handles):  # type: ignore[attr-defined]
        box = artist.get_window_extent()
        assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1


def test_titles_and_labels_that_are_long_stay_within_the_figure() -> None:
    name = "synchronous:lr=0.2,momentum=0.9,compressor=ef(quantized_all_reduce(half(bf16)))," + 8 * "and_more=1,"
    runs = [Run(f"{i}{name[:60]}", [0.1, 0.2], [100, 200], [1.0, 0.5]) for i in range(2)] + [
        Run(name, [0.1], [100], [0.9])
    ]
    figure = race.draw([("1gbe", runs)], source="simulated", title=f"{'words of usual width, ' * 8}\n{name}")
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]  # that of Agg has one
    for artist in (*figure.legends, *figure.texts, figure._suptitle):  # type: ignore[attr-defined]
        box = artist.get_window_extent(renderer)
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.width


def test_the_panels_keep_their_height_beside_a_title_of_many_lines_and_a_legend_of_many_runs() -> None:
    few = race.draw([("1gbe", [FAST])], source="simulated", title="a title")
    many = race.draw(
        [("1gbe", [Run(f"run {i} of a strategy with settings", [0.1], [10], [1.0 + i]) for i in range(30)])],
        source="simulated",
        title="\n".join(map(str, range(10))),
    )
    heights = []
    for figure in (few, many):
        figure.canvas.draw()
        heights.append(figure.axes[0].bbox.height)
    assert 0.7 < heights[1] / heights[0] < 1.4


def test_a_note_of_one_place_alone_names_the_place() -> None:
    lost = Run("fast", [], [], [], "diverged in epoch 1")
    figure = race.draw([("1gbe", [FAST]), ("nvlink", [lost])], source="simulated")
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["fast (nvlink: diverged in epoch 1)"]


def test_names_with_underscores_and_dollars_are_in_the_legend_as_they_are() -> None:
    runs = [Run(name, [0.1, 0.2], [100, 200], [1.0, 0.5]) for name in ("_mine", "a$b$", "other")]
    figure = race.draw([("1gbe", runs)], source="simulated", title="costs $1 or $2")
    figure.draw_without_rendering()
    legend = figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["_mine", r"a\$b\$", "other"]
    lines = [line for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 2]
    assert [line.get_color() for line in legend.get_lines()] == [line.get_color() for line in lines]


def test_headings_of_columns_are_as_narrow_as_their_column() -> None:
    runs = [Run("a", [0.1, 0.2], [100, 200], [1.0, 0.5])]
    figure = race.draw([(f"networks/of_a_long_name_{i}_of_a_cluster.json", runs) for i in range(4)], source="simulated")
    figure.draw_without_rendering()
    boxes = [axes.title.get_window_extent() for axes in figure.axes[:4]] + [
        axes._left_title.get_window_extent() for axes in figure.axes[:4]
    ]
    boxes = [box for box in boxes if box.width > 1]
    assert len(boxes) == 4
    for left, right in pairwise(boxes):
        assert left.x1 <= right.x0
    assert boxes[-1].x1 <= figure.bbox.x1
