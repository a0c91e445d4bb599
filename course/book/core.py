"""A file of the core as a page: what its docstrings and comments say as prose, and the code under it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from course.book.notebook import fenced

Block = tuple[str, str, str]
"""A heading, prose and code; each may be empty."""


def as_markdown(source: str, path: str) -> str:
    """The page of a Python file: its docstring's first line is the title; a function or a class is a section."""
    module = ast.parse(source)
    title, _, introduction = (ast.get_docstring(module) or "").partition("\n")
    parts = [f"# `{PurePosixPath(path).name}`: {prose(title)}", prose(introduction)]
    for heading, text, code in blocks(module, source.splitlines()):
        parts += [f"## `{heading}`" if heading else "", prose(text), fenced("python", code) if code else ""]
    return "\n\n".join(part for part in parts if part) + "\n"


def blocks(module: ast.Module, lines: list[str]) -> Iterator[Block]:
    """The file in pieces: a function; a class, with each method that has a docstring apart; what is between."""
    start = module.body[0].end_lineno or 0  # behind the file's docstring
    for node in module.body[1:]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from between(lines[start : node.lineno - 1])
            yield from section(node, lines)
            start = node.end_lineno or 0
    yield from between(lines[start:])


def between(lines: list[str]) -> Iterator[Block]:
    """Imports, values and comments; comments at the beginning become prose."""
    text = "\n".join(lines).strip("\n").splitlines()
    comments = next((number for number, line in enumerate(text) if not line.startswith("# ")), len(text))
    if text:
        said = "\n".join(line.removeprefix("# ") for line in text[:comments])
        yield "", said, "\n".join(text[comments:]).strip("\n")


def section(node: ast.FunctionDef | ast.ClassDef, lines: list[str]) -> Iterator[Block]:
    """A function, or a class and its methods, each with its docstring before its code.

    A method without a docstring stays with what is before it.
    """
    methods = [part for part in node.body if isinstance(node, ast.ClassDef) and isinstance(part, ast.FunctionDef)]
    parts = [node, *(method for method in methods if ast.get_docstring(method))]
    starts = [part.lineno - 1 for part in parts]
    for part, start, end in zip(parts, starts, [*starts[1:], node.end_lineno or 0], strict=True):
        said, code = ast.get_docstring(part) or "", lines[start:end]
        if said:
            begin, stop = part.body[0].lineno - 1 - start, (part.body[0].end_lineno or 0) - start
            code = [*code[:begin], *code[stop:]]
        yield node.name if part is node else "", said, "\n".join(code).strip("\n")


def prose(text: str) -> str:
    """A docstring as Markdown: what stands in backticks is code, an indented line is code, nothing else is markup."""
    if "\n\n" in text.strip():
        return "\n\n".join(filter(None, (prose(paragraph) for paragraph in re.split(r"\n\s*\n", text.strip("\n")))))
    if text.startswith("    "):
        return fenced("text", text)
    parts = re.split(r"(`[^`]+`)", text.strip())
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_<>\[\]$|#{}])", r"\\\1", part) for part in parts)
