"""Similar answers side by side, as one HTML file for the teacher."""

from __future__ import annotations

import html
from collections.abc import Sequence

from course.grading.reports.similarity import LEAST_TOKENS, LEAST_WORDS, MOST_PAIRS, MOST_TOKENS, THRESHOLD, Pair
from course.plural import counted

SHOWN_PAIRS = 200
MOST_CHARACTERS = 8000
"""Pairs on the page, and characters of an answer; similar.csv has all pairs that are kept."""

WHAT_IT_MEANS = f"""
<p><b>Similarity is a reason to look, not a verdict.</b> Two students may have learned together, followed the same
hints, or found the only simple solution. Read both answers, and talk with both students, before you conclude
anything.</p>
<p>Answers of at least {LEAST_TOKENS} tokens (texts: {LEAST_WORDS} words) are compared, up to {MOST_TOKENS} tokens,
without the given code, comments and docstrings. Two answers are listed if their similarity is at least {THRESHOLD};
1 means the same program up to names. <i>Same names</i> is the similarity with names. <i>Others</i> is the number of
other students with an answer as similar: if there are many, the answer is the usual one.</p>
"""

STYLE = (
    "body{font-family:sans-serif;margin:2em;max-width:110em}pre{background:#f4f4f4;padding:.6em;overflow:auto;font-size:85%}"
    ".pair{display:grid;grid-template-columns:1fr 1fr;gap:1em}h2{font-size:110%;margin-top:2em}"
)


def page(pairs: Sequence[Pair], compared: int) -> str:
    """The page; `compared`: the number of compared submissions."""
    head = "<!doctype html><meta charset='utf-8'><title>Similar answers</title>"
    shown = "".join(map(section, pairs[:SHOWN_PAIRS]))
    more = f"<p>{len(pairs) - SHOWN_PAIRS} more pairs are in similar.csv.</p>" if len(pairs) > SHOWN_PAIRS else ""
    least = "At least " if len(pairs) == MOST_PAIRS else ""
    found = f"<p>{least}{counted(len(pairs), 'pair')} of answers among {counted(compared, 'submission')}.</p>"
    return f"{head}<style>{STYLE}</style><h1>Similar answers</h1>{WHAT_IT_MEANS}{found}{shown}{more}"


def section(pair: Pair) -> str:
    """One pair."""
    title = f"{pair.first.exercise}: {pair.first.student} and {pair.second.student}"
    facts = (
        f"{pair.first.assignment}; similarity {pair.similarity:.2f}, same names {pair.same_names:.2f}, "
        f"others {pair.others}; alike in {counted(pair.exercises, 'exercise')}"
    )
    columns = "".join(
        f"<pre>{html.escape(answer.text[:MOST_CHARACTERS])}</pre>" for answer in (pair.first, pair.second)
    )
    return f"<h2>{html.escape(title)}</h2><p>{html.escape(facts)}</p><div class='pair'>{columns}</div>"
