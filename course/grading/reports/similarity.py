"""Groups of similar answers: programs that differ in little more than names, comments and layout.

Similarity is a reason to look, not a verdict. Short answers are similar by necessity: answers of fewer than
LEAST_TOKENS tokens are not compared. A large group has the usual answer.
"""

from __future__ import annotations

import builtins
import io
import keyword
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import nbformat
from rapidfuzz.distance import Indel

from course.notebooks.roles import role_of, with_roles

LEAST_TOKENS = 60
LEAST_WORDS = 25
THRESHOLD = 0.85

MOST_TOKENS = 4000
"""Tokens of one answer; the rest is not compared."""

LEAST_OF_LINE = 4
"""Characters of a line that students may be said to share; shorter ones are brackets."""

COLUMNS = (
    "assignment", "exercise", "group", "students", "exercises_alike", "student", "most_like", "similarity",
    "same_names", "tokens", "shared", "lines",
)  # fmt: skip
"""The columns of similar.csv: a row for each student of each group."""

OTHER_CELLS = "(other cells)"


@dataclass(frozen=True)
class ComparedAnswer:
    """A student's answer to an exercise, a program or a text: as tokens or words, and as it was written.

    own: its lines that are not in the given text.
    """

    student: str
    assignment: str
    exercise: str
    is_code: bool
    tokens: tuple[str, ...]
    text: str
    own: tuple[str, ...] = ()

    @property
    def is_long(self) -> bool:
        """Whether it is long enough to be compared."""
        return len(self.tokens) >= (LEAST_TOKENS if self.is_code else LEAST_WORDS)


@dataclass(frozen=True)
class Likeness:
    """An answer of a group, and the one of the group that is most like it.

    similarity      from 0 to 1; names of variables do not matter
    same_names      the same, but names matter
    """

    answer: ComparedAnswer
    most_like: str
    similarity: float
    same_names: float


@dataclass(frozen=True)
class Group:
    """Students whose answers to one exercise are similar, each to at least one other's of the group.

    members: ordered by student.
    exercises: number of exercises of the assignment in which a group has all of these students.
    """

    members: tuple[Likeness, ...]
    exercises: int = 1

    @property
    def first(self) -> ComparedAnswer:
        return self.members[0].answer

    @property
    def students(self) -> list[str]:
        return [one.answer.student for one in self.members]

    @property
    def shared(self) -> list[str]:
        """The lines that all have word for word, beyond the given text."""
        own = [set(one.answer.own) for one in self.members]
        lines = dict.fromkeys(self.first.own)
        return [line for line in lines if len(line) >= LEAST_OF_LINE and all(line in those for those in own)]

    def rows(self, number: int) -> Iterator[dict[str, Any]]:
        """The rows in similar.csv of the group with this number."""
        for one in self.members:
            yield {
                "assignment": self.first.assignment, "exercise": self.first.exercise, "group": number,
                "students": len(self.members), "exercises_alike": self.exercises, "student": one.answer.student,
                "most_like": one.most_like, "similarity": round(one.similarity, 3),
                "same_names": round(one.same_names, 3), "tokens": len(one.answer.tokens),
                "shared": "\n".join(self.shared), "lines": one.answer.text,
            }  # fmt: skip


def answers_in(
    student: str, assignment: str, notebook: nbformat.NotebookNode, release: nbformat.NotebookNode
) -> Iterator[ComparedAnswer]:
    """A student's answers: one for each answer cell of the release, and one for all cells that the student added.

    The text of the release is removed first: its cells, and the head of each function.
    """
    given = {role_of(cell).get("grade_id", cell.get("id")): cell for cell in release.cells}
    released = {cell.source.strip() for cell in release.cells}
    given_lines = {line.strip() for cell in release.cells for line in cell.source.splitlines()}

    def own(text: str) -> tuple[str, ...]:
        return tuple(line for line in map(str.strip, text.splitlines()) if line not in given_lines)

    added = []
    for cell in with_roles(notebook, release).cells:
        role = role_of(cell)
        original = given.get(role.get("grade_id"))
        if cell.source.strip() in released or role.get("locked"):
            continue
        if original is None or not role.get("solution"):
            added += [cell.source] if cell.cell_type == "code" else []
            continue
        is_code = cell.cell_type == "code"
        tokens = without_head(code_tokens(cell.source)) if is_code else tuple(cell.source.lower().split())
        text = cell.source.strip()
        yield ComparedAnswer(student, assignment, role["grade_id"], is_code, tokens[:MOST_TOKENS], text, own(text))
    if added:
        text = "\n".join(added).strip()
        yield ComparedAnswer(student, assignment, OTHER_CELLS, True, code_tokens(text)[:MOST_TOKENS], text, own(text))


