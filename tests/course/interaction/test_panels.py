"""Panels and pictures in steps: widgets for a person, small multiples without one."""

from __future__ import annotations

import sys
from typing import Any

import ipywidgets
import pytest
from matplotlib.axes import Axes

from course.figures import page
from course.interaction import bar, explore, frontend, step_through, warm_up
from course.interaction.bar import Progress
from course.interaction.explore import widget
from course.interaction.redrawn import Redrawn


def draw(axes: Axes, nodes: int, network: str) -> None:
    axes.plot([0, nodes], [0, 1 if network == "slow" else 2])


@pytest.fixture
def shown(monkeypatch):
    """What was shown, in order; panels for pages without a kernel are left out (`test_without_kernel.py`)."""
    found: list[Any] = []
    for place in (page, sys.modules["course.interaction.redrawn"]):
        monkeypatch.setattr(place, "display", found.append)
    for name in ("explore", "step_through"):
        monkeypatch.setattr(sys.modules[f"course.interaction.{name}"], "show_panel", lambda *settings, **options: None)
    return found


@pytest.fixture
def person(monkeypatch):
    monkeypatch.setattr(frontend, "person_is_there", lambda: True)


def titles(figure: Any) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def test_a_panel_without_a_person_is_one_figure_of_the_chosen_settings(shown):
    explore(draw, "it rises.", nodes=[2, 4], network=["slow", "fast"], multiples=[{}, {"nodes": 4, "network": "fast"}])
    figure, words = shown
    assert titles(figure) == ["nodes 2, network slow", "nodes 4, network fast"]
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    assert words.data == "*In words: it rises.*"


def test_a_panel_without_multiples_shows_up_to_four_values_of_its_first_parameter(shown):
    explore(draw, "it rises.", nodes=[1, 2, 3, 4, 5, 6, 7], network=["slow"])
    assert titles(shown[0]) == [f"nodes {nodes}, network slow" for nodes in (1, 3, 5, 7)]


def two_scales(axes: Any, nodes: int) -> None:
    axes.plot([1, 10, nodes], [1, 2, 3], label="time")
    axes.set(xscale="log", ylabel="time (s)")
    axes.legend()
    axes.twinx().set_ylabel("rate")


def test_labels_and_legends_that_small_multiples_share_are_shown_once(shown):
    explore(two_scales, "it rises.", nodes=[100, 1000])
    first, second, left_twin, right_twin = shown[0].axes
    assert first.get_legend() is not None
    assert second.get_legend() is None
    assert (left_twin.get_ylabel(), right_twin.get_ylabel()) == ("", "rate")


def legend_of_its_setting(axes: Any, B: int, ms_per_step: int) -> None:
    axes.plot([0, B * ms_per_step], [0, 1], label=f"B = {B}")
    axes.legend()


def test_legends_that_differ_stay_and_names_of_parameters_are_readable(shown):
    explore(legend_of_its_setting, "it rises.", B=[16, 64], ms_per_step=[2])
    assert [axes.get_legend() is not None for axes in shown[0].axes] == [True, True]
    assert titles(shown[0]) == ["B = 16, ms/step 2", "B = 64, ms/step 2"]


def test_logarithmic_axes_of_small_multiples_are_named_in_plain_numbers(shown):
    explore(two_scales, "it rises.", nodes=[100, 1000], shared=False)
    shown[0].canvas.draw()
    names = [label.get_text() for label in shown[0].axes[1].get_xticklabels()]
    assert {"1", "10", "100", "1,000"} <= set(names)


def own_ticks(axes: Any, nodes: int) -> None:
    axes.plot([1, 1000], [1, nodes])
    axes.set(xscale="log")
    axes.set_xticks([3, 30], ["three", "thirty"])


def test_ticks_that_a_picture_names_itself_stay(shown):
    explore(own_ticks, "it rises.", nodes=[2, 4])
    assert [label.get_text() for label in shown[0].axes[0].get_xticklabels()] == ["three", "thirty"]


