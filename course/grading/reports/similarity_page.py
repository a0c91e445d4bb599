"""Similar answers side by side, as one HTML file for the teacher."""

from __future__ import annotations

import html
from collections.abc import Sequence

from course.grading.reports.similarity import LEAST_TOKENS, LEAST_WORDS, MOST_TOKENS, THRESHOLD, Group
from course.plural import counted

SHOWN_GROUPS, SHOWN_ANSWERS = 200, 6
MOST_CHARACTERS = 8000
"""Groups on the page, answers of one group, and characters of an answer; similar.csv has all."""

WHAT_IT_MEANS = f"""
<p><b>Similarity is a reason to look, not a verdict.</b> Two students may have learned together, followed the same
hints, or found the only simple solution. Read both answers, and talk with both students, before you conclude
anything.</p>
<p>Answers of at least {LEAST_TOKENS} tokens (texts: {LEAST_WORDS} words) are compared, up to {MOST_TOKENS} tokens,
without the given code, comments and docstrings. A group consists of the students whose answers are connected by
similarities of at least {THRESHOLD}; 1 means the same program up to names. If a group is large, the answer is the
usual one. <i>Word for word</i> are the lines that all of a group have and that the given text does not: the same
comment, name or slip says more than the same formula.</p>
"""

STYLE = (
    "body{font-family:sans-serif;margin:2em;max-width:110em}pre{background:#f4f4f4;padding:.6em;overflow:auto;font-size:85%}"
    ".group{display:grid;grid-template-columns:repeat(auto-fit,minmax(30em,1fr));gap:1em}h2{font-size:110%;margin-top:2em}"
)


def page(groups: Sequence[Group], compared: int) -> str:
    """The page; `compared`: the number of compared submissions."""
    head = "<!doctype html><meta charset='utf-8'><title>Similar answers</title>"
    shown = "".join(map(section, groups[:SHOWN_GROUPS]))
    left = len(groups) - SHOWN_GROUPS
    more = f"<p>{counted(left, 'more group')} in similar.csv.</p>" if left > 0 else ""
    found = f"<p>{counted(len(groups), 'group')} of answers among {counted(compared, 'submission')}.</p>"
    return f"{head}<style>{STYLE}</style><h1>Similar answers</h1>{WHAT_IT_MEANS}{found}{shown}{more}"


def section(group: Group) -> str:
    """One group."""
    title = f"{group.first.exercise}: {', '.join(group.students)}"
    least = min(one.similarity for one in group.members)
    facts = f"{group.first.assignment}; {counted(len(group.members), 'student')}; similarity at least {least:.2f}; "
    facts += f"together in {counted(group.exercises, 'exercise')}"
    shared = "\n".join(group.shared)[:MOST_CHARACTERS]
    word_for_word = f"<p>Word for word in all:</p><pre>{html.escape(shared)}</pre>" if shared else ""
    answers = "".join(
        f"<div><p>{html.escape(one.answer.student)}: {one.similarity:.2f} with {html.escape(one.most_like)}, "
        f"with names {one.same_names:.2f}</p><pre>{html.escape(one.answer.text[:MOST_CHARACTERS])}</pre></div>"
        for one in group.members[:SHOWN_ANSWERS]
    )
    return f"<h2>{html.escape(title)}</h2><p>{html.escape(facts)}</p>{word_for_word}<div class='group'>{answers}</div>"
