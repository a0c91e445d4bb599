"""A feedback page: the student's notebook with what the checks found and a table of points on top."""

from __future__ import annotations

import copy
import html
import re
from collections.abc import Sequence

import bleach
import nbformat
from bleach.css_sanitizer import CSSSanitizer
from nbconvert import HTMLExporter
from nbformat.v4 import new_markdown_cell

from course.grading.grades import BY_HAND, Grade
from course.grading.roles import as_released

TAGS = (
    *("a", "b", "blockquote", "br", "code", "div", "em", "h1", "h2", "h3", "h4", "hr", "i", "img", "li", "ol", "p"),
    *("pre", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul"),
)
PICTURE = re.compile(r"data:image/(png|jpeg|gif);base64,[A-Za-z0-9+/=\s]*")
"""A picture that is in the page itself: one from elsewhere would tell its owner who reads the page, and when."""

MOST_OF_CELL, MOST_OF_ALL = 20_000, 400_000
"""Characters of one cell, and of all of them, that are shown."""

OWN_METADATA = {"language_info": {"name": "python"}}


def is_allowed_of_picture(tag: str, name: str, value: str) -> bool:
    """Whether a picture may have this attribute."""
    return name in ("alt", "class", "id") or (name == "src" and PICTURE.fullmatch(value) is not None)


def is_allowed_of_link(tag: str, name: str, value: str) -> bool:
    """Whether a link may have this attribute: it leads to a place, and holds no page of its own."""
    return name in ("title", "class", "id") or (name == "href" and not value.strip().lower().startswith("data:"))


ATTRIBUTES = {"*": ["class", "id", "style"], "a": is_allowed_of_link, "img": is_allowed_of_picture}
PROTOCOLS = ("http", "https", "mailto", "data")
STYLES = CSSSanitizer(
    ("border-left", "color", "margin", "padding", "text-align", "vertical-align", "white-space", "width")
)
"""What a feedback page may contain: what markdown and the panels of outcomes are made of."""


def page(notebook: nbformat.NotebookNode, grade: Grade) -> str:
    """The page of a graded notebook, one HTML file, without hidden tests, and without scripts of the student's."""
    notebook = nbformat.from_dict({**notebook, "metadata": OWN_METADATA, "cells": shown(notebook.cells)})
    notebook.cells.insert(0, new_markdown_cell(summary(grade), id="summary"))
    exporter = HTMLExporter(sanitize_html=True, filters={"clean_html": cleaned})
    text, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": f"{grade.assignment}: {grade.student}"}})
    return text


def shown(cells: Sequence[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """The cells as they can be shown: without hidden tests and without metadata, which can ask for scripts.

    Each has a new id, since theirs need not be different, and is cut where it is endless.
    """
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
        cell.metadata, cell.id = nbformat.NotebookNode(), f"cell{len(kept)}"
        kept.append(cell)
    return kept


def plain_page(grade: Grade) -> str:
    """The page where the notebook cannot be shown: what is known of it, without its cells."""
    remarks = "".join(f"<li>{html.escape(remark)}</li>" for remark in grade.judgement.remarks)
    title = html.escape(f"{grade.assignment or 'no assignment'}: {grade.student}")
    return (
        f'<!doctype html><meta charset="utf-8"><title>{title}</title><h1>{title}</h1>'
        f"<p>{grade.judgement.points:g} points</p><ul>{remarks}</ul>"
    )


def summary(grade: Grade) -> str:
    """A table of the points, in markdown."""
    judgement = grade.judgement
    last = [outcomes[-1] for outcomes in judgement.outcomes.values()]
    rows = [f"| `{one.exercise}` | {one.status.value} | {one.points:g} of {one.possible:g} |" for one in last]
    rows += [f"| `{name}` | {BY_HAND} | of {points:g} |" for name, points, _ in grade.by_hand]
    student = " ".join(grade.student.split()).replace("`", "'")
    points = f"**{judgement.points:g} of {judgement.possible:g} points** by the checks."
    head = f"# {grade.assignment}\n\n`{student}`\n\n{points}\n\n"
    return head + "\n".join(["| exercise | outcome | points |", "|---|---|---|", *rows])


def cleaned(element: str | bytes) -> str:
    """HTML without all that could act on the reader's browser."""
    text = element.decode() if isinstance(element, bytes) else str(element)
    return bleach.clean(text, tags=TAGS, attributes=ATTRIBUTES, protocols=PROTOCOLS, css_sanitizer=STYLES)
