"""The bars divide the time of each program into computing, communicating and waiting."""

from course.figures.time_shares import time_shares


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
