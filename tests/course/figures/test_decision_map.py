"""The map shows a classifier's own answers."""

import numpy as np

from course.figures.decision_map import SIDE, draw

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
