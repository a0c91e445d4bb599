"""List the experiments, or run some or all of them: `python -m benchmarks.reproductions [--all | NAME ...]`."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.reproductions import catalogue
from benchmarks.reproductions.catalogue import README, Entry
from benchmarks.reproductions.reproduction import RESULTS, run


def main(arguments: Sequence[str] | None = None, console: Console | None = None) -> int:
    """The command; returns its exit code: 0 if all that was run holds, 1 if something fails, 2 for an unknown name."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reproductions", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of an experiment, or its beginning")
    parser.add_argument("--all", action="store_true", help="run all, one after the other")
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where tables, pictures and verdicts go")
    parser.add_argument("--readme", action="store_true", help="write the table of experiments into README.md")
    given = parser.parse_args(arguments)
    console = Console() if console is None else console
    known = catalogue.entries()
    if given.readme:
        text = README.read_text(encoding="utf-8")
        README.write_text(catalogue.readme_with(catalogue.readme_table(known), text), encoding="utf-8")
        return 0
    strange = [name for name in given.names if not any(entry.name.startswith(name) for entry in known)]
    if strange:
        parser.exit(2, f"there is no experiment {strange[0]!r}: run without a name to see what there is\n")
    chosen = [entry for entry in known if given.all or entry.name.startswith(tuple(given.names))]
    if not chosen:
        console.print(listing(known, given.folder))
        return 0
    return run_all(chosen, given.folder, console)


def listing(known: Sequence[Entry], folder: Path) -> Table:
    """The experiments, with the verdicts and the seconds of their last run."""
    table = Table("experiment", "what it shows", "last run", "s")
    for entry in known:
        verdicts = entry.verdicts(folder)
        holds = sum(verdict == "holds" for _, verdict, _ in verdicts)
        last = f"{holds} of {len(verdicts)} hold" if verdicts else "-"
        table.add_row(entry.name, escape(f"{entry.title}\n{entry.summary}"), last, verdicts[0][0] if verdicts else "")
    return table


def run_all(chosen: Sequence[Entry], folder: Path, console: Console) -> int:
    """Run the experiments one after the other, even after one that raises, and report which of them hold."""
    table = Table("experiment", "verdict", "s")
    fails = 0
    for entry in chosen:
        began = time.perf_counter()
        try:
            module = importlib.import_module(f"{__package__}.{entry.name}")
            reproduction = run(entry.name, module.TITLE, module.experiment, folder, console)
        except Exception as error:  # reported at the end, so that the other experiments still run
            console.print(escape(traceback.format_exc()), highlight=False)
            verdict, holds = escape(f"breaks: {error}"), False
        else:
            failed = [sentence for is_so, sentence in reproduction.verdicts if not is_so]
            verdict = escape("; ".join(failed)) or f"{len(reproduction.verdicts)} of {len(reproduction.verdicts)} hold"
            holds = reproduction.is_accepted
        fails += not holds
        table.add_row(entry.name, f"[{'green' if holds else 'red'}]{verdict}[/]", f"{time.perf_counter() - began:.0f}")
    console.print(table)
    return 1 if fails else 0


if __name__ == "__main__":
    sys.exit(main())
