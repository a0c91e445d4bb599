"""Treemaps: areas are bytes, components and layers are told apart, and what does not fit is not written."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from minidl.plots import treemap
from minidl.plots.treemap import MEMORY, Rectangle, squarified

NODE = [
    ("0", "weights", 4200),
    ("2", "weights", 2040),
    ("0", "optimizer", 8400),
    ("2", "optimizer", 4080),
    ("", "buffers", 77),
]


def test_areas_are_sizes_and_cover_the_place_without_overlap() -> None:
    sizes, place = [3.1, 0.0, 17.0, 5.3, 5.3, 0.2, 9.9], Rectangle(2.0, -1.0, 7.0, 3.0)
    found = squarified(sizes, place)
    for size, each in zip(sizes, found, strict=True):
        assert each.width * each.height == pytest.approx(21 * size / sum(sizes))
    points = np.random.default_rng(2).uniform([2.0, -1.0], [9.0, 2.0], (500, 2))
    for x, y in points:
        assert sum(r.x <= x < r.x + r.width and r.y <= y < r.y + r.height for r in found) == 1


def test_rectangles_are_closer_to_squares_than_slices() -> None:
    found = squarified([6, 6, 4, 3, 2, 2, 1], Rectangle(0, 0, 6, 4))  # figure 4 of the paper
    worst = max(max(r.width / r.height, r.height / r.width) for r in found)
    assert worst == pytest.approx(25 / 9)
    assert [round(r.width * r.height, 6) for r in found] == [6, 6, 4, 3, 2, 2, 1]


def areas(axes, colour):
    patches = [patch for patch in axes.patches if patch.get_fill() and patch.get_facecolor()[:3] == to_rgb(colour)]
    return sorted(round(patch.get_width() * patch.get_height()) for patch in patches)


def test_a_picture_has_the_bytes_of_each_layer_and_the_frame_of_a_device() -> None:
    figure = treemap.draw({"rank 0": NODE, "rank 1": NODE[:2]}, source="measured", capacity=20_300)
    first, second = figure.axes
    assert areas(first, MEMORY["weights"]) == areas(second, MEMORY["weights"]) == [2040, 4200]
    assert areas(first, MEMORY["optimizer"]) == [4080, 8400]
    assert first.get_title(loc="left") == "rank 0: 18.8 KB"
    assert "optimizer 12.5 KB" in [text.get_text() for text in first.texts]
    (device,) = [patch for patch in second.patches if patch.get_linestyle() in ("--", "dashed")]
    assert device.get_width() ** 2 == pytest.approx(20_300)
    assert figure.get_supxlabel() == "measured; dashed: a device of 20.3 KB"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["weights", "optimizer", "buffers"]


def test_a_text_is_written_only_where_it_fits() -> None:
    figure = treemap.draw(
        {"one": [("a layer", "weights", 9e9), ("b", "weights", 8e9), ("c", "buffers", 1)]}, source="formula"
    )
    assert {text.get_text() for text in figure.axes[0].texts} == {"weights 17 GB", "a layer", "b"}


def test_components_differ_in_grey_print() -> None:
    linear = [np.dot(np.array(to_rgb(colour)) ** 2.2, (0.2126, 0.7152, 0.0722)) for colour in MEMORY.values()]
    lightness = sorted(116 * grey ** (1 / 3) - 16 for grey in linear)  # of CIELAB
    assert min(np.diff(lightness)) > 13


@pytest.mark.parametrize(
    ("entry", "capacity", "sentence"),
    [
        (("0", "wieghts", 3.7), 0, "the component of '0' must be 'weights'"),
        (("0", "weights", -3.7), 0, "the bytes of '0' must be at least 0, got -3.7"),
        (("0", "weights", "3 KB"), 0, "the bytes of '0' must be a number of at least 0, got '3 KB'"),
        (("0", "weights", 3.7), -1.3, "capacity must be at least 0, got -1.3"),
        (("0", "weights", 3.7), "80GB", "capacity must be a number of at least 0, got '80GB'"),
    ],
)
def test_what_is_no_memory_is_refused(entry, capacity, sentence) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        treemap.draw({"node": [*NODE, entry]}, source="formula", capacity=capacity)


@pytest.mark.parametrize("memories", [{}, {"empty": []}, {"nothing": [("0", "weights", 0)]}])
def test_nothing_is_refused(memories) -> None:
    with pytest.raises(ValueError, match="one memory or more that have bytes"):
        treemap.draw(memories, source="formula")
