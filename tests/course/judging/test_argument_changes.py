"""One rule for all calls: an answer leaves its arguments unchanged, and a change is reported once, in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from course.judging import Answer, ChapterChecks, Outcome, Part, expect
from course.judging.argument_changes import first_change
from course.judging.process.student_session import StudentSession
from course.sandbox.exchange.plain_data import dumps, loads

pytestmark = pytest.mark.timeout(300)

chapter = ChapterChecks("99_arguments")


def changes(before: object, after: object) -> str:
    """The first change of one argument `x`, in a sentence, or nothing."""
    found = first_change((before,), loads(dumps((after,))), ["x"])
    return found[0] if found else ""


NAN = float("nan")


CHANGED = [
    (np.array([1.0, 2.0]), np.array([1.0, 3.0]), "x at [1]: it was 2, and is 3 after the call"),
    (np.array([[0.0]]), np.array([[-0.0]]), "x at [0, 0]: it was 0, and is -0 after the call"),
    (np.array(1.0), np.array(NAN), "x: it was 1, and is nan after the call"),
    (np.zeros(2), np.zeros((2, 1)), "x: it had shape (2,) and type float64, and has shape (2, 1) and type"),
    ([1, 2, 3], [1, 2], "x: it had 3 items, and has 2 after the call"),
    ([1, [2, np.zeros(1)]], [1, [2, np.ones(1)]], "x[1][1] at [0]: it was 0, and is 1 after the call"),
    ({"a": (1, 2.0)}, {"a": (1, 3.0)}, "x['a'][1]: it was 2, and is 3 after the call"),
    ({"a": 1}, {"a": 1, "b": 2}, "x: its keys were ['a'], and are ['a', 'b'] after the call"),
    ([0.0], [0], "x[0]: it was 0.0, and is 0 after the call"),
    ({1, 2}, {1}, "x: it was {1, 2}, and is {1} after the call"),
]
SAME = [
    np.array([NAN, -0.0, np.inf]), np.arange(6).reshape(2, 3).T, [], np.zeros((0, 3)),
    [NAN, None, "text", (True, 10**30)], {"key": np.float32(0.1)}, np.sum, np.array(["a", "bc"]),
]  # fmt: skip


def test_an_argument_change_is_found_at_any_depth() -> None:
    for before, after, sentence in CHANGED:
        assert sentence in changes(before, after)


def test_arguments_with_the_same_bits_are_unchanged() -> None:
    for same in SAME:
        assert changes(same, same) == "", same


def test_an_argument_restored_up_to_rounding_is_explained_as_rounding() -> None:
    x = np.linspace(0.1, 1.0, 10)
    found = first_change((x,), (x + 1e-5 - 1e-5,), ["x"])
    assert found
    assert "x + h - h is not x" in found[1]


@chapter.exercise(points=3)
def total(answer: Answer, part: Part) -> None:
    """total(x, y) returns the sum of all elements of both."""
    with part(1, "of lists"):
        expect.number(answer([1, 2], [3, 4]), 10, "total([1, 2], [3, 4])")
    with part(2, "of arrays"):
        expect.number(answer(np.arange(3.0), np.ones(3)), 6, "total of arrays")


@chapter.exercise(points=1)
def moved(answer: Answer, part: Part) -> None:
    """moved(x, d) returns x + d, and may change x."""
    with part(1, "moved"):
        expect.array(answer(np.zeros(2), np.ones(2), may_change=(0,)), np.ones(2), "moved(x, d)")


@pytest.fixture(scope="module")
def judged() -> Iterator[Callable[[Any, str], Outcome]]:
    """Judges a cell that defines the answer to an exercise, in one process."""
    with StudentSession(lambda session: None) as session:

        def outcome(exercise: Any, source: str) -> Outcome:
            session.request("run_cell", ("cell 1", source), 30.0)
            return exercise.judge(Answer(exercise.name, session))

        yield outcome


def test_a_change_costs_the_first_part_in_which_it_shows_and_no_other(judged: Any) -> None:
    outcome = judged(total, "def total(a, b):\n    a += b\n    return sum(a)")
    assert [part.earned for part in outcome.parts] == [0, 2]
    assert outcome.first_fault
    assert outcome.first_fault.message == "total changed its argument a: it had 2 items, and has 4 after the call."
    assert "belongs to the caller" in outcome.first_fault.cause


def test_a_change_that_shows_later_costs_the_later_part(judged: Any) -> None:
    outcome = judged(
        total, "def total(a, b):\n    a = a + b if isinstance(a, list) else a.__iadd__(b)\n    return sum(a)"
    )
    assert [part.earned for part in outcome.parts] == [1, 0]
    assert outcome.first_fault
    assert "total changed its argument a at [0]: it was 0, and is 1 after the call." in outcome.first_fault.message


def test_a_wrong_value_is_reported_before_a_changed_argument(judged: Any) -> None:
    outcome = judged(total, "def total(a, b):\n    b[0] = 7\n    return sum(a) if isinstance(a, list) else 6.0")
    assert [part.earned for part in outcome.parts] == [0, 0]
    assert "expected 10, got 3" in outcome.parts[0].message
    assert "changed its argument b: it was" not in outcome.parts[1].message
    assert "changed its argument b[0]: it was 3, and is 7" in outcome.parts[1].message


def test_the_next_check_forgets_the_changes_of_the_previous_one(judged: Any) -> None:
    assert judged(total, "def total(a, b):\n    a += b\n    return sum(a)").points == 2
    assert judged(total, "def total(a, b):\n    return sum(a) + sum(b)").points == 3


def test_arguments_in_may_change_may_change(judged: Any) -> None:
    assert judged(moved, "def moved(x, d):\n    x += d\n    return x").points == 1
    assert judged(moved, "def moved(x, d):\n    d += 1 - x\n    return d - 1").points == 0


def test_an_argument_without_a_name_is_called_by_its_number(judged: Any) -> None:
    outcome = judged(moved, "def moved(*both):\n    d = both[1].copy()\n    both[1][:] = 2\n    return d")
    assert outcome.first_fault
    assert "moved changed its argument number 2 at [0]: it was 1, and is 2" in outcome.first_fault.message


@chapter.exercise(points=3)
def summed(answer: Answer, part: Part) -> None:
    """summed(comm, x, y) returns the sum of all x and all y, and may change y; the check plays the last rank."""
    arguments = [([rank], np.ones(1)) for rank in range(3)]
    with part(1, "on ranks"):
        run = answer.on_ranks(arguments, may_change=[1])
        expect.same(run.results, [6.0] * 3, "summed")
    with part(2, "with a rank of the check"):
        run = answer.on_ranks(arguments, may_change=[1], played={2: lambda comm: comm.all_reduce(np.ones(1))})
        expect.same(run.results[:2], [4.0] * 2, "summed, with a rank of the check")


def test_a_change_on_a_rank_costs_the_first_part_in_which_it_shows_and_no_other(judged: Any) -> None:
    outcome = judged(
        summed,
        "def summed(comm, own, y):\n    y += own[0]\n    if comm.rank:\n        own.append(5)\n"
        "    return float(comm.all_reduce(y)[0])",
    )
    assert [part.earned for part in outcome.parts] == [0, 2]
    assert outcome.first_fault
    assert outcome.first_fault.message == (
        "summed on rank 1 of 3 changed its argument own: it had 1 items, and has 2 after the call."
    )
    assert "comm.all_reduce(x) writes into x, too" in outcome.first_fault.cause


def test_an_answer_on_ranks_that_changes_only_arguments_in_may_change_gets_all_points(judged: Any) -> None:
    source = "def summed(comm, x, y):\n    y += x[0]\n    return float(comm.all_reduce(y)[0])"
    assert judged(summed, source).points == 3
