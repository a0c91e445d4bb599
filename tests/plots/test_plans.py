"""The picture of plans: which points are drawn, and which is the star."""

import pytest

from minidl.plots import plans


def test_points_are_drawn_by_whether_they_fit_and_the_fastest_that_fits_has_the_star():
    points = [(30e9, 5.1), (70e9, 2.5), (79e9, 3.0), (91e9, 2.0), (300e9, 1.0), (10e9, 17.0)]
    figure = plans.draw(points, capacity=80e9, limit="Memory binds.")
    (axes,) = figure.axes
    too_large, fits, best = (group.get_offsets().tolist() for group in axes.collections)
    assert too_large == [[91, 2]]
    assert fits == [[30, 5.1], [70, 2.5], [79, 3]]
    assert best == [[70, 2.5]]
    assert figure.get_supxlabel().startswith("formula")
    with pytest.raises(ValueError, match="no point has at most 5 GB"):
        plans.draw(points, capacity=5e9, limit="")
