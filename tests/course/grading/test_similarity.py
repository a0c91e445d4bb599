"""Copied answers are found whatever their names are; independent right answers and the release's own text are not."""

from __future__ import annotations

import copy
import re
from functools import cache
from importlib import import_module

import nbformat
import pytest

pytest.importorskip("rapidfuzz")

from course.grading.reports import similarity, similarity_page
from course.grading.reports.similarity import answers_in, similar_pairs
from course.grading.reports.similarity_page import page
from course.notebooks.roles import role_of
from course.setup.bootstrap import ROOT

CHAPTERS = sorted(path.name for path in (ROOT / "solutions").iterdir() if path.is_dir())
CHAPTER = "04_messages_and_collectives"


@cache
def notebook(folder: str, chapter: str) -> nbformat.NotebookNode:
    return nbformat.read(ROOT / folder / chapter / f"{chapter}.ipynb", as_version=4)


def handed_in(chapter: str, **answers: str) -> nbformat.NotebookNode:
    """The release with these answers."""
    written = copy.deepcopy(notebook("exercises", chapter))
    for cell in written.cells:
        cell.source = answers.get(role_of(cell).get("grade_id", ""), cell.source)
    return written


def solution(chapter: str, exercise: str) -> str:
    return next(cell.source for cell in notebook("solutions", chapter).cells if cell.id == exercise)


def pairs_of(chapter: str, **students: nbformat.NotebookNode):
    release = notebook("exercises", chapter)
    return similar_pairs(
        answer for name, written in students.items() for answer in answers_in(name, chapter, written, release)
    )


def disguised(code: str) -> str:
    """A copy as students make it: other names, other comments, other layout."""
    for number, name in enumerate(["distance", "partner", "total", "growing", "chunks", "left", "right", "received"]):
        code = re.sub(rf"\b{name}\b", f"value_{number}", code)
    code = re.sub(r'""".*?"""', '"""My own words."""', code, flags=re.S)
    return code.replace("\n", "  # thought of by myself\n").replace(", ", ",")


def test_a_copy_with_other_names_comments_and_layout_is_found():
    original = solution(CHAPTER, "ring_reduce_scatter")
    (pair,) = pairs_of(
        CHAPTER,
        ann=handed_in(CHAPTER, ring_reduce_scatter=original),
        bob=handed_in(CHAPTER, ring_reduce_scatter=disguised(original)),
    )
    assert pair.similarity == 1.0
    assert pair.same_names < 1.0
    assert (pair.row["student_1"], pair.row["student_2"], pair.row["lines_1"]) == ("ann", "bob", original.strip())


def test_the_untouched_release_has_no_answers_to_compare():
    untouched = notebook("exercises", CHAPTER)
    assert list(answers_in("ann", CHAPTER, untouched, untouched)) == []


def test_independent_right_answers_are_not_called_alike():
    """The solution and the alternatives of tests/mutants: measured, the most alike of them reach 0.74."""
    for chapter in CHAPTERS:
        known = import_module(f"tests.mutants.{chapter.split('_', 1)[1]}")
        students = {"solution": notebook("solutions", chapter)}
        for number, answer in enumerate(known.ALTERNATIVES):
            students[f"student{number}"] = handed_in(chapter, **{answer.exercise: answer.code})
        assert [pair.row for pair in pairs_of(chapter, **students)] == []


def test_answers_that_are_short_by_necessity_are_not_compared():
    code = solution(CHAPTER, "ring_seconds")
    assert pairs_of(CHAPTER, **{name: handed_in(CHAPTER, ring_seconds=code) for name in ("ann", "bob")}) == []


def test_a_pair_says_how_many_others_have_the_same_and_in_how_many_exercises_it_is_alike():
    one, two = solution(CHAPTER, "ring_all_gather"), solution(CHAPTER, "is_ring")
    pairs = pairs_of(
        CHAPTER,
        ann=handed_in(CHAPTER, ring_all_gather=one, is_ring=two),
        bob=handed_in(CHAPTER, ring_all_gather=one, is_ring=two),
        eve=handed_in(CHAPTER, ring_all_gather=one),
    )
    found = [
        (pair.first.student, pair.second.student, pair.first.exercise, pair.others, pair.exercises) for pair in pairs
    ]
    assert sorted(found[:2]) == [("ann", "bob", "is_ring", 0, 2), ("ann", "bob", "ring_all_gather", 1, 2)]
    assert found[2:] == [("ann", "eve", "ring_all_gather", 1, 1), ("bob", "eve", "ring_all_gather", 1, 1)]


def test_copied_words_and_copied_cells_of_ones_own_are_found():
    words = "The ring sends two times p minus one messages and each takes alpha so that for short vectors " * 3
    students = {}
    for name in ("ann", "bob"):
        students[name] = handed_in(CHAPTER, why_slower=words)
        own = "def helper(values):\n    total = 0\n" + "".join(f"    total += values[{i}] * {i}\n" for i in range(12))
        students[name].cells.append(nbformat.v4.new_code_cell(own))
    assert [pair.first.exercise for pair in pairs_of(CHAPTER, **students)] == ["why_slower", "(other cells)"]


def test_what_is_no_python_is_compared_by_its_words():
    for code in ("def f(:\n  x = (", "\t\0 if", "def f():\n        x\n  y", "'''never closed"):
        assert similarity.code_tokens(code)


def test_where_more_pairs_are_alike_than_are_kept_the_page_says_so(monkeypatch):
    code = solution(CHAPTER, "is_ring")
    students = {name: handed_in(CHAPTER, is_ring=code) for name in ("ann", "bob", "eve")}
    assert "<p>3 pairs" in page(pairs_of(CHAPTER, **students), compared=3)
    for module in (similarity, similarity_page):
        monkeypatch.setattr(module, "MOST_PAIRS", 2)
    assert "<p>At least 2 pairs" in page(pairs_of(CHAPTER, **students), compared=3)


def test_the_page_says_that_similarity_is_no_verdict_and_shows_code_as_text():
    code = solution(CHAPTER, "is_ring").replace("return", "'<script>alert(1)</script>'; return", 1)
    pairs = pairs_of(CHAPTER, ann=handed_in(CHAPTER, is_ring=code), bob=handed_in(CHAPTER, is_ring=code))
    text = page(pairs, compared=2)
    assert "a reason to look, not a verdict" in text
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "://" not in text, "the page asks for nothing from elsewhere"
