"""The picture of a computation graph: every node with its value and its gradient, an arrow for every use."""

from itertools import combinations

import pytest
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from minidl.plots import graph
from minidl.plots.graph import Box

SQUARE_PLUS = [
    Box("x", 3.0, 7.0),
    Box("y", -1.5, None),
    Box("q = x * x", 9.0, 1.0, (0, 0)),
    Box("f = q + y", 7.5, 1.0, (2, 1)),
    Box("g = f + x", 10.5, 1.0, (3, 0)),
]


def test_every_node_is_a_box_with_value_and_gradient_and_every_use_an_arrow() -> None:
    figure = graph.draw(SQUARE_PLUS, source="measured", title="a title")
    (axes,) = figure.axes
    texts = [text.get_text() for text in axes.texts]
    for box in SQUARE_PLUS:
        gradient = "gradient ?" if box.gradient is None else f"gradient {box.gradient:g}"
        first = texts.index(box.name)
        assert texts[first : first + 3] == [box.name, f"value {box.value:g}", gradient]
    assert sum(isinstance(patch, FancyBboxPatch) for patch in axes.patches) == len(SQUARE_PLUS)
    assert sum(isinstance(patch, FancyArrowPatch) for patch in axes.patches) == sum(len(b.parents) for b in SQUARE_PLUS)
    assert axes.get_title(loc="left") == "a title"
    assert figure.get_supxlabel() == "measured"


def test_boxes_do_not_overlap_and_arrows_go_to_the_right() -> None:
    boxes = [Box(str(i), 0.0, None, (i - 1, i - 3) if i > 3 else ()) for i in range(12)]
    places = graph.positions(boxes)
    for (x, y), (u, v) in combinations(places, 2):
        assert abs(x - u) >= 1 or abs(y - v) >= 1
    for place, box in zip(places, boxes, strict=True):
        assert all(places[parent][0] < place[0] for parent in box.parents)


def test_boxes_of_a_column_are_in_the_order_of_their_parents() -> None:
    leaves = [Box(name, 0.0) for name in "abc"]
    uses = [Box(f"{parent}'", 0.0, None, (parent,)) for parent in (2, 0, 1)]
    places = graph.positions([*leaves, *uses])
    assert [places[3 + k][1] for k in range(3)] == [places[parent][1] for parent in (2, 0, 1)]


def test_a_parent_that_comes_later_is_refused() -> None:
    with pytest.raises(ValueError, match="must come before it"):
        graph.draw([Box("a", 1.0, None, (1,)), Box("b", 1.0)], source="measured")


def test_every_arrow_shows_its_local_gradient_and_the_current_node_stands_out() -> None:
    boxes = [
        Box("x", 3.0),
        Box("q = x * x", 9.0, None, (0, 0), (3.0, 3.5)),
        Box("f = -q", -9.0, 1.0, (1,), (-1.0,), True),
    ]
    (axes,) = graph.draw(boxes, source="formula").axes
    texts = [text.get_text() for text in axes.texts]
    assert {"3", "3.5", "-1"} <= set(texts)
    assert len({text.get_position() for text in axes.texts}) == len(texts)
    arrows = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    frames = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    assert [arrow.get_linewidth() > 1.5 for arrow in arrows] == [False, False, True]
    assert [frame.get_linewidth() > 1.5 for frame in frames] == [False, False, True]
