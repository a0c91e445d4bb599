"""A timeline's numbers, its text and its picture say the same."""

from __future__ import annotations

import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from minidl.parallel import pipeline

CASES = [("1f1b", 4, 8), ("gpipe", 3, 5), ("interleaved", 2, 4), ("zb-h1", 4, 6), ("zb-v", 3, 5), ("pipedream", 3, 4)]


def test_the_text_has_a_column_for_each_unit_of_time():
    times = pipeline.Times(forward=1, input=1, weight=1)
    assert str(pipeline.simulate(pipeline.GPipe(stages=2, micro_batches=2), times)).splitlines() == [
        "stage 0: F0 F1 .  .  .  B0--- B1---",
        "stage 1: .  F0 F1 B0--- B1--- .  .",
    ]


def test_the_text_has_every_timed_action_once_in_its_order_whatever_the_times_are():
    for kind, stages, micro_batches in CASES:
        schedule = pipeline.schedule(kind, stages, micro_batches)
        for forward in (1.0, 1.1, 2.5, 0.7, 0.0131):  # the last one is shorter than a 200th of the whole
            times = pipeline.Times(forward=[forward] + [1.0] * (schedule.chunks - 1), input=1, weight=1)
            for stage, line in enumerate(str(pipeline.simulate(schedule, times)).splitlines()):
                words = [word.rstrip("-") for word in line.split()[2:] if word != "."]
                assert words == [schedule.text(action) for action in schedule.actions(stage) if action.kind != "U"]


@pytest.mark.parametrize(("kind", "stages", "micro_batches"), [("1f1b", 4, 8), ("zb-v", 3, 5)])
def test_the_picture_has_a_box_with_its_number_for_each_action_at_its_time(kind, stages, micro_batches):
    timeline = pipeline.simulate(pipeline.schedule(kind, stages, micro_batches))
    rows, *_ = timeline.plot().axes
    *idle, boxes = [each for each in rows.collections if isinstance(each, PolyCollection)]
    assert len(idle) == stages
    timed = [bar for bar in timeline.bars if bar.end > bar.start]
    found = [(*path.get_extents().intervalx, path.get_extents().intervaly.mean()) for path in boxes.get_paths()]
    assert found == [pytest.approx((bar.start, bar.end, bar.stage)) for bar in timed]
    assert [text.get_text() for text in rows.texts] == [str(bar.action.micro_batch) for bar in timed]


def test_the_memory_curve_ends_at_nothing_and_peaks_at_the_ledgers_number():
    for kind, stages, micro_batches in CASES:
        schedule = pipeline.schedule(kind, stages, micro_batches)
        timeline = pipeline.simulate(schedule)
        for stage, most in enumerate(pipeline.peak_memory(schedule, 1.0, 0.5)):
            curve = timeline.kept(stage, 1.0, 0.5)
            assert curve[-1][1] == pytest.approx(0)
            assert max(value for _, value in curve) == pytest.approx(most)
            assert [moment for moment, _ in curve] == sorted({moment for moment, _ in curve})


def test_the_title_has_the_bubble_of_all_and_of_the_ideal_time():
    titles = [pipeline.simulate(each).title for each in (pipeline.GPipe(4, 8), pipeline.Naive(16, 2))]
    assert titles[0] == "gpipe: idle 27.3 % of the total time, 37.5 % of the ideal time"
    assert titles[1] == "naive: idle 93.8 % of the total time, 1500 % of the ideal time"


def test_a_row_is_grey_only_where_the_title_counts_the_stage_as_idle():
    for kind, stages, micro_batches in CASES:
        timeline = pipeline.simulate(
            pipeline.schedule(kind, stages, micro_batches), pipeline.Times(forward=1.1, input=1.1, weight=1.1)
        )
        grey = [each for each in timeline.plot().axes[0].collections if isinstance(each, PolyCollection)][:stages]
        rows = [tuple(each.get_paths()[0].get_extents().intervalx) for each in grey]
        idle = [end - start - timeline.busy(stage) for stage, (start, end) in enumerate(rows)]
        assert max(idle) == pytest.approx(timeline.bubble_of_total * timeline.seconds), kind
        assert all(start < timeline.of(stage)[0].start + 1e-9 for stage, (start, _) in enumerate(rows))


def test_where_backward_is_cut_in_two_the_picture_counts_the_activations_and_what_the_weight_gradient_needs():
    figure = pipeline.simulate(pipeline.ZeroBubbleH2(4, 8)).plot()
    _, until_inputs, until_weights = figure.axes
    peaks = [[line.get_ydata().max() for line in axes.get_lines()] for axes in (until_inputs, until_weights)]
    assert peaks == [[7, 5, 3, 1], [7, 7, 7, 7]]
    assert [axes.get_ylabel() for axes in (until_inputs, until_weights)] == [
        "micro-batches\nkept, F to I",
        "micro-batches\nkept, F to W",
    ]


def test_a_small_picture_has_a_legend_of_the_actions_that_it_shows():
    for kind, actions in (
        ("1f1b", ["forward", "backward"]),
        ("zb-h1", ["forward", "backward for the inputs", "backward for the weights"]),
    ):
        axes = Figure().subplots()
        pipeline.simulate(pipeline.schedule(kind, 4, 8)).draw_on(axes)
        assert [text.get_text() for text in axes.get_legend().get_texts()] == [*actions, "idle"]


def test_updates_between_backwards_are_no_waiting():
    """A stage of PipeDream updates after each backward; the last stage of one alone never waits."""
    timeline = pipeline.simulate(pipeline.PipeDream(1, 4), pipeline.Times(update=2))
    assert (timeline.span(0), timeline.busy(0), timeline.idle(0), timeline.bubble_of_total) == (18, 18, 0, 0)


def test_several_timelines_share_one_time_axis():
    timelines = [pipeline.simulate(pipeline.schedule(kind, 4, 8)) for kind in ("naive", "zb-h2")]
    first, second = pipeline.plot_timelines(timelines, titles=["one at a time", "no bubble"]).axes
    assert first.get_xlim() == second.get_xlim() == (0, 96)
    assert [axes.get_title(loc="left") for axes in (first, second)] == ["one at a time", "no bubble"]
    assert len(pipeline.plot_timelines(timelines, memory=True).axes) == 5
    other = pipeline.Timeline(timelines[0].schedule, timelines[0].bars, source="measured", unit="s")
    with pytest.raises(ValueError, match=r"^panels on one time axis have one unit of time, got s and units$"):
        pipeline.plot_timelines([timelines[0], other])
    for draw in (pipeline.plot_timelines, pipeline.play_timelines):
        with pytest.raises(ValueError, match=r"^a title for each of the 2 timelines, got 1: \['alone'\]$"):
            draw(timelines, ["alone"])
    assert [run.title for run in pipeline.play_timelines(timelines, ["first", "second"]).runs] == ["first", "second"]
