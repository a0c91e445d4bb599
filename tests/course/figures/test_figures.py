"""The pictures of the lectures show what was computed, and say where it comes from."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from course.figures import (
    buckets,
    core_timeline,
    gathered_units,
    image_tiles,
    machine_traffic,
    memory_bars,
    page,
    task_graph,
    two_tiers,
    ways_to_train,
)
from course.figures.decision_map import SIDE, draw
from course.figures.greedy_schedule import Pieces, greedy_schedule
from course.figures.histograms import Histogram, histograms
from course.figures.live_memory import LiveMemory
from course.figures.neighbours import draw_exchange, on_circle, on_grid
from course.figures.parameter_server import draw as draw_servers
from course.figures.rank_grid import draw_broadcasts, draw_groups
from course.figures.time_shares import time_shares
from course.figures.waiting import Run, waiting
from course.figures.who_has_what import coded, decoded, step_by_step, table
from minidl.cluster import Memory, Phantom, Simulation, launch
from minidl.mini import cluster
from minidl.parallel import mixing
from minidl.plots import style
from minidl.tensor.dependency_graph import Task

CASES = [Histogram("equal", {7: 4}), Histogram("random", {0: 3, 2: 1}, {0: 0.5, 1: 0.25})]


def test_computing_and_waiting_add_up_to_the_time_of_the_run():
    [axes] = waiting([Run("lockstep", [1.0, 2.5], 4.0)], source="simulated", columns=1).axes
    spans = sorted((bar.get_y(), bar.get_x(), bar.get_width()) for bar in axes.patches)
    assert [(start, width) for _, start, width in spans] == [(0, 1.0), (1.0, 3.0), (0, 2.5), (2.5, 1.5)]


def test_worker_0_is_the_uppermost_one_and_unused_axes_are_hidden():
    figure = waiting([Run("one", [1.0], 1.0), Run("two", [1.0], 2.0)], source="simulated")
    assert all(axes.yaxis_inverted() for axes in figure.axes[:2])
    assert [axes.get_visible() for axes in figure.axes] == [True, True, False]


def test_a_bucket_fills_until_its_all_reduce_starts_and_nothing_is_drawn_beyond_the_moment():
    def step(comm):
        works = []
        for _ in range(2):
            comm.compute(seconds=4e-3)
            works.append(comm.all_reduce(Phantom(1_000_000), algorithm="ring", async_op=True))
        for work in works:
            work.wait()

    trace = launch(step, nodes=2, on="simulation", network="10gbe").trace
    first, second = rows = buckets.buckets(trace, [2e-3, 4e-3, 6e-3, 8e-3])
    assert (first.final, second.final) == ([2e-3, 4e-3], [6e-3, 8e-3])
    assert [first.start, second.start] == pytest.approx([4e-3, 8e-3])
    assert first.end < second.start < second.end
    _, [axes] = style.new_figure(4.0, 2.0)
    buckets.draw(axes, rows, forward=1e-3, moment=7e-3)
    drawn = {to_hex(bars.get_facecolor()[0]) for bars in axes.collections}
    ends = [vertices[:, 0].max() for bars in axes.collections for vertices in (bars.get_paths()[0].vertices,)]
    assert drawn == {style.ACTIVITY["compute"].lower(), buckets.WAITING.lower(), style.ACTIVITY["send"].lower()}
    assert max(ends) == pytest.approx(7.0)


def test_a_unit_has_weights_from_the_start_of_their_gathering_to_the_end_of_its_computation():
    def step(comm):
        def gathering():
            return comm.all_gather(Phantom(1_000_000), async_op=True)

        arriving = gathering()  # 0.8 ms and the latency
        for unit, seconds in ((0, 3e-3), (1, 2e-3), (1, 4e-3), (0, 6e-3)):
            arriving.wait()
            arriving = gathering() if (unit, seconds) != (0, 6e-3) else None
            comm.compute(seconds=seconds, label=f"unit {unit}")
            if seconds > 3e-3:
                comm.reduce_scatter(Phantom(2_000_000))

    trace = launch(step, nodes=2, on="simulation", network="10gbe").trace
    _, [axes] = style.new_figure(8.0, 2.0)
    gathered_units.draw(axes, trace, units=2)
    rows = [[] for _ in gathered_units.ROWS]
    for text in axes.texts:
        rows[int(text.get_position()[1])].append(text.get_text())
    assert rows == [["0", "1", "1", "0"], ["0", "1", "1", "0"], ["1", "0"], []]
    here = [bars.get_paths()[0].get_extents() for bars in axes.collections]
    here = [box for box in here if box.y1 > 3]
    latency = here[0].x1 - 0.8
    assert 0 < latency < 0.1
    assert [(box.x0 - latency, box.x1 - latency) for box in here][1:4] == [
        pytest.approx(span) for span in ((0.8, 3.8), (3.8, 5.8), (5.8, 9.8))
    ]
    assert [round(box.height / gathered_units.BAR, 9) for box in here] == [0.5, 1.0, 1.0, 1.0, 0.5]


def test_transfers_and_updates_of_a_host_are_drawn_in_rows_of_their_own():
    def step(comm):
        up, down = comm.split(0), comm.split(0)
        arriving = up.background(lambda inside: inside.device.fetch(np.ones(700, np.float32)))  # 2.8 ms
        comm.mark("forward")
        comm.compute(seconds=0.0013)
        arriving.wait()
        comm.mark("backward")
        comm.compute(seconds=0.0037)

        def on_host(inside):
            inside.device.send_back(np.ones(300, np.float32))
            inside.mark("update")
            with inside.device.on_host():
                inside.compute(seconds=0.0007)

        down.background(on_host).wait()

    trace = launch(step, nodes=1, on=Simulation(memory=Memory(link=(0.0, 1e6)))).trace
    spans = two_tiers.spans_of(trace, 0.0005, 0.0081)
    assert sorted((kind, round(start * 1e4), round(stop * 1e4)) for kind, start, stop, _ in spans) == [
        ("backward", 23, 60), ("fetch", 0, 23), ("forward", 0, 8), ("send back", 60, 72), ("update", 72, 76),
    ]  # fmt: skip
    _, [axes] = style.new_figure(8.0, 2.0)
    two_tiers.draw(axes, spans)
    boxes = [bars.get_paths()[0].get_extents() for bars in axes.collections]
    assert [(round(box.x0, 1), round(box.x1, 1), int(box.y0)) for box in boxes] == [
        (0, 0.8, 0), (2.3, 6.0, 0), (0, 2.3, 1), (6.0, 7.2, 2), (7.2, 7.6, 3),
    ]  # fmt: skip
    assert axes.get_xlabel() == "time (ms)"


def test_bars_are_the_shares_in_percent():
    figure = histograms(CASES, xlabel="staleness", ylabel="share (%)", source="simulated")
    heights = [[(bar.get_center()[0], bar.get_height()) for bar in axes.patches] for axes in figure.axes]
    assert heights == [[(7.0, 100.0)], [(0.0, 75.0), (2.0, 25.0)]]
    assert figure.get_supxlabel() == "simulated"


def test_points_are_the_formulas_shares_in_percent():
    first, second = histograms(CASES, xlabel="staleness", ylabel="share (%)", source="formula").axes
    assert len(first.get_lines()) == 0
    assert second.get_lines()[0].get_xydata().tolist() == [[0, 50], [1, 25]]


def test_the_shares_of_each_program_add_up_to_its_time():
    times = {"queue": (10.0, (0.5, 0.2, 0.3)), "tree": (4.0, (1.0, 0.0, 0.0))}
    [axes] = time_shares(times, xlabel="time (ms)", title="two programs", source="simulated").axes
    spans = [(round(bar.get_x(), 9), round(bar.get_width(), 9)) for bar in axes.patches]
    assert spans[::2] == [(0, 5.0), (5.0, 2.0), (7.0, 3.0)]
    assert spans[1::2] == [(0, 4.0), (4.0, 0), (4.0, 0)]


def test_the_first_program_is_the_uppermost_one():
    times = {"first": (1.0, (1.0, 0.0, 0.0)), "second": (1.0, (1.0, 0.0, 0.0))}
    [axes] = time_shares(times, xlabel="", title="", source="simulated").axes
    assert axes.yaxis_inverted()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["first", "second"]


CORNERS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.float64)
XOR = np.array([0, 1, 1, 0])


def test_every_classifier_is_asked_all_over_the_plane_and_has_a_map():
    asked = []

    def line(points):
        asked.append(points)
        return points.sum(axis=1) > 0.5

    figure = draw({"one": line, "two": lambda points: np.zeros(len(points))}, CORNERS, XOR)
    [points] = asked
    assert points.shape == (SIDE * SIDE, 2)
    assert points.dtype == np.float32
    assert np.allclose([points.min(axis=0), points.max(axis=0)], [[-0.4, -0.4], [1.4, 1.4]])
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["one", "two"]
    assert figure.get_supxlabel() == "measured; tinted: answered 1"


def test_the_tint_lies_where_the_answer_is_1():
    def upper_left(points):
        return (points[:, 0] < 0.5) & (points[:, 1] > 0.5)

    axes = draw({"one": upper_left}, CORNERS, XOR).axes[0]
    tinted = axes.collections[-1].get_paths()[1]  # the second of the two levels
    assert [bool(tinted.contains_point(corner)) for corner in CORNERS] == [False, True, False, False]


def test_the_corners_carry_the_classes_that_they_should_have():
    drawn = draw({"one": lambda points: np.ones(len(points))}, CORNERS, XOR).axes[0].get_lines()
    assert [line.get_label() for line in drawn] == ["should be 0", "should be 1"]
    assert [line.get_xydata().tolist() for line in drawn] == [[[0, 0], [1, 1]], [[0, 1], [1, 0]]]


def random_graph(seed: int) -> Pieces:
    """Forty pieces, each of which needs up to three earlier ones."""
    chance = random.Random(seed)
    needs = [chance.sample(range(i), min(i, chance.randrange(4))) for i in range(40)]
    return {str(i): (chance.choice((0.25, 1.0, 2.0)), [str(j) for j in needs[i]]) for i in range(40)}


def depth(pieces: Pieces, name: str) -> float:
    seconds, needs = pieces[name]
    return seconds + max((depth(pieces, need) for need in needs), default=0.0)


@pytest.mark.parametrize("machines", [1, 3, 64])
def test_a_greedy_schedule_respects_dependencies_machines_and_bounds(machines):
    for seed in range(4):
        pieces = random_graph(seed)
        schedule = greedy_schedule(pieces, machines)
        ends = {done.name: done.end for done in schedule}
        assert sorted(ends) == sorted(pieces)
        free = [0.0] * machines
        for done in schedule:
            seconds, needs = pieces[done.name]
            assert done.end == done.start + seconds
            assert all(ends[need] <= done.start for need in needs)
            assert free[done.machine] <= done.start
            free[done.machine] = done.end
        work, longest = sum(seconds for seconds, _ in pieces.values()), max(depth(pieces, name) for name in pieces)
        assert max(work / machines, longest) <= max(free) <= (work / machines + longest if machines > 1 else work)


def test_a_greedy_schedule_refuses_tasks_that_depend_on_each_other():
    with pytest.raises(ValueError, match="none of these can ever begin: a, b"):
        greedy_schedule({"a": (1.0, ["b"]), "b": (1.0, ["a"])}, 2)
    with pytest.raises(ValueError, match="at least one machine"):
        greedy_schedule({}, 0)


N = 100_000  # numbers: large beside what the interpreter itself makes


def test_live_memory_counts_an_array_until_it_is_freed():
    outside = np.ones(N)
    with LiveMemory(unit=8 * N) as memory:
        memory.note()
        first = outside + 1
        memory.note()
        second = outside + 2
        memory.note()
        del first
        memory.note()
        del outside
        memory.note()
    assert [round(note, 1) for note in memory.notes] == [0, 1, 2, 1, 1]
    assert memory.peak == pytest.approx(2, abs=0.05)
    assert second[0] == 3


def test_live_memory_stops_tracing_after_an_error():
    with pytest.raises(ZeroDivisionError), LiveMemory():
        _ = 1 / 0
    assert not tracemalloc.is_tracing()


def test_a_nested_live_memory_is_refused_and_the_outer_one_continues():
    with LiveMemory(unit=8 * N) as outer:
        with pytest.raises(RuntimeError, match="cannot stand inside another"):
            LiveMemory().__enter__()
        array = np.ones(N)
        outer.note()
    assert round(outer.notes[0]) == len(array) // N


@pytest.fixture
def shown(monkeypatch):
    """What was shown, in order."""
    found: list[object] = []
    monkeypatch.setattr(page, "display", lambda *things: found.extend(things))
    return found


def test_a_table_has_its_rows_and_says_where_they_come_from(shown):
    page.table(["rate", "loss"], [[0.5, "1.0"], [2, "**3**"]], "measured")
    [text] = shown
    assert DisplayFormatter().format(text)[0]["text/markdown"] == (
        "| rate | loss |\n| --- | --- |\n| 0.5 | 1.0 |\n| 2 | **3** |\n\n*measured*"
    )


def test_a_ragged_table_is_refused(shown):
    with pytest.raises(ValueError, match=r"2 columns, but 1 values in the row of 0\.5"):
        page.table(["rate", "loss"], [[0.5]], "measured")
    assert shown == []


def test_a_picture_is_followed_by_its_description(shown):
    page.see("the picture", "it falls.")  # type: ignore[arg-type]
    assert shown[0] == "the picture"
    assert shown[1].data == "*In words: it falls.*"  # type: ignore[attr-defined]


def test_a_description_that_begins_with_in_words_is_refused():
    with pytest.raises(ValueError, match="must not begin so itself"):
        page.in_words("In words: it rises.")


def test_memory_bars_add_up_and_end_at_the_memory_of_a_machine():
    [axes] = memory_bars.draw(["weights", "activations"], {"one": (3.0, 1.0)}, limit=8, source="formula").axes
    assert [(bar.get_x(), bar.get_width()) for bar in axes.patches] == [(0.0, 3.0), (3.0, 1.0)]
    assert list(axes.lines[0].get_xdata()) == [8, 8]


@pytest.mark.parametrize(
    ("place", "halo"), [((1, 1), 2 * 3 * 12 + 2 * 3 * (15 + 6)), ((0, 2), 3 * 12 + 2 * 3 * (15 + 3))]
)
def test_the_halo_of_a_tile_has_the_pixels_that_its_neighbours_send(place, halo):
    axes = Figure().subplots()
    image_tiles.draw(axes, 60, (4, 5), place, 3, "")
    areas = dict.fromkeys(map(to_hex, (style.SERIES[0], style.SERIES[1], style.SERIES[4])), 0.0)
    for patch in axes.patches:
        if (colour := to_hex(patch.get_facecolor())) in areas:
            areas[colour] += patch.get_width() * patch.get_height()
    own, rows, columns = areas.values()
    assert own == pytest.approx(15 * 12)
    assert rows + columns == pytest.approx(halo)


def test_lines_between_machines_are_as_wide_as_what_they_send():
    _, [axes] = style.new_figure(4, 3)
    machine_traffic.draw(axes, 4, {(0, 1, "tp"): 100.0, (0, 4, "dp"): 50.0, (3, 7, "pp"): 0.0}, most=100.0)
    widths = {patch.get_linewidth() for patch in axes.patches if type(patch).__name__ == "FancyArrowPatch"}
    assert widths == {machine_traffic.WIDEST, machine_traffic.WIDEST / 2, 0.4}
    assert [text.get_text() for text in axes.texts] == list("01234567")


def test_every_rank_stands_on_a_square_in_the_colour_of_its_group():
    axes = Figure().subplots()
    draw_groups(axes, (2, 2, 2), ("dp", "pp", "tp"), [[0, 4], [1, 5], [2, 6], [3, 7]])
    colours = {}
    for text in axes.texts:
        if text.get_text().isdigit():
            x, y = text.get_position()
            (square,) = [patch for patch in axes.patches if patch.contains_point(axes.transData.transform((x, y)))]
            colours[int(text.get_text())] = to_hex(square.get_facecolor()).upper()
    assert [colours[rank] for rank in range(8)] == [*style.SERIES[:4], *style.SERIES[:4]]


def test_draw_broadcasts_has_arrows_from_one_column_along_rows_and_from_one_row_along_columns():
    axes = Figure().subplots()
    draw_broadcasts(axes, (2, 4), column=1, row=0)
    arrows = [text for text in axes.texts if isinstance(text, Annotation)]
    along_rows = [each for each in arrows if each.xyann[1] == each.xy[1]]
    assert len(along_rows) == 2 * 3
    assert {each.xyann[0] for each in along_rows} == {1.5}
    assert len(arrows) - len(along_rows) == 4


def arrows_of(w: mixing.Matrix, places: Sequence[tuple[float, float]]) -> list[tuple[tuple[float, float], str]]:
    """Where each arrow starts, and its heads."""
    axes = Figure().subplots()
    draw_exchange(axes, w, places, np.ones(len(w)), highest=2)
    found = [text for text in axes.texts if isinstance(text, Annotation)]
    assert len(axes.patches) == 2 * len(w)
    return [(each.xyann, each.arrowprops["arrowstyle"]) for each in found]


def test_an_arrow_has_two_heads_if_both_machines_send():
    both = arrows_of(mixing.matrix(mixing.ring(6)), on_circle(6))
    assert [heads for _, heads in both] == ["<->"] * 6
    one = arrows_of(mixing.exponential(6, step=0), on_circle(6))
    assert len(one) == 6
    assert {heads for _, heads in one} == {"->", "<-"}


def test_on_a_torus_arrows_over_the_edge_are_cut_into_two():
    found = arrows_of(mixing.matrix(mixing.torus(16)), on_grid(4))
    assert len(found) == 24 + 2 * 8


TASKS = {f"F{i}": Task("forward", 10, ()) for i in range(4)}
TASKS |= {f"B{i}": Task("backward", 20, (f"F{i}",)) for i in range(4)}
TASKS |= {"sum of gradient 0": Task("sum", 12, tuple(f"B{i}" for i in range(4)))}


def test_a_sum_of_four_is_three_additions_two_deep():
    graph = task_graph.added_in_pairs(TASKS, flops_per_unit=2)
    sums = [name for name, kind in graph.kinds.items() if kind == "sum"]
    assert [graph.pieces[name] for name in sums[:2]] == [(2.0, ("B0", "B1")), (2.0, ("B2", "B3"))]
    assert graph.pieces[sums[2]] == (2.0, tuple(sums[:2]))
    assert sum(time for time, _ in graph.pieces.values()) == sum(task.flops for task in TASKS.values()) / 2
    assert max(span.end for span in task_graph.earliest(graph.pieces).values()) == 5 + 10 + 2 + 2


def test_the_critical_path_is_as_long_as_the_graph_is_deep():
    graph = task_graph.added_in_pairs(TASKS, flops_per_unit=1)
    path = task_graph.critical_path(graph.pieces)
    assert path[:2] == ["F0", "B0"]
    assert sum(graph.pieces[name][0] for name in path) == 10 + 20 + 4 + 4


def test_a_picture_has_a_row_for_each_image():
    axes = task_graph.draw(task_graph.added_in_pairs(TASKS, 1), "flop").axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == [f"image {i}" for i in range(4)]


@pytest.fixture(scope="module")
def runs():
    return ways_to_train.runs()


def waited(run: cluster.Run, rank: int) -> float:
    """Share of the run that a rank waits."""
    waits = [bar for bar in core_timeline.bars(run, rank) if bar.kind == "wait"]
    return sum(bar.end - bar.start for bar in waits) / run.seconds


def test_the_three_fast_nodes_wait_for_the_slow_one_unless_there_is_a_server(runs):
    synchronous, local, server = runs.values()
    for rank in range(ways_to_train.NODES):
        is_slow = rank == ways_to_train.SLOW
        assert (waited(synchronous, rank) > 0.4) == (waited(local, rank) > 0.4) == (not is_slow)
        assert waited(server, rank) < 0.1


def test_ways_to_train_that_wait_less_end_earlier(runs):
    ends = [run.seconds for run in runs.values()]
    assert ends == sorted(ends, reverse=True)


def test_the_timeline_has_a_panel_for_each_way_to_train(runs):
    figure = core_timeline.draw(runs)
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert len(panels) == len(ways_to_train.WAYS)
    assert figure.get_supxlabel() == "simulated"


def test_bars_of_the_core_fill_the_time_of_a_rank_and_have_halves_only_during_an_exchange(runs):
    for run in runs.values():
        for rank in range(len(run.results)):
            bars = core_timeline.bars(run, rank)
            halved = [bar for bar in bars if bar.half]
            assert {bar.half for bar in bars if bar.kind == "send"} <= {"", "upper"}
            assert len(halved) == 2 * len({bar.start for bar in halved})
            times = [bar.end - bar.start for bar in bars]
            lasts = sum(times) - sum(bar.end - bar.start for bar in halved) / 2
            assert lasts == pytest.approx(max(bar.end for bar in bars))


def test_the_sum_of_coded_numbers_decodes_to_its_ranks_and_chunk():
    everyone = sum(coded(rank, 8) for rank in range(8))
    assert [decoded(number) for number in everyone] == [(set(range(8)), chunk) for chunk in range(8)]
    assert decoded(coded(2, 4)[3] + coded(0, 4)[3]) == ({0, 2}, 3)


def test_a_table_writes_ranks_as_letters_and_the_chunk_as_a_number():
    panel = table("now", [[coded(0, 2)[0], None], [coded(1, 2)[0], coded(0, 2)[1] + coded(1, 2)[1]]])
    assert [[tuple(cell) for cell in row] for row in panel.cells] == [
        [("A0", 0.5), ("", 0.0)],
        [("B0", 0.5), ("AB1", 1.0)],
    ]


def test_the_ring_passes_one_chunk_a_step_to_the_next_rank_until_all_have_all():
    start, *steps = step_by_step("ring", 4)
    assert len(steps) == 6
    assert [[cell.text for cell in row] for row in start.cells] == [[letter] * 4 for letter in "ABCD"]
    for step in steps:
        assert sorted((arrow.src, arrow.dst) for arrow in step.arrows) == [(0, 1), (1, 2), (2, 3), (3, 0)]
    complete = [sum(cell.share == 1 for row in step.cells for cell in row) for step in steps]
    assert complete == [0, 0, 4, 8, 12, 16]


def test_doubling_and_halving_send_the_parts_that_the_titles_say():
    for algorithm, titles in {
        "recursive_doubling": ["step 1: n each", "step 2: n each", "step 3: n each"],
        "rabenseifner": [f"step {k + 1}: n/{part} each" for k, part in enumerate((2, 4, 8, 8, 4, 2))],
    }.items():
        _, *steps = step_by_step(algorithm, 8)
        assert [step.title for step in steps] == titles
        assert all(cell.share == 1 for row in steps[-1].cells for cell in row)


def test_what_cannot_be_drawn_step_by_step_is_refused():
    for algorithm, nodes in (("rabenseifner", 6), ("tree", 4), ("ring", 9)):
        with pytest.raises(ValueError, match="cannot be drawn"):
            step_by_step(algorithm, nodes)


def test_a_worker_that_pushes_or_pulls_has_an_arrow_for_each_shard_and_one_that_computes_has_none():
    axes = Figure().subplots()
    draw_servers(axes, ["computes", "pushes", "pulls"], servers=4, size="2.5 MB")
    arrows = [text.arrow_patch for text in axes.texts if isinstance(text, Annotation)]
    colours = [to_hex(arrow.get_edgecolor()).upper() for arrow in arrows]
    assert colours == [*style.SERIES[:4]] * 2
    assert sum(text.get_text() == "2.5 MB" for text in axes.texts) == 4
