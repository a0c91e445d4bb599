"""Hidden tests are drawn anew: other numbers of the same kind, proven before they are written."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from course.building import redrawing, text
from course.building.assignment_rules import broken_rules
from course.building.drawing import drawn, is_power_of_two
from course.building.hidden_tests import hidden_tests, with_values
from course.building.sources import sources
from course.commands import redraw
from course.judging.judged_notebook import checks_of
from tests.tiers import all_but_first_exhaustive

ASSIGNMENTS = [source for source in sources() if not source.is_lecture]


def many(name: str, value: object, count: int = 40) -> list[object]:
    return [drawn(name, value, np.random.default_rng(seed)) for seed in range(count)]


def test_redrawn_ranks_and_elements_keep_their_order_divisibility_and_powers_of_two():
    for sizes in many("sizes", [(1, 3), (3, 2), (7, 0), (5, 13), (16, 4), (3, 33)]):
        (one, a), (few, b), (p, none), (q, n), (power, c), (r, m) = sizes
        assert (one, b, none) == (1, 2, 0)
        assert a > 2
        assert few > 2
        assert not is_power_of_two(p)
        assert n % q != 0
        assert n > q
        assert is_power_of_two(power)
        assert is_power_of_two(c)
        assert m % r == 0


def test_redrawn_messages_of_more_than_64_kib_stay_as_long():
    for (p, n), (q, m) in many("large", [(2, 40_000), (4, 40_000)]):
        assert 8 * n / p > 64 * 1024
        assert 8 * m / q > 64 * 1024
        assert max(n, m) <= 50_000


def test_redrawn_shapes_still_broadcast():
    for pairs in many("stretched", [((1, 5), (3, 5)), ((2, 1, 3), (1, 4, 1)), ((4, 1), (0,)), ((7,), (4, 3, 7))]):
        for first, second in pairs:
            np.broadcast_shapes(first, second)


def test_redrawn_sizes_still_divide_into_whole_chunks():
    for cases in many("cases", [(7, 560, 1e-6), (5, 40_000, 3e-5), (100, 80_000, 5e-6)], 10):
        assert all(nbytes % (8 * p) == 0 for p, nbytes, _ in cases)
        assert len({p for p, _, _ in cases}) == 3


def test_fractions_stay_fractions_and_equal_ones_equal():
    for rates in many("rates", [0.05, 0.05, 0.3, 0.95, 0.0]):
        assert rates[0] == rates[1] < rates[2] < rates[3] < 1
        assert rates[4] == 0


def test_values_without_another_of_the_same_kind_are_not_redrawn():
    for value in (None, "ring", True, (), [], 0, 1.0, [()], float("inf"), -3, [(1, 1), (1, 1)]):
        assert drawn("value", value, np.random.default_rng(0)) == value


def test_the_same_seed_draws_the_same_and_another_one_does_not():
    draws = many("sizes", [(5, 13), (7, 30), (12, 14)])
    assert draws == many("sizes", [(5, 13), (7, 30), (12, 14)])
    assert len({str(each) for each in draws}) > 30
    assert len(set(many("seed", 11))) == 40


@pytest.mark.parametrize("source", all_but_first_exhaustive(ASSIGNMENTS), ids=lambda source: source.name)
def test_every_hidden_test_can_be_drawn_and_the_text_stays_an_assignment(source, tmp_path):
    before = source.path.read_text(encoding="utf-8")
    tests = hidden_tests(before)
    notebook = text.read(source.path)
    chapter = checks_of(notebook).chapter
    assert [test.exercise for test in tests] == list(chapter.exercises)
    assert with_values(before, {}) == before
    new = {
        number: {name: drawn(name, value, np.random.default_rng(number)) for name, value in test.values.items()}
        for number, test in enumerate(tests)
    }
    assert all(new[number] != dict(test.values) for number, test in enumerate(tests))
    after = with_values(before, new)
    assert [dict(test.values) for test in hidden_tests(after)] == list(new.values())
    assert max(map(len, after.splitlines())) <= 120
    path = tmp_path / source.path.name
    path.write_text(after, encoding="utf-8")
    assert broken_rules(text.read(path), source.name, chapter) == []


def test_a_comment_keeps_an_argument_from_being_redrawn():
    block = "### BEGIN HIDDEN TESTS\n# kept: scale\ncheck.f(f, scale=7.5, seed=3)\n### END HIDDEN TESTS"
    (test,) = hidden_tests(block)
    assert test.kept == {"scale"}
    assert with_values(block, {0: {"seed": 4}}) == block.replace("seed=3", "seed=4")


@pytest.fixture
def small_course(tmp_path):
    """A root with one assignment, whose text may be changed."""
    source = next(source for source in ASSIGNMENTS if source.name.startswith("01"))
    folder = tmp_path / "course" / "assignments"
    folder.mkdir(parents=True)
    shutil.copy(source.path, folder)
    return tmp_path


def known(**answers: list[SimpleNamespace]) -> SimpleNamespace:
    return SimpleNamespace(**{"MUTANTS": [], "ALTERNATIVES": [], **answers})


@pytest.mark.timeout(300)
def test_what_is_drawn_is_proven_by_the_solution_and_an_unfair_draw_is_not_written(small_course, monkeypatch):
    source = sources(small_course)[0]
    before = source.path.read_text(encoding="utf-8")
    exercise = hidden_tests(before)[0].exercise
    right = SimpleNamespace(exercise=exercise, mistake="none at all", code="", loses=("all",), says="", status=None)
    third = hidden_tests(before)[2].exercise
    bad = SimpleNamespace(exercise=third, idea="no answer", code=f"def {third}(*a): return 0")
    monkeypatch.setattr(redrawing, "known_answers", lambda chapter: known(MUTANTS=[right], ALTERNATIVES=[bad]))
    monkeypatch.setattr(redrawing, "hidden_tests", lambda text: hidden_tests(text)[:3])
    monkeypatch.setattr(redrawing, "ATTEMPTS", 2)
    problem, unfair = redrawing.redraw(source, seed=3)
    assert "'no answer': it loses" in unfair
    assert problem.startswith(f"{source.name}: {exercise} keeps its hidden test; the last of 2 draws was not fair")
    assert "it got all points" in problem
    first, second, *rest = hidden_tests(source.path.read_text(encoding="utf-8"))
    unchanged = hidden_tests(before)
    assert first.values == unchanged[0].values
    assert second.values != unchanged[1].values
    assert [test.values for test in rest] == [test.values for test in unchanged[2:]]


def test_a_wrong_name_is_refused_in_a_sentence_that_lists_the_assignments_in_their_order(capsys):
    names = [source.name for source in ASSIGNMENTS]
    assert names == sorted(names)
    for arguments, sentence in (
        (["99"], f"No assignment is called '99': there are {', '.join(names)}.\n"),
        (["04a"], "No assignment is called '04a': there are 01_"),
        (["04", "--seed", "-1"], "a seed is 0 or more"),
    ):
        assert redraw.run(arguments) == 2
        assert sentence in capsys.readouterr().err
