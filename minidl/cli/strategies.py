"""Strategies and compressors by name: all that `minidl.parallel` and `minidl.compress` export."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from minidl import compress, parallel
from minidl.cli import components

STRATEGIES = components.classes(parallel, parallel.Strategy)
COMPRESSORS = components.classes(compress, compress.Compressor)
_PARTS: components.Parts = {compress.Compressor: COMPRESSORS}


def parse(text: str) -> parallel.Strategy:
    """The strategy of that name and settings; ValueError that says what is wrong and what there is.

    >>> parse("synchronous:algorithm=ring,bucket_mb=0.5").bucket_mb
    0.5
    """
    return parse_with(text, {})[0]


def parse_with(text: str, others: Mapping[str, type]) -> tuple[parallel.Strategy, dict[str, Any]]:
    """The strategy, and of the settings those that are `others`, given with their types, and none of its own.

    >>> parse_with("serial:lr=0.5", {"lr": float})
    (Serial(shards=1), {'lr': 0.5})
    """
    call = components.call_of("strategy", text)
    own = components.settings(components.find("strategy", ast.unparse(call.func), STRATEGIES))
    values: dict[str, Any] = {}
    for keyword in [one for one in call.keywords if one.arg in others and one.arg not in own]:
        name = str(keyword.arg)
        call.keywords.remove(keyword)
        values[name] = components.value_of("strategy", name, keyword.value, others[name], {})
    return components.build("strategy", call, STRATEGIES, _PARTS), values


def listings() -> Iterator[Table]:
    """What there is: a table of the strategies and one of the compressors."""
    for title, classes in (("Strategies", STRATEGIES), ("Compressors", COMPRESSORS)):
        table = Table("name", "what it is, and its settings", title=title, title_justify="left", box=box.SIMPLE_HEAD)
        for name, cls in classes.items():
            settings = components.defaults(cls)
            table.add_row(
                name, escape(components.description(cls)) + (f"\n[dim]{escape(settings)}[/]" * bool(settings))
            )
        yield table
