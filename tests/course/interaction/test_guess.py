"""A guess is understood as people type it, holds back the cells below, and says how far off it was."""

from __future__ import annotations

import ipywidgets
import pytest
from IPython.core.interactiveshell import InteractiveShell

from course.interaction import frontend, guess
from course.interaction.guess import Guess, GuessAwaitedError, UnusableError, number


@pytest.fixture
def reader(monkeypatch):
    """Puts a person in front of a shell; returns the shell and the widgets that were displayed last."""
    shell, shown = InteractiveShell(), []
    module = __import__("course.interaction.guess", fromlist=["guess"])
    monkeypatch.setattr(module, "get_ipython", lambda: shell)
    monkeypatch.setattr(module, "display", shown.append)
    monkeypatch.setattr(module, "made", {})
    monkeypatch.setattr(frontend, "person_is_there", lambda: True)
    return shell, shown


def controls(shown: list[ipywidgets.VBox]) -> tuple[dict[str, ipywidgets.Widget], ipywidgets.Label]:
    """The buttons by their words, the field as "", and the line with what was noted."""
    row, noted = shown[-1].children
    return {each.description: each for each in row.children if not isinstance(each, ipywidgets.Label)}, noted


def test_without_a_person_a_guess_shows_its_question_and_returns_at_once():
    assert not frontend.person_is_there()
    made = guess("When?", unit="s")
    assert (made.value, str(made), made.awaited, made.on_page) == (None, "none", False, True)


def test_a_button_is_pressed_the_guess_noted_and_the_cells_below_run(reader):
    shell, shown = reader
    made = guess("Which?", ["ring", "**tree**"])
    with pytest.raises(GuessAwaitedError, match="First your guess: Which") as caught:
        shell.ex(shell.transform_cell("answer = 1"))
    assert caught.value._render_traceback_() == [str(caught.value)]
    assert shell.transform_cell('guess("Other?")') == 'guess("Other?")\n'
    buttons, noted = controls(shown)
    buttons["tree"].click()
    assert (made.value, noted.value) == ("**tree**", "Your guess: tree. Go on with the next cell.")
    shell.ex(shell.transform_cell("answer = 1"))
    assert shell.user_ns["answer"] == 1


def test_a_guess_is_remembered_when_its_cell_runs_again_and_can_be_changed(reader):
    _, shown = reader
    made = guess("Which?", ["ring", "tree"])
    controls(shown)[0]["ring"].click()
    assert guess("Which?", ["ring", "tree"]) is made
    buttons, noted = controls(shown)
    assert noted.value == "Your guess: ring."
    buttons["tree"].click()
    assert made.value == "tree"


def test_a_number_is_typed_an_unusable_one_is_refused_and_giving_up_goes_on(reader):
    shell, shown = reader
    made = guess("When?", unit="s")
    fields, noted = controls(shown)
    fields[""].value = "soon"
    assert noted.value.startswith("Please type a number")
    assert made.awaited
    fields[""].value = "0,5"
    assert (made.value, made.awaited) == (0.5, False)
    fields["give up"].click()
    assert (made.value, made.awaited) == (None, False)
    assert shell.transform_cell("answer = 1") == "answer = 1\n"


NUMBERS = [
    ("0.8", "s", 0.8), ("0.8 s", "s", 0.8), ("0.8s", "s", 0.8), ("1e3", "", 1000), ("0,8", "", 0.8),
    ("12,000", "", 12000), ("1,234,567.5", "", 1234567.5), ("0,125", "", 0.125), ("12,5", "", 12.5),
    ("8x", "times", 8), ("8 times", "times", 8), ("50 %", "%", 50), ("1/8", "", 0.125), ("~ 4", "", 4),
    ("-1", "", -1), ("1 step", "steps", 1), ("3 Nodes", "nodes", 3),
]  # fmt: skip


def test_numbers_are_understood_as_people_type_them():
    assert [number(typed, unit) for typed, unit, _ in NUMBERS] == [value for _, _, value in NUMBERS]


def test_what_is_no_number_in_the_unit_is_refused_in_a_sentence():
    for typed in ("", "many", "nan", "inf", "1/0", "800 ms", "1 2"):
        with pytest.raises(UnusableError, match="Please type a number, such as"):
            number(typed, "s")


def test_a_guess_is_shown_with_its_unit():
    shown = [str(Guess("?", unit=unit, value=value)) for value, unit in ((0.8, "s"), (1e6, ""), (50.0, "%"))]
    assert shown == ["0.8 s", "1,000,000", "50%"]


DISTANCES = [
    (0.5, 1.6, "s", "0.5 s, too small by a factor of 3.2"), (1000, 7.3, "", "1,000, too large by a factor of 140"),
    (1.2, 1.0, "s", "1.2 s, 20 % too large"), (0.6, 1.0, "s", "0.6 s, 40 % too small"),
    (50, 12.5, "%", "50%, 37.5 points too large"), (0, 2, "s", "0 s, 2 s too small"), (-3, 1, "", "-3, 4 too small"),
    (-2, -1, "s", "-2 s, too small by a factor of 2"), (0, 0, "", "0, right"),
    (10.4, 10, "", "10.4, right within 5 %"),
]  # fmt: skip


def test_a_number_comes_back_with_how_far_off_it_was():
    assert [Guess("?", unit=unit, value=value).against(answer) for value, answer, unit, _ in DISTANCES] == [
        said for *_, said in DISTANCES
    ]
    assert Guess("?").against(3) == "none"


def test_a_choice_comes_back_right_or_with_the_right_one():
    assert Guess("?", ["ring", "tree"], value="ring").against("ring") == "ring: right"
    assert Guess("?", [2, 4, 16], value=4).against(16.0) == "4: wrong, it is 16"


def test_an_answer_that_nobody_could_give_is_refused():
    for asked, answer in ((Guess("?", ["ring", "tree"]), "star"), (Guess("?"), "ring"), (Guess("?"), float("nan"))):
        with pytest.raises(ValueError, match="the answer"):
            asked.against(answer)


def test_a_question_that_cannot_be_answered_is_refused():
    for choices, unit in ((["ring"], ""), (["ring", "Ring"], ""), (["ring", "tree"], "s")):
        with pytest.raises(ValueError, match="choices"):
            guess("Which?", choices, unit=unit)
