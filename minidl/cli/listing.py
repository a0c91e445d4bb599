"""Tables of the names that the command line accepts: strategies, compressors, models and data sets."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.markup import escape
from rich.table import Table

from minidl import data
from minidl.cli import components, own
from minidl.cli.models import MODELS
from minidl.cli.strategies import COMPRESSORS, OF_THE_OPTIMIZER, STRATEGIES


def listings() -> Iterator[Table]:
    """Tables of the strategies and the compressors, with settings and defaults, of the models and the data sets."""
    of_all = f"every strategy that does not define them also takes: {', '.join(OF_THE_OPTIMIZER)}"
    initials = "initials work as names: synchronous:compressor=ef(top_k(0.01)) uses error_feedback"
    for title, classes, caption in (("Strategies", STRATEGIES, of_all), ("Compressors", COMPRESSORS, initials)):
        table = _table(title, "what it is, and its settings")
        table.caption, table.caption_justify = escape(caption), "left"
        for name, cls in classes.items():
            settings = components.defaults(cls)
            table.add_row(name, escape(own.about(cls)) + (f"\n[dim]{escape(settings)}[/]" * bool(settings)))
        yield table
    data_sets = {name: own.about(one) for name, one in ({n: getattr(data, n) for n in data.NAMES} | own.DATA).items()}
    for title, known in (("Models", {name: one.about for name, one in MODELS.items()}), ("Data sets", data_sets)):
        table = _table(title, "what it is")
        for name, text in known.items():
            table.add_row(name, escape(text))
        yield table


def _table(title: str, heading: str) -> Table:
    return Table("name", heading, title=title, title_justify="left", box=box.SIMPLE_HEAD)
