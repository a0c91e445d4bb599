"""`minidl report-card`: what is wrong with a table of results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from typer import Argument, Option

from minidl.arguments import whole_number
from minidl.cli.ending import ending


def report_card(
    results: Annotated[
        Path,
        Argument(
            metavar="FOLDER|CSV",
            help="CSV file with a row for each run, also with semicolons, decimal commas or percent; folder of minidl "
            "compare, run folder of minidl train, or a folder of such run folders.",
        ),
    ],
    name: Annotated[str, Option(help="Column that says which method a row is about.")] = "strategy",
    seeds: Annotated[int, Option(help="Seeds of each configuration that are needed to see the spread.")] = 3,
) -> None:
    """Name the ways in which a table of results fools its readers; exit code 1 if there is any.

    It finds what a table shows: speed and accuracy of different settings, missing or selected seeds and sizes, unfair
    baselines, peaks, extrapolations. It cannot see what was tuned, or what was left out of the measured time.
    """
    with ending("minidl report-card"):
        from minidl.cli.display import say  # here, so that --help comes at once
        from minidl.parallel.measures.report_card import problems
        from minidl.parallel.measures.result_files import read_results

        rows = read_results(results, name)
        found = problems(rows, name=name, seeds=whole_number("--seeds", seeds, at_least=1))
        console = Console(file=sys.stdout)
        for problem in found:
            say(console, problem)
        many = f"{len(rows)} row{'s' * (len(rows) != 1)}"
        say(console, f"{many}: {len(found)} problem{'s' * (len(found) != 1)} found")
    if found:
        raise typer.Exit(1)
