"""A docstring in reStructuredText. The docstrings are plain text for `help()`: their layout says what each part is.

    paragraph      lines at the left; names in single backticks become links where they lead somewhere
    section        a title without a full stop, and the indented lines below it
    definitions    lines of two columns, name and meaning, with two spaces or more between them
    settings       several lines `name: meaning`, which stay one a line
    list           lines that begin with "-", "*" or "1."
    example        lines from ">>>" to the next empty one
    literal        other indented lines, such as formulas and pseudo-code, which keep their columns
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from itertools import takewhile

SPECIAL = re.compile(r"([\\*_|<>])")
TITLE = re.compile(r"[A-Z].*[^.,:;]")
ITEM = re.compile(r"([-*]|\d+\.) +")
SETTING = re.compile(r"[\w.*`\"]+(, [\w.*`\"]+)*: ")
DEFINITION = re.compile(r"(?P<name>\S(?:(?! = |  ).)*) {2,}(?P<text>(?![=#]|\S+= )\S.*)")
"""Two columns; a formula, and a remark on code, are none."""
NAMES = re.compile(r"\S+(, \S+)*")
WORDS = re.compile(r"[a-z]+( [a-z]+)+")
MARKUP = re.compile(r"([-+*•#|]|\(?\w{1,3}[.)]|\.\.|>>>|:\w+:)(\s|$)|[-=~^]{3}")
"""What begins a list, a directive or the like in reStructuredText."""

Target = Callable[[str], str | None]


def marked_up(text: str, target: Target) -> list[str]:
    """The lines of a docstring as reStructuredText.

    target: for a name in backticks, the full name that it links to, or None.

    >>> marked_up("Like `Linear`, but `x` first.", {"Linear": "minidl.nn.Linear"}.get)
    ['Like :py:obj:`Linear <minidl.nn.Linear>`, but ``x`` first.', '']
    """
    return converted(inspect.cleandoc(text).splitlines(), target)


def converted(lines: list[str], target: Target) -> list[str]:
    """The same for lines without common indentation, block by block."""
    result: list[str] = []
    while lines:
        first, below = lines[0], indented_lines(lines[1:])
        if not first:
            size = 1
        elif first.startswith(">>>"):
            example = list(takewhile(bool, lines))
            size = len(example)
            result += [*example, ""]
        elif first.startswith(" "):
            size = 1 + len(below)
            result += laid_out(dedented(lines[:size]), target)
        elif item := ITEM.match(first):
            size = 1 + len(below)
            text, *more = converted([first[item.end() :], *dedented(below)], target)
            result += [f"{item[1]} {text}", *indented(more)]
        elif definitions := definitions_at_start(lines):
            size = sum(number for number, _, _ in definitions)
            for _, name, meaning in definitions:
                result += [name if WORDS.fullmatch(name) else f"``{name}``", *indented(converted(meaning, target))]
        elif TITLE.fullmatch(first) and below and below[0]:
            size = 1 + len(below)
            result += [f".. rubric:: {linked(first, target)}", "", *converted(dedented(below), target)]
        else:
            size = paragraph_size(lines)
            result += prose(lines[:size], target)
        lines = lines[size:]
    return result


def indented_lines(lines: list[str]) -> list[str]:
    """The lines before the first one at the left, without the empty ones before that."""
    found = list(takewhile(lambda line: not line or line.startswith(" "), lines))
    while found and not found[-1]:
        found.pop()
    return found


def dedented(lines: list[str]) -> list[str]:
    return textwrap.dedent("\n".join(lines)).splitlines()


def definitions_at_start(lines: list[str]) -> list[tuple[int, str, list[str]]]:
    """The definitions that `lines` begin with: how many lines, the name, and the lines of its meaning.

    Below the first one, a long name may end just before the column of the meanings, or fill a line.
    """
    found: list[tuple[int, str, list[str]]] = []
    column = 0
    while lines and lines[0]:
        first, below = lines[0], list(takewhile(lambda line: line.startswith(" "), lines[1:]))
        if (match := DEFINITION.fullmatch(first)) and (below or "   " not in match["text"]):  # else a third column
            name, text = match["name"], [match["text"]]
            column = column or match.start("text")
        elif column and first[column - 1 : column] == " " and NAMES.fullmatch(first[: column - 1]):
            name, text = first[: column - 1], [first[column:]]
        elif column and below and NAMES.fullmatch(first):
            name, text = first, []
        else:
            break
        start = min(column, *(len(line) - len(line.lstrip()) for line in below)) if below else column
        found.append((1 + len(below), name, [*text, *(line[start:] for line in below)]))
        lines = lines[1 + len(below) :]
    return found


def laid_out(lines: list[str], target: Target) -> list[str]:
    """Indented lines: lists and definitions, and what is shown as it is written."""
    result: list[str] = []
    literal: list[str] = []
    for group in re.split(r"\n\n+", "\n".join(lines)):
        block = group.splitlines()
        size = sum(number for number, _, _ in definitions_at_start(block))
        if size < len(block) and not ITEM.match(block[0]):
            literal += [*block, ""]
            continue
        result += [*as_written(literal), *converted(block, target)]
        literal = []
    return [*result, *as_written(literal)]


def as_written(lines: list[str]) -> list[str]:
    return [".. code-block:: none", "", *indented(lines)] if lines else []


def paragraph_size(lines: list[str]) -> int:
    """The number of lines of the paragraph at the start; those of a setting may be indented."""
    size = 1
    while lines[size:] and (line := lines[size]) and not ITEM.match(line) and not DEFINITION.fullmatch(line):
        if line.startswith(" ") and not (SETTING.match(lines[size - 1]) or lines[size - 1].startswith(" ")):
            break
        size += 1
    return size


def prose(block: list[str], target: Target) -> list[str]:
    """A paragraph; of several settings (`name: meaning`), each begins a line."""
    are_settings = sum(bool(SETTING.match(line)) for line in block) > 1
    joined: list[str] = []
    for line in block:
        if joined and not (are_settings and SETTING.match(line)):
            joined[-1] += f" {line.strip()}"
        else:
            joined.append(line)
    texts = [linked(line, target) for line in joined]
    if are_settings:
        return [*(f"| {text}" for text in texts), ""]
    return ["\\" * bool(MARKUP.match(texts[0])) + texts[0], ""]


def linked(text: str, target: Target) -> str:
    """Prose with its special characters escaped and its `names` as links or as code."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(code(part[1:-1], target) if part.startswith("`") else escaped(part) for part in parts)


def escaped(text: str) -> str:
    """Text in which nothing is markup; an address of the web stays a link."""
    return re.sub(r":(?=:)", r":\\ ", SPECIAL.sub(r"\\\1", text)).replace("`", r"\`")


def code(text: str, target: Target) -> str:
    """What stood in backticks: a link if it is a public name, with or without its parentheses."""
    name = text.partition("(")[0]
    if (full := target(name)) and re.fullmatch(r"[\w.]+(\(\))?", text):
        return f":py:obj:`{text} <{full}>`"
    return f"``{' '.join(text.split())}``" if text == text.strip() else escaped(text)


def indented(lines: list[str]) -> list[str]:
    """The lines, three columns to the right."""
    return [f"   {line}" if line else "" for line in lines]
