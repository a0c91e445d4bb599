"""A guess is understood as people type it, asked again if it is not, and never asked where nobody is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from course.interaction import frontend, guess
from course.interaction.guess import Guess, GuessInterruptedError, UnusableError, chosen, number

Typing = Callable[..., list[str]]


@pytest.fixture
def typing(monkeypatch):
    """Puts a person in front of the kernel who types these lines; returns the lines that are left."""

    def types(*lines: str | type[BaseException]) -> list[str | type[BaseException]]:
        left = list(lines)

        def read(prompt: str) -> str:
            line = left.pop(0)
            if isinstance(line, str):
                return line
            raise line

        monkeypatch.setattr(frontend, "person_is_there", lambda: True)
        monkeypatch.setattr("builtins.input", read)
        return left

    return types  # type: ignore[return-value]


def test_without_a_person_a_guess_shows_its_question_and_returns_at_once():
    assert not frontend.person_is_there()
    made = guess("When?", unit="s")
    assert (made.value, str(made)) == (None, "(no guess)")


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
        with pytest.raises(UnusableError, match="Please type a number in s, such as"):
            number(typed, "s")


def test_a_choice_is_its_text_its_letter_or_its_beginning_and_keeps_its_type():
    for typed in ("tree", "Tree", "b", "B", "b)", "t", "`tree`"):
        assert chosen(typed, ["ring", "tree"]) == "tree"
    assert chosen("16", [2, 4, 16]) == 16
    assert chosen("b", ["b", "a"]) == "b"
    for typed in ("", "c", "treering", "2"):
        with pytest.raises(UnusableError, match=r"one of: a\) ring, b\) tree"):
            chosen(typed, ["ring", "tree"])
    with pytest.raises(UnusableError):
        chosen("ri", ["ring", "right"])


def test_an_unusable_line_is_asked_again(typing, capsys):
    left = typing("", "soon", "0,5")
    assert guess("When?", unit="s") == Guess(0.5, "s")
    assert left == []
    assert capsys.readouterr().out.count("Please type a number in s") == 2
    typing("?")  # gives up
    assert guess("Which?", ["ring", "tree"]).value is None


def test_an_interrupt_ends_the_question_without_a_traceback(typing):
    typing(KeyboardInterrupt)
    with pytest.raises(GuessInterruptedError, match="Run this cell again") as caught:
        guess("When?")
    assert caught.value._render_traceback_() == [str(caught.value)]


def test_a_guess_is_shown_with_its_unit():
    shown = [str(Guess(0.8, "s")), str(Guess(1000000.0)), str(Guess(50.0, "%")), str(Guess("ring"))]
    assert shown == ["0.8 s", "1,000,000", "50%", "ring"]


def test_a_question_that_cannot_be_answered_is_refused():
    for choices, unit in ((["ring"], ""), (["ring", "Ring"], ""), (["ring", "tree"], "s")):
        with pytest.raises(ValueError, match="choices"):
            guess("Which?", choices, unit=unit)
