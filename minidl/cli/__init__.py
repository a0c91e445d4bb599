"""The command `minidl`: train, info. `minidl train --help` tells the options."""

from __future__ import annotations

import typer

from minidl.cli.info import info
from minidl.cli.train import train

app = typer.Typer(
    help="Parallel deep learning from scratch.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(train)
app.command()(info)


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 the run failed, 2 bad input, 130 interrupted."""
    app(prog_name="minidl")
