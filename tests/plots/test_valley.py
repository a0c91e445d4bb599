"""Valleys: every path is drawn as it was given, in a map of its own, over the contours of the loss."""

import numpy as np
import pytest

from minidl.plots import valley


def bowl(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a**2 + 9 * b**2


VIEW = {"x": (-2.0, 2.0), "y": (-1.0, 1.0)}


def test_every_path_has_a_map_with_its_steps_its_name_and_the_minimum() -> None:
    paths = {"GD": np.array([[1.0, 0.5], [0.5, -0.2], [0.1, 0.1]]), "momentum": [(1.0, 0.5), (0.2, 0.0)]}
    figure = valley.draw(bowl, paths, **VIEW, minimum=(0.25, 0.75))  # type: ignore[arg-type]
    for axes, (name, path) in zip(figure.axes, paths.items(), strict=True):
        drawn = axes.get_lines()[0]
        assert np.array_equal(np.transpose(drawn.get_data()), path)
        assert axes.get_title(loc="left") == f"{name}, {len(path) - 1} steps"
        assert any(line.get_xydata().tolist() == [[0.25, 0.75]] for line in axes.get_lines())


def test_contours_are_those_of_the_loss_and_a_path_that_leaves_does_not_move_the_picture() -> None:
    figure = valley.draw(bowl, {"GD": [(1.0, 0.5), (50.0, 90.0)]}, **VIEW)  # type: ignore[arg-type]
    axes = figure.axes[0]
    assert axes.get_xlim() == (-2, 2)
    assert axes.get_ylim() == (-1, 1)
    (contours,) = axes.collections
    for level, line in zip(contours.levels, contours.get_paths(), strict=True):  # type: ignore[attr-defined]
        if len(line.vertices) and level > -1:
            assert np.log10(bowl(*line.vertices.T)) == pytest.approx(np.full(len(line.vertices), level), abs=0.02)


def test_maps_that_are_not_needed_are_hidden() -> None:
    figure = valley.draw(bowl, {str(k): [(0.0, 0.0)] for k in range(4)}, **VIEW)  # type: ignore[arg-type]
    assert [axes.get_visible() for axes in figure.axes] == [True] * 4 + [False] * 2


def test_a_path_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the path of GD has shape \(3,\), not \(steps \+ 1, 2\)"):
        valley.draw(bowl, {"GD": [1.0, 2.0, 3.0]}, **VIEW)  # type: ignore[arg-type]
