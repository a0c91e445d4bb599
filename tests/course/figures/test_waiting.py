"""The bars divide the time of every worker into computing and waiting."""

from course.figures.waiting import Run, waiting


def test_computing_and_waiting_add_up_to_the_time_of_the_run():
    [axes] = waiting([Run("lockstep", [1.0, 2.5], 4.0)], source="simulated", columns=1).axes
    spans = sorted((bar.get_y(), bar.get_x(), bar.get_width()) for bar in axes.patches)
    assert [(start, width) for _, start, width in spans] == [(0, 1.0), (1.0, 3.0), (0, 2.5), (2.5, 1.5)]


def test_worker_0_is_the_uppermost_one_and_unused_axes_are_hidden():
    figure = waiting([Run("one", [1.0], 1.0), Run("two", [1.0], 2.0)], source="simulated")
    assert all(axes.yaxis_inverted() for axes in figure.axes[:2])
    assert [axes.get_visible() for axes in figure.axes] == [True, True, False]
