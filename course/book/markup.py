"""A docstring in reStructuredText.

The docstrings are plain text for `help()`. Their layout says what each part is:

    paragraph      lines at the left, until a full stop where another word would fit into the line; names in single
                   backticks become links where they lead somewhere
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
from collections.abc import Callable
from textwrap import dedent, indent

SPECIAL = re.compile(r"([\\*_|<>])")
MARKUP = re.compile(r"([-+*•#|]|\(?\w{1,3}[.)]|\.\.|>>>|:\w+:)(\s|$)|[-=~^]{3}")
"""What begins a list, a directive or the like in reStructuredText."""

BULLET = r"(?:[-*]|\d+\.) +(?=\S)"
SETTING = r"[\w.*`\"]+(?:, [\w.*`\"]+)*: "
NAME = r"(?P<name>\S(?:(?! = |  ).)*) {2,}(?![=#]|\S+= )(?=\S)"
"""The left column of definitions: no beginning of a formula, no code before a remark."""
BELOW = r"(?P<below>(?:\n .*)*)"
TEXT = r"(?P<text>.*(?:\n+ .*)*)"
"""The rest of a line, and the indented lines below it."""

EXAMPLE = re.compile(r">>>.*(?:\n.+)*")
INDENTED = re.compile(" " + TEXT)
ITEM = re.compile(rf"(?P<bullet>{BULLET}){TEXT}")
SECTION = re.compile(rf"(?P<title>[A-Z].*[^.,:;\n])\n(?= ){TEXT}")
DEFINITION = re.compile(rf"{NAME}(?P<text>.*){BELOW}\n?")
LONG_NAME = rf"(?P<name>\S+(?:, \S+)*)(?: (?<=\A.{{%d}})(?P<text>\S.*))?{BELOW}(?:\n|\Z)"
"""A name that ends just before the column of the meanings, or fills a line."""
PARAGRAPH = re.compile(rf"(?:{SETTING}.*(?:\n .*)*|.+)(?:\n(?:{SETTING}.*(?:\n .*)*|(?! |{BULLET}|{NAME}).+))*")

Target = Callable[[str], str | None]


def marked_up(text: str, target: Target) -> list[str]:
    """The lines of a docstring as reStructuredText.

    target: for a name in backticks, the full name that it links to, or None.

    >>> marked_up("Like `Linear`, but `x` first.", {"Linear": "minidl.nn.Linear"}.get)
    ['Like :py:obj:`Linear <minidl.nn.Linear>`, but ``x`` first.', '']
    """
    return converted(inspect.cleandoc(text), target).splitlines()


def converted(text: str, target: Target) -> str:
    """The same for a text without common indentation, block by block."""
    result = ""
    while text := text.lstrip("\n"):
        found, rest = definitions(text, target)
        if block := EXAMPLE.match(text):
            found = f"{block[0]}\n\n"
        elif block := INDENTED.match(text):
            found = laid_out(dedent(block[0]), target)
        elif block := ITEM.match(text):
            item = converted(inspect.cleandoc(block["text"]), target)
            found = block["bullet"] + indent(item, " " * len(block["bullet"])).lstrip()
        elif found:
            pass
        elif block := SECTION.match(text):
            found = f".. rubric:: {linked(block['title'], target)}\n\n{converted(dedent(block['text']), target)}"
        elif block := PARAGRAPH.match(text):
            found = prose(block[0], target)
        result += found
        text = text[block.end() :] if block else rest
    return result


def definitions(text: str, target: Target) -> tuple[str, str]:
    """The definitions that a text begins with, if any, and the text behind them."""
    result, column = "", 0
    while block := DEFINITION.match(text) or (re.match(LONG_NAME % column, text) if column else None):
        meaning, below = block["text"] or "", block["below"]
        if not below and (not meaning or "   " in meaning):  # a line of prose, or one of three columns
            break
        column = column or block.start("text")
        meaning = dedent(f"{' ' * column}{meaning}{below}").lstrip()
        result += f"``{block['name']}``\n{indent(converted(meaning, target), '   ')}"
        text = text[block.end() :]
    return result, text


def laid_out(text: str, target: Target) -> str:
    """Indented lines: lists and definitions, and what is shown as it is written."""
    result = literal = ""
    for group in text.split("\n\n"):
        if ITEM.match(group) or not definitions(group, target)[1]:
            result += as_written(literal) + converted(group, target)
            literal = ""
        else:
            literal += f"{group}\n\n"
    return result + as_written(literal)


def as_written(text: str) -> str:
    """A box; on a telephone its lines are broken (`none`), unless they have columns (`text`)."""
    kind = "text" if re.search(r"\S {3}", text) else "none"
    return f".. code-block:: {kind}\n\n{indent(text, '   ')}" if text else ""


def prose(text: str, target: Target) -> str:
    """Paragraphs, or several settings (`name: meaning`), of which each begins a line."""
    settings = re.split(rf"\n(?={SETTING})", text)
    if sum(bool(re.match(SETTING, line)) for line in settings) > 1:
        return "".join(f"| {linked(' '.join(line.split()), target)}\n" for line in settings) + "\n"
    result = ""
    for paragraph in re.sub(r"(?m)^(.{1,90}\.)\n(?=[A-Z`])", r"\1\n\n", text).split("\n\n"):
        joined = linked(" ".join(paragraph.split()), target)
        result += "\\" * bool(MARKUP.match(joined)) + f"{joined}\n\n"
    return result


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
