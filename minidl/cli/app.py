"""The commands of `minidl`, by name."""

from __future__ import annotations

from typing import Annotated

import typer

from minidl import __version__
from minidl.cli.calibrate.command import calibrate
from minidl.cli.compare import compare
from minidl.cli.examples import epilog
from minidl.cli.info import info
from minidl.cli.networks import networks
from minidl.cli.schedule.command import schedule
from minidl.cli.several_words import SeveralWords
from minidl.cli.simulate import simulate
from minidl.cli.train import train

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(asked: bool) -> None:
    """Print the version of minidl, and end."""
    if asked:
        typer.echo(f"minidl {__version__}")
        raise typer.Exit


@app.callback()
def minidl(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=show_version, is_eager=True)
    ] = False,
) -> None:
    """Parallel deep learning from scratch."""


app.command(epilog=epilog("train"))(train)
app.command(cls=SeveralWords, epilog=epilog("compare"))(compare)
app.command(cls=SeveralWords, epilog=epilog("simulate"))(simulate)
app.command(epilog=epilog("calibrate"))(calibrate)
app.command()(networks)
app.command(epilog=epilog("schedule"))(schedule)
app.command()(info)
