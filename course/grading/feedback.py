"""A feedback page: the student's notebook with what the checks found and a table of points on top."""

from __future__ import annotations

import html

import bleach
import nbformat
from bleach.css_sanitizer import CSSSanitizer
from nbconvert import HTMLExporter
from nbformat.v4 import new_markdown_cell
from nbgrader.preprocessors import ClearHiddenTests

from course.grading.grades import BY_HAND, Grade

TAGS = (
    *("a", "b", "blockquote", "br", "code", "div", "em", "h1", "h2", "h3", "h4", "hr", "i", "img", "li", "ol", "p"),
    *("pre", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul"),
)
ATTRIBUTES = {"*": ["class", "id", "style"], "a": ["href", "title"], "img": ["alt", "src"]}
STYLES = CSSSanitizer(
    ("border-left", "color", "margin", "padding", "text-align", "vertical-align", "white-space", "width")
)
"""What a feedback page may contain: what markdown and the panels of outcomes are made of."""


def page(notebook: nbformat.NotebookNode, grade: Grade) -> str:
    """The page of a graded notebook, one HTML file, without hidden tests, and without scripts of the student's."""
    notebook, _ = ClearHiddenTests()(notebook, {})
    notebook.cells.insert(0, new_markdown_cell(summary(grade), id="summary"))
    exporter = HTMLExporter(sanitize_html=True, filters={"clean_html": cleaned})
    text, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": f"{grade.assignment}: {grade.student}"}})
    return text


def damaged_page(grade: Grade) -> str:
    """The page for a file that could not be read."""
    remarks = "".join(f"<li>{html.escape(remark)}</li>" for remark in grade.judgement.remarks)
    title = html.escape(f"{grade.assignment or 'no assignment'}: {grade.student}")
    return (
        f'<!doctype html><meta charset="utf-8"><title>{title}</title><h1>{title}</h1><p>0 points</p><ul>{remarks}</ul>'
    )


def summary(grade: Grade) -> str:
    """A table of the points, in markdown."""
    judgement = grade.judgement
    last = [outcomes[-1] for outcomes in judgement.outcomes.values()]
    rows = [f"| `{one.exercise}` | {one.status.value} | {one.points:g} of {one.possible:g} |" for one in last]
    rows += [f"| `{name}` | {BY_HAND} | of {points:g} |" for name, points, _ in grade.by_hand]
    head = f"# {grade.assignment}\n\n**{judgement.points:g} of {judgement.possible:g} points** by the checks.\n\n"
    return head + "\n".join(["| exercise | outcome | points |", "|---|---|---|", *rows])


def cleaned(element: str | bytes) -> str:
    """HTML without all that could act on the reader's browser."""
    text = element.decode() if isinstance(element, bytes) else str(element)
    return bleach.clean(text, tags=TAGS, attributes=ATTRIBUTES, css_sanitizer=STYLES)
