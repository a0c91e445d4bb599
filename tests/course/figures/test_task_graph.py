"""The graph of a step: additions in pairs, the depth, and the critical path."""

from __future__ import annotations

from course.figures import task_graph
from minidl.tensor.dependency_graph import Task

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
