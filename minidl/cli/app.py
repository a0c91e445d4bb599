"""The commands of `minidl`, by name."""

from __future__ import annotations

import typer

from minidl.cli.compare.command import compare
from minidl.cli.info import info
from minidl.cli.schedule.command import schedule
from minidl.cli.several_words import SeveralWords
from minidl.cli.simulate.command import simulate
from minidl.cli.train.command import train

app = typer.Typer(
    help="Parallel deep learning from scratch.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(train)
app.command(cls=SeveralWords)(compare)
app.command(cls=SeveralWords)(simulate)
app.command()(schedule)
app.command()(info)
