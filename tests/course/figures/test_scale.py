"""The scale of published models: the formulas give the figures that the sources print."""

from __future__ import annotations

import pytest

from course.figures import scale
from minidl.parallel.planner.published import ROWS


def test_the_memory_of_a_model_is_its_weights_times_four_bytes() -> None:
    of = {model.name: scale.memory(model.parameters) for model in scale.models()}
    assert (of["ResNet-50"], of["VGG-16"]) == ("97.5 MiB", "527.8 MiB")  # DGC's table 3 prints 97.49 MB
    assert scale.memory(10e9) == "37.3 GiB"  # the slides' 40 GiB


def test_the_days_of_a_training_run_are_narayanans() -> None:
    assert scale.days(175e9, 1024) == pytest.approx(34, abs=0.5)
    assert scale.days(1008e9, 3072, tokens=450e9, rate=163e12) == pytest.approx(84, abs=0.5)


def test_the_picture_has_every_model_and_every_row_of_the_planner_and_none_is_above_the_memory() -> None:
    by_year, by_processors = scale.picture().axes
    assert {text.get_text() for text in by_year.texts} == {model.name for model in scale.models()}
    *points, memory, month = by_processors.lines
    assert sum(len(line.get_xdata()) for line in points) == len(ROWS)
    for row in ROWS:
        assert row.model.parameters * scale.STATE < row.arrangement.world * scale.CARD
    assert (memory.get_ydata() / memory.get_xdata())[0] == scale.CARD / scale.STATE
    x, y = month.get_data()
    assert scale.days(y[1], x[1]) == pytest.approx(30)
