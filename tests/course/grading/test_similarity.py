"""Copied answers are found whatever their names are; independent right answers and the release's own text are not."""

from __future__ import annotations

import copy
import re
from functools import cache

import nbformat
import pytest

pytest.importorskip("rapidfuzz")

from course.grading.reports import similarity
from course.grading.reports.similarity import answers_in, similar_groups
from course.grading.reports.similarity_page import page
from course.notebooks.roles import role_of
from course.setup.bootstrap import ROOT
from tests.mutants import of_chapter

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


def groups_of(chapter: str, **students: nbformat.NotebookNode):
    release = notebook("exercises", chapter)
    return similar_groups(
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
    (group,) = groups_of(
        CHAPTER,
        ann=handed_in(CHAPTER, ring_reduce_scatter=original),
        bob=handed_in(CHAPTER, ring_reduce_scatter=disguised(original)),
    )
    ann, bob = group.rows(7)
    assert (ann["similarity"], ann["group"], ann["lines"]) == (1.0, 7, original.strip())
    assert ann["same_names"] == bob["same_names"] < 1.0
    assert (ann["most_like"], bob["most_like"]) == ("bob", "ann")


def test_the_untouched_release_has_no_answers_to_compare():
    untouched = notebook("exercises", CHAPTER)
    assert list(answers_in("ann", CHAPTER, untouched, untouched)) == []


def test_independent_right_answers_are_not_called_alike():
    """The solution and the alternatives of tests/mutants: measured, the most alike of them reach 0.74."""
    for chapter in CHAPTERS:
        known = of_chapter(chapter.split("_", 1)[1])
        students = {"solution": notebook("solutions", chapter)}
        for number, answer in enumerate(known.ALTERNATIVES):
            students[f"student{number}"] = handed_in(chapter, **{answer.exercise: answer.code})
        assert groups_of(chapter, **students) == []


def test_answers_that_are_short_by_necessity_are_not_compared():
    code = solution(CHAPTER, "ring_seconds")
    assert groups_of(CHAPTER, **{name: handed_in(CHAPTER, ring_seconds=code) for name in ("ann", "bob")}) == []


def test_students_who_are_together_in_more_exercises_come_first():
    one, two = solution(CHAPTER, "ring_all_gather"), solution(CHAPTER, "is_ring")
    groups = groups_of(
        CHAPTER,
        ann=handed_in(CHAPTER, ring_all_gather=one, is_ring=two),
        bob=handed_in(CHAPTER, ring_all_gather=one, is_ring=two),
        eve=handed_in(CHAPTER, ring_all_gather=one),
    )
    assert [(group.students, group.first.exercise, group.exercises) for group in groups] == [
        (["ann", "bob"], "is_ring", 2), (["ann", "bob", "eve"], "ring_all_gather", 1),
    ]  # fmt: skip


def answer(student: str, tokens: str, *own: str) -> similarity.ComparedAnswer:
    return similarity.ComparedAnswer(student, CHAPTER, "is_ring", False, tuple(tokens), "\n".join(own), own)


def test_a_group_is_connected_and_shares_the_lines_that_all_have():
    """Each is like the next one; the first and the last are not alike, and dan is like nobody."""
    chain = [
        answer("ann", "abcdefghij" * 3, "# my own way", "total = 0", "x = 1", ")"),
        answer("bob", "abcdefghij" * 2 + "ABCDEFghij", "total = 0", "# my own way", ")"),
        answer("cyd", "abcdefghijABCDEFghijABCDefghij", "# my own way", "total = 0 ", ")"),
        answer("dan", "0123456789" * 3, "# my own way"),
    ]
    (group,) = similar_groups(chain, threshold=0.7)
    assert group.students == ["ann", "bob", "cyd"]
    assert group.shared == ["# my own way"]
    assert [row["most_like"] for row in group.rows(1)] == ["bob", "ann", "bob"]
    assert similar_groups([chain[0], chain[2]], threshold=0.7) == []


def test_two_submissions_of_one_person_are_no_group():
    twice = [answer("ruth/1", "abcdefghij" * 3), answer("ruth/2", "abcdefghij" * 3)]
    assert len(similar_groups(twice)) == 1
    assert similar_groups(twice, {"ruth/1": "Ruth Roth (s17)", "ruth/2": "Ruth Roth (s17)"}) == []


def test_the_lines_that_a_group_shares_are_not_those_of_the_given_text():
    copied = solution(CHAPTER, "ring_reduce_scatter") + "\n    # a slip of my own"
    (group,) = groups_of(CHAPTER, **{name: handed_in(CHAPTER, ring_reduce_scatter=copied) for name in ("ann", "bob")})
    given = {line.strip() for cell in notebook("exercises", CHAPTER).cells for line in cell.source.splitlines()}
    assert "# a slip of my own" in group.shared
    assert given.isdisjoint(group.shared)
    assert any(line.strip() in given for line in copied.splitlines()), "the answer has lines of the given text"


def test_copied_words_and_copied_cells_of_ones_own_are_found():
    words = "The ring sends two times p minus one messages and each takes alpha so that for short vectors " * 3
    students = {}
    for name in ("ann", "bob"):
        students[name] = handed_in(CHAPTER, why_slower=words)
        own = "def helper(values):\n    total = 0\n" + "".join(f"    total += values[{i}] * {i}\n" for i in range(12))
        students[name].cells.append(nbformat.v4.new_code_cell(own))
    assert {group.first.exercise for group in groups_of(CHAPTER, **students)} == {"why_slower", "(other cells)"}


def test_what_is_no_python_is_compared_by_its_words():
    for code in ("def f(:\n  x = (", "\t\0 if", "def f():\n        x\n  y", "'''never closed"):
        assert similarity.code_tokens(code)


def test_the_page_says_that_similarity_is_no_verdict_and_shows_code_as_text():
    code = solution(CHAPTER, "is_ring").replace("return", "'<script>alert(1)</script>'; return", 1)
    groups = groups_of(CHAPTER, ann=handed_in(CHAPTER, is_ring=code), bob=handed_in(CHAPTER, is_ring=code))
    text = page(groups, compared=2)
    assert "a reason to look, not a verdict" in text
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "://" not in text, "the page asks for nothing from elsewhere"