def without_head(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """A function's tokens without `def name(parameters):`, which is given.

    >>> without_head(("def", "f", "(", "x", ":", "int", ")", ":", "return", "x"))
    ('return', 'x')
    """
    depth = 0
    for place, token in enumerate(tokens if tokens[:1] == ("def",) else ()):
        depth += (token in ("(", "[", "{")) - (token in (")", "]", "}"))
        if token == ":" and depth == 0:
            return tokens[place + 1 :]
    return tokens


def code_tokens(source: str) -> tuple[str, ...]:
    """The tokens of a program, without comments, docstrings, blank lines and layout; words if it is not Python."""
    found: list[str] = []
    begins_line = True
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER):
                continue
            if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
                begins_line = True
                continue
            if not (begins_line and token.type == tokenize.STRING):
                found.append(token.string)
            begins_line = False
    except (tokenize.TokenError, SyntaxError):
        return tuple(source.split())
    return tuple(found)


def renamed(tokens: Sequence[str]) -> tuple[str, ...]:
    """Tokens in which each name is replaced by the number of names since its last use, 0 for a new one.

    So renaming changes nothing, and an inserted line changes little. Attributes and built-in functions keep their
    names, since a student cannot rename them.

    >>> renamed(("for", "x", "in", "range", "(", "n", ")", ":", "x", "+=", "n", ".", "size"))
    ('for', '#0', 'in', 'range', '(', '#0', ')', ':', '#2', '+=', '#2', '.', 'size')
    """
    last: dict[str, int] = {}
    found, names = [], 0
    for place, token in enumerate(tokens):
        is_attribute = place > 0 and tokens[place - 1] == "."
        if not token.isidentifier() or keyword.iskeyword(token) or is_attribute or hasattr(builtins, token):
            found.append(token)
            continue
        names += 1
        found.append(f"#{names - last.get(token, names)}")
        last[token] = names
    return tuple(found)


def similar_groups(
    answers: Iterable[ComparedAnswer], persons: Mapping[str, str] | None = None, threshold: float = THRESHOLD
) -> list[Group]:
    """The groups of answers to one exercise that are connected by similarities of at least `threshold`.

    persons: whose a submission is, by the answers' `student`; two of one person are not compared.

    The similarity of answers with m and n tokens is 1 - d / (m + n), where d tokens must be inserted or deleted to turn
    one answer into the other.

    Groups whose students are together in most exercises come first, then the smallest.
    """
    by_exercise: dict[tuple[str, str], list[ComparedAnswer]] = defaultdict(list)
    for answer in sorted(answers, key=lambda answer: answer.student):
        if answer.is_long:
            by_exercise[answer.assignment, answer.exercise].append(answer)
    found = [group for those in by_exercise.values() for group in groups_among(those, persons or {}, threshold)]
    found = [
        replace(group, exercises=len({
            other.first.exercise for other in found
            if other.first.assignment == group.first.assignment and set(group.students) <= set(other.students)
        }))
        for group in found
    ]  # fmt: skip
    return sorted(found, key=lambda one: (-one.exercises, len(one.members), one.first.assignment, one.students))


def groups_among(answers: Sequence[ComparedAnswer], persons: Mapping[str, str], threshold: float) -> list[Group]:
    """The groups of one exercise: the connected components of the similar pairs."""
    forms = [renamed(answer.tokens) if answer.is_code else answer.tokens for answer in answers]
    person = [persons.get(answer.student, answer.student) for answer in answers]
    nearest: dict[int, tuple[float, int]] = {}
    group_of = list(range(len(answers)))
    for second in range(len(answers)):
        for first in range(second):
            if person[first] == person[second]:
                continue
            alike = Indel.normalized_similarity(forms[first], forms[second], score_cutoff=threshold)
            if alike < threshold:
                continue
            for one, other in ((first, second), (second, first)):
                nearest[one] = max(nearest.get(one, (0.0, other)), (alike, other), key=lambda known: known[0])
            kept, joined = group_of[first], group_of[second]
            if kept != joined:
                group_of = [kept if group == joined else group for group in group_of]
    members: dict[int, list[Likeness]] = defaultdict(list)
    for place, (alike, other) in sorted(nearest.items()):
        same_names = Indel.normalized_similarity(answers[place].tokens, answers[other].tokens)
        members[group_of[place]].append(Likeness(answers[place], answers[other].student, alike, same_names))
    return [Group(tuple(those)) for those in members.values()]