@pytest.mark.parametrize("is_there", [False, True])
def test_multiples_of_unknown_names_and_values_are_refused(is_there, monkeypatch):
    monkeypatch.setattr(frontend, "person_is_there", lambda: is_there)
    for multiples, sentence in (
        ([{"node": 2}], "the parameter 'node', but the parameters are nodes, network"),
        ([{"nodes": 3}], r"nodes=3, which is not among its values \[2, 4\]"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explore(draw, "it rises.", nodes=[2, 4], network=["slow"], multiples=multiples)


def test_an_error_of_draw_leaves_no_figure(shown):
    with pytest.raises(ZeroDivisionError):
        explore(lambda axes, nodes: axes.plot([1 / nodes]), "it fails.", nodes=[0, 1])
    assert shown == []


@pytest.mark.usefixtures("person")
def test_a_person_gets_a_slider_for_numbers_and_a_list_for_texts(shown):
    explore(draw, "it rises.", nodes=[2, 4], network=["slow", "fast"])
    slider, choice, _, image = shown[0].children
    assert isinstance(slider, ipywidgets.SelectionSlider)
    assert isinstance(choice, ipywidgets.Dropdown)
    pictures = [bytes(image.value)]
    slider.value = 4
    pictures.append(bytes(image.value))
    choice.value = "fast"
    pictures.append(bytes(image.value))
    assert len(set(pictures)) == 3
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)


@pytest.mark.usefixtures("person")
def test_buttons_step_to_the_ends_and_no_further(shown):
    step_through(lambda axes, frame: axes.plot([0, frame]), "it grows.", frames=range(3), multiples=[0, 2])
    back, forward, slider = shown[0].children[0].children
    assert (back.disabled, slider.value, forward.disabled) == (True, 0, False)
    forward.click()
    forward.click()
    assert (back.disabled, slider.value, forward.disabled) == (False, 2, True)
    forward.click()
    back.click()
    assert slider.value == 1


def test_frames_stand_side_by_side_without_a_person(shown):
    step_through(
        lambda axes, frame: axes.plot([0, frame]), "it grows.", frames=range(3), multiples=[0, 2], name="round"
    )
    assert titles(shown[0]) == ["round 0", "round 2"]
    with pytest.raises(ValueError, match="multiples are some of the frames"):
        step_through(draw, "it grows.", frames=range(3), multiples=[7])


def test_a_redrawn_picture_hides_while_its_error_is_shown():
    slider = ipywidgets.SelectionSlider(options=[1, 0])
    picture = Redrawn(lambda x: b"%d" % (1 / x), {"x": slider})
    with pytest.raises(ZeroDivisionError):  # outside a notebook the error is not shown, but raised
        slider.value = 0
    assert picture.image.layout.visibility == "hidden"
    slider.value = 1
    assert (picture.image.layout.visibility, picture.image.value) == ("visible", b"1")


def test_a_bar_yields_its_cases_and_is_gone_at_the_end(monkeypatch):
    assert list(bar(iter("abc"), "spelling")) == ["a", "b", "c"]
    pictures: list[str] = []

    class Output:
        def update(self, html: Any) -> None:
            pictures.append(html.data)

    def display(html: Any, display_id: bool) -> Output:
        pictures.append(html.data)
        return Output()

    monkeypatch.setattr(frontend, "person_is_there", lambda: True)
    monkeypatch.setattr(sys.modules["course.interaction.bar"], "display", display)
    assert list(bar("abc", "1 < 2")) == ["a", "b", "c"]
    assert "1 &lt; 2" in pictures[0]
    assert 'max="3"' in pictures[0]
    assert pictures[-1] == ""
    progress = Progress("waiting", 2)
    progress.close()
    assert pictures[-1] == ""


def test_warming_up_from_the_cache_shows_nothing(capsys):
    warm_up()
    warm_up()
    assert capsys.readouterr().out == ""


def test_a_slider_goes_from_the_least_to_the_greatest_and_starts_at_the_default():
    slider = widget("layers", [8, 3, 24, 4])
    assert [value for _, value in slider.options] == [3, 4, 8, 24]
    assert slider.value == 8
    assert [value for _, value in widget("network", ["10gbe", "1gbe"]).options] == ["10gbe", "1gbe"]
