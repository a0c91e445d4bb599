"""Pairs of similar answers: programs that differ in little more than names, comments and layout.

Similarity is a reason to look, not a verdict. Short answers are similar by necessity: answers of fewer than
LEAST_TOKENS tokens are not compared, and each pair says how many other students have an answer as similar.
"""

from __future__ import annotations

import builtins
import io
import keyword
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
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

MOST_PAIRS = 1000
"""Rows that are kept: if a class copied one answer from the internet, every pair is similar."""

COLUMNS = (
    "assignment", "student_1", "student_2", "exercises_alike", "exercise", "similarity", "same_names", "tokens",
    "others_as_like", "lines_1", "lines_2",
)  # fmt: skip
"""The columns of similar.csv."""

OTHER_CELLS = "(other cells)"


@dataclass(frozen=True)
class ComparedAnswer:
    """A student's answer to an exercise, a program or a text: as tokens or words, and as it was written."""

    student: str
    assignment: str
    exercise: str
    is_code: bool
    tokens: tuple[str, ...]
    text: str

    @property
    def is_long(self) -> bool:
        """Whether it is long enough to be compared."""
        return len(self.tokens) >= (LEAST_TOKENS if self.is_code else LEAST_WORDS)


@dataclass(frozen=True)
class Pair:
    """Two similar answers.

    similarity      from 0 to 1; names of variables do not matter
    same_names      the same, but names matter
    others          number of other students with an answer as similar to one of these two
    exercises       number of exercises of the assignment in which these two students are similar
    """

    first: ComparedAnswer
    second: ComparedAnswer
    similarity: float
    same_names: float
    others: int = 0
    exercises: int = 1

    @property
    def students(self) -> tuple[str, str, str]:
        """The assignment and the two."""
        return self.first.assignment, self.first.student, self.second.student

    @property
    def row(self) -> dict[str, Any]:
        """The row in similar.csv."""
        return {
            "assignment": self.first.assignment, "student_1": self.first.student, "student_2": self.second.student,
            "exercises_alike": self.exercises, "exercise": self.first.exercise,
            "similarity": round(self.similarity, 3), "same_names": round(self.same_names, 3),
            "tokens": min(len(self.first.tokens), len(self.second.tokens)), "others_as_like": self.others,
            "lines_1": self.first.text, "lines_2": self.second.text,
        }  # fmt: skip


def answers_in(
    student: str, assignment: str, notebook: nbformat.NotebookNode, release: nbformat.NotebookNode
) -> Iterator[ComparedAnswer]:
    """A student's answers: one for each answer cell of the release, and one for all cells that the student added.

    The text of the release is removed first: its cells, and the head of each function.
    """
    given = {role_of(cell).get("grade_id", cell.get("id")): cell for cell in release.cells}
    released = {cell.source.strip() for cell in release.cells}
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
        yield ComparedAnswer(student, assignment, role["grade_id"], is_code, tokens[:MOST_TOKENS], cell.source.strip())
    if added:
        text = "\n".join(added)
        yield ComparedAnswer(student, assignment, OTHER_CELLS, True, code_tokens(text)[:MOST_TOKENS], text.strip())


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


def similar_pairs(answers: Iterable[ComparedAnswer], threshold: float = THRESHOLD) -> list[Pair]:
    """All pairs of answers to one exercise whose similarity is at least `threshold`.

    The similarity of answers with m and n tokens is 1 - d / (m + n), where d tokens must be inserted or deleted to turn
    one answer into the other.

    Pairs of students who are similar in most exercises come first, then those with the fewest `others`. At most
    MOST_PAIRS are kept.
    """
    by_exercise: dict[tuple[str, str], list[ComparedAnswer]] = defaultdict(list)
    for answer in sorted(answers, key=lambda answer: answer.student):
        if answer.is_long:
            by_exercise[answer.assignment, answer.exercise].append(answer)
    found: list[Pair] = []
    for those in by_exercise.values():
        found += with_company(list(pairs_among(those, threshold)))
    together = Counter(pair.students for pair in found)
    found = [replace(pair, exercises=together[pair.students]) for pair in found]
    return sorted(found, key=lambda pair: (-pair.exercises, pair.others, pair.students, -pair.similarity))[:MOST_PAIRS]


def pairs_among(answers: Sequence[ComparedAnswer], threshold: float) -> Iterator[Pair]:
    """The pairs of one exercise."""
    forms = [renamed(answer.tokens) if answer.is_code else answer.tokens for answer in answers]
    for place, one in enumerate(answers):
        for before, other in enumerate(answers[:place]):
            if one.student == other.student:
                continue
            alike = Indel.normalized_similarity(forms[before], forms[place], score_cutoff=threshold)
            if alike >= threshold:
                yield Pair(other, one, alike, Indel.normalized_similarity(other.tokens, one.tokens))


def with_company(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs of one exercise with their number of `others`."""
    alike: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        alike[pair.first.student].add(pair.second.student)
        alike[pair.second.student].add(pair.first.student)
    return [
        replace(pair, others=len((alike[pair.first.student] | alike[pair.second.student]) - set(pair.students[1:])))
        for pair in pairs
    ]
