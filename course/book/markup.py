"""A docstring in reStructuredText: prose with links, examples, and everything that is laid out as it is written.

The docstrings are plain text for `help()`. A paragraph becomes a paragraph, and names in single backticks become links
where they lead somewhere; an indented block (a table of parameters, pseudo-code) keeps its lines and columns.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

HEADINGS = ("Parameters", "Returns", "Raises", "Notes", "References", "Attributes", "Methods", "Examples", "Example")
OF_PROSE = ("Notes", "References", "Examples", "Example")
"""Headings whose indented text is sentences and examples, not a table."""

SPECIAL = re.compile(r"([\\*_|<>])")
LISTED = re.compile(r"[\w.*`\"]+(, [\w.*`\"]+)*: ")
"""The beginning of `name: meaning`, one a line."""
ENTRY = re.compile(r"(?P<name>\S(?:.*?\S)??) {2,}(?P<text>\S.*)")
"""A line of a table: a name, at least two spaces, its meaning."""
NO_PARAGRAPH = re.compile(r"([-+*•#|]|\(?\w{1,3}[.)]|\.\.|>>>|:\w+:)(\s|$)|[-=~^]{3}")
"""What begins a list, a directive or the like in reStructuredText."""

Target = Callable[[str], str | None]


def marked_up(text: str, target: Target) -> list[str]:
    """The lines of a docstring as reStructuredText.

    target: for a name in backticks, the full name that it links to, or None.

    >>> marked_up("Like `Linear`, but `x` first.", {"Linear": "minidl.nn.Linear"}.get)
    ['Like :py:obj:`Linear <minidl.nn.Linear>`, but ``x`` first.', '']
    """
    lines: list[str] = []
    for block in blocks(inspect.cleandoc(text)):
        lines += marked_up_block(block, target)
    return lines


def blocks(text: str) -> list[list[str]]:
    """The text cut at its empty lines; an indented block is kept whole with those inside it."""
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        if line:
            starts_anew = found[-1] and not found[-1][-1] and not line.startswith(" ")
            if starts_anew or (found[-1] and not found[-1][-1] and not found[-1][0].startswith(" ")):
                found.append([])
            found[-1].append(line)
        elif found[-1] and found[-1][-1]:
            found[-1].append("")
    return [without_last_empty_line(block) for block in found if block]


def without_last_empty_line(block: list[str]) -> list[str]:
    return block if block[-1] else block[:-1]


def marked_up_block(block: list[str], target: Target) -> list[str]:
    """One block: an example, a heading with what stands under it, prose, or text that keeps its columns."""
    if block[0].startswith(">>>"):
        return [*block, ""]
    if block[0] in HEADINGS:
        under = inspect.cleandoc("\n".join(["", *block[1:]]))
        body = marked_up(under, target) if block[0] in OF_PROSE else table(under.splitlines(), target)
        return [f".. rubric:: {block[0]}", "", *body]
    if sum(bool(ENTRY.fullmatch(line)) for line in block) > 1:
        return table(block, target)
    if any(line.startswith(" ") for line in block):
        first = next(number for number, line in enumerate(block) if line.startswith(" "))
        if first > 0 and not any(NO_PARAGRAPH.match(line) for line in block[:first]):
            rest = block[first:]
            if all(line.startswith(" ") or not line for line in rest):
                return [*prose(block[:first], target), *literal(rest)]
        return literal(block)
    if any(NO_PARAGRAPH.match(line) for line in block):
        return literal(block)
    return prose(block, target)


def table(lines: list[str], target: Target) -> list[str]:
    """Two columns as a list of definitions; a meaning that has columns itself keeps them."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if (match := ENTRY.fullmatch(line)) and not line.startswith(" "):
            found.append((match["name"], [match["text"]]))
        elif line.startswith(" ") and found:
            found[-1][1].append(line)
        else:
            return literal(lines)
    listed: list[str] = []
    for name, (first, *others) in found:
        more = inspect.cleandoc("\n".join(["", *others])).splitlines()
        has_columns = any(ENTRY.search(line) for line in more) or first.endswith(":")
        meaning = [*prose([first], target), *literal(more)] if has_columns else prose([first, *more], target)
        listed += [f"``{name}``", *indented(meaning)]
    return listed


def prose(block: list[str], target: Target) -> list[str]:
    """A paragraph; one setting a line (`name: meaning`) stays one a line."""
    text = linked("\n".join(block), target)
    if sum(bool(LISTED.match(line)) for line in block) > 1:
        joined: list[str] = []
        for line, original in zip(text.splitlines(), block, strict=True):
            if joined and not LISTED.match(original):
                joined[-1] += f" {line}"
            else:
                joined.append(f"| {line}")
        return [*joined, ""]
    return [*text.splitlines(), ""]


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


def literal(lines: list[str]) -> list[str]:
    """Lines that are shown as they are."""
    columns = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
    return [".. code-block:: none", "", *indented([line[columns:] for line in lines]), ""]


def indented(lines: list[str]) -> list[str]:
    """The lines, three columns to the right."""
    return [f"   {line}" if line else "" for line in lines]
