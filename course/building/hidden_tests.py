"""The hidden tests in an assignment's text: read and replace their arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course.notebooks.roles import HIDDEN_BEGINS, HIDDEN_ENDS

BLOCK = re.compile(rf"^{HIDDEN_BEGINS}\n(?P<lines>.*?)^{HIDDEN_ENDS}$", re.MULTILINE | re.DOTALL)

KEPT = re.compile(r"^# kept: (?P<names>[\w, ]+)$", re.MULTILINE)
"""A comment among hidden tests: the arguments that are never replaced."""

WIDTH = 120


@dataclass(frozen=True)
class HiddenTest:
    """A call `check.NAME(NAME, argument=value, ...)`.

    values: its literal arguments.
    kept: those that must not change.
    """

    exercise: str
    values: Mapping[str, Any]
    kept: frozenset[str]
    start: int
    end: int

    def written(self, values: Mapping[str, Any]) -> str:
        """The call with other values."""
        arguments = [f"{name}={literal(value)}" for name, value in {**self.values, **values}.items()]
        line = f"check.{self.exercise}({', '.join([self.exercise, *arguments])})"
        if len(line) <= WIDTH:
            return line
        indented = [f"    {argument}," if len(argument) + 5 <= WIDTH else spread(argument) for argument in arguments]
        return "\n".join([f"check.{self.exercise}(", f"    {self.exercise},", *indented, ")"])


def hidden_tests(text: str) -> list[HiddenTest]:
    """The hidden tests with only literal arguments, in the order of the text."""
    found = []
    for block in BLOCK.finditer(text):
        lines = block["lines"]
        kept = frozenset(re.findall(r"\w+", " ".join(match["names"] for match in KEPT.finditer(lines))))
        begins = [0]
        for line in lines.splitlines(keepends=True):
            begins.append(begins[-1] + len(line))
        for node in ast.parse(lines).body:
            call = node.value if isinstance(node, ast.Expr) else None
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and len(call.args) == 1):
                continue
            try:
                values = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
            except ValueError:
                continue
            assert call.end_lineno is not None
            assert call.end_col_offset is not None
            start = block.start("lines") + begins[call.lineno - 1] + call.col_offset
            end = block.start("lines") + begins[call.end_lineno - 1] + call.end_col_offset
            found.append(HiddenTest(call.func.attr, values, kept, start, end))
    return found


def with_values(text: str, new: Mapping[int, Mapping[str, Any]]) -> str:
    """The assignment with new values in its hidden tests; new: by number in `hidden_tests(text)`."""
    tests = hidden_tests(text)
    for number in sorted(new, reverse=True):
        test = tests[number]
        text = text[: test.start] + test.written(new[number]) + text[test.end :]
    return text


def literal(value: Any) -> str:
    """A value as people write it, such as 40_000.

    >>> literal([(4, 40_000), ("ring", None)]), literal((3,)), literal(0.00003)
    ('[(4, 40_000), ("ring", None)]', '(3,)', '3e-05')
    """
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:_}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return (
            min(repr(value), f"{value:g}", key=len)
            if float(f"{value:.6g}") == value and abs(value) >= 1e6
            else repr(value)
        )
    return f'"{value}"' if isinstance(value, str) and value.isidentifier() else repr(value)


def spread(argument: str) -> str:
    """An argument that is too long for one line: one item of its list per line, recursively."""
    name, _, value = argument.partition("=")
    return f"    {name}=[\n{items_of(ast.literal_eval(value), 8)}\n    ],"


def items_of(items: Sequence[Any], indent: int) -> str:
    """The items of a list or tuple, each on its own lines."""
    space, lines = " " * indent, []
    for item in items:
        line = f"{space}{literal(item)},"
        if len(line) > WIDTH and isinstance(item, list | tuple):
            left, right = "[]" if isinstance(item, list) else "()"
            line = f"{space}{left}\n{items_of(item, indent + 4)}\n{space}{right},"
        lines.append(line)
    return "\n".join(lines)
