"""The feedback page: a table of points, then the student's notebook with the outcomes of the checks."""

from __future__ import annotations

import copy
import html
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import nbformat
from IPython.lib.lexers import IPythonLexer
from nbformat.v4 import new_markdown_cell
from pygments import highlight
from pygments.formatters import HtmlFormatter

from course.grading.feedback.markdown import as_html, cleaned
from course.grading.grade import BY_HAND, Grade, in_words
from course.judging import Status
from course.notebooks.roles import as_released
from course.plural import counted

MOST_OF_CELL, MOST_OF_ALL = 20_000, 400_000
"""Characters of one cell, and of all of them, that are shown."""

MOST_IN_COLOUR, MOST_SECONDS = 8_000, 5.0
"""Characters of code that are shown in colours, and seconds after which the remaining cells are shown as plain text.

For some texts the time of highlighting grows with the square of the length.
"""

STYLES = Path(__file__).with_name("page.css")

PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
{styles}
</style>
</head>
<body>
{body}
</body>
</html>
"""
"""The policy makes the browser refuse scripts, and anything that would be loaded from elsewhere."""

CODE = HtmlFormatter(nowrap=True)

SUMMARY = re.compile(r'<section id="points">.*?</section>', re.DOTALL)
"""The part of a page with the points. It is the first of all, and a student's text cannot have this element."""


def page(notebook: nbformat.NotebookNode, grade: Grade) -> str:
    """The page of a graded notebook, one HTML file, without hidden tests; it runs no script and loads nothing."""
    return finished(grade, [summary(grade), *cells_as_html(shown(notebook.cells))])


def finished(grade: Grade, blocks: Sequence[str]) -> str:
    """The file with this HTML as its body."""
    title = html.escape(f"{grade.assignment or 'no assignment'}: {grade.student}")
    styles = f"{STYLES.read_text(encoding='utf-8')}{CODE.get_style_defs('div.code')}"
    return PAGE.format(title=title, styles=styles, body="\n".join(blocks))


def cells_as_html(cells: Iterable[nbformat.NotebookNode]) -> Iterator[str]:
    """The cells, in bounded time."""
    until = time.monotonic() + MOST_SECONDS
    for cell in cells:
        yield cell_as_html(cell, is_plain=time.monotonic() > until)


def cell_as_html(cell: nbformat.NotebookNode, is_plain: bool = False) -> str:
    """A cell as HTML: its text, or its code followed by the outcomes; is_plain: without colours and markup."""
    if cell.cell_type == "markdown" and not is_plain:
        return as_html(cell.source, cell.get("attachments"))
    if cell.cell_type != "code":
        return f"<pre>{html.escape(cell.source)}</pre>"
    has_colours = not is_plain and len(cell.source) <= MOST_IN_COLOUR
    source = highlight(cell.source, IPythonLexer(), CODE) if has_colours else html.escape(cell.source)
    code = f'<div class="code"><pre>{source}</pre></div>'
    panels = [output.data["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]
    return "\n".join([code, *(f'<div class="outcome">{cleaned(panel)}</div>' for panel in panels)])


def shown(cells: Sequence[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """The cells without hidden tests, cut where they are too long to show."""
    left, kept = MOST_OF_ALL, []
    for cell in cells:
        source = as_released(cell.source) if cell.cell_type == "code" else cell.source
        length = min(len(source), MOST_OF_CELL)
        if length > left:
            kept.append(new_markdown_cell("*What follows is too long to be shown.*", id="cut"))
            break
        left -= length
        cell = copy.copy(cell)
        cell.source = source if len(source) <= length else f"{source[:length]}\n… (cut here)"
        kept.append(cell)
    return kept


def plain_page(grade: Grade) -> str:
    """The page of a notebook that cannot be shown: points and remarks, no cells."""
    remarks = "".join(f"<li>{html.escape(remark)}</li>" for remark in grade.judgement.remarks)
    return finished(grade, [summary(grade), f"<ul>{remarks}</ul>"])


def summary(grade: Grade, lateness: str = "", penalty: float = 0.0, doubt: str = "") -> str:
    """The points and the teacher's comments as HTML.

    lateness: how late it was handed in, in words; penalty: the points that this costs.
    doubt: why the points do not count yet.
    """
    last = [outcomes[-1] for outcomes in grade.judgement.outcomes.values()]
    rows = [(one.exercise, in_words(one), one.points, one.possible) for one in last]
    rows += [
        (name, BY_HAND if text else Status.NOT_ATTEMPTED.value, 0.0 if not text else None, of)
        for name, of, text in grade.by_hand
    ]
    has_comments = bool(grade.comments)
    lines = []
    for exercise, outcome, points, of in rows:
        is_given = exercise in grade.given
        points = grade.given.get(exercise, points)
        outcome = ("graded by hand" if outcome == BY_HAND else f"{outcome}; points by hand") if is_given else outcome
        cells = [f"<code>{html.escape(exercise)}</code>", html.escape(outcome),
                 f"of {of:g}" if points is None else f"{points:g} of {of:g}"]  # fmt: skip
        cells += [html.escape(grade.comments.get(exercise, "")).replace("\n", "<br>")] if has_comments else []
        lines.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("exercise", "outcome", "points", "comment")[: 3 + has_comments])
    return (
        f'<section id="points"><h1>{html.escape(grade.assignment or "no assignment")}</h1>'
        f"<p><code>{html.escape(grade.student)}</code></p><p>{sums(grade, penalty, doubt)}</p>"
        + (f"<p>Late: {html.escape(lateness)}.</p>" if lateness else "")
        + (f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>" if lines else "")
        + "</section>"
    )


def sums(grade: Grade, penalty: float, doubt: str) -> str:
    """The points by the checks, those by hand, the penalty, and the final points."""
    if not grade.judgement.outcomes:
        return "<b>No points</b>: it could not be graded."
    parts = [f"<b>{grade.points:g} of {grade.possible:g} points</b> by the checks"]
    if grade.given:
        parts.append(f"{grade.points_by_hand:+g} by hand")
    if penalty:
        parts.append(f"{-round(penalty, 2):g} for lateness")
    text = f"{', '.join(parts)}."
    if doubt:
        return f"{text} These points do not count yet: {html.escape(doubt)}."
    if grade.to_read or grade.unfinished:
        return f"{text} {counted(grade.to_read + len(grade.unfinished), 'exercise')} still to be graded by hand."
    if len(parts) > 1 or grade.by_hand:
        text += f" Final points: <b>{round(grade.total - penalty, 2):g} of {grade.total_possible:g}</b>."
    return text


def with_points(page: str, section: str) -> str:
    """A page with another summary."""
    return SUMMARY.sub(lambda found: section, page, count=1)
