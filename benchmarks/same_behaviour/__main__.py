"""Whether another checkout behaves as this one does, to the bit: for refactorings.

    python -m benchmarks.same_behaviour OTHER_CHECKOUT [--only GROUP ...] [--show 40]

Every group of cases runs in both checkouts, each in a fresh process of this Python with PYTHONPATH set to the checkout.
The cases are those of this checkout. The table counts cases and values; every difference is printed with the value here
and the value there. Exit code 0 without a difference, 1 with one, 2 if a group could not run.

    strategies    training in simulation and on processes: weights, history, ledger, virtual seconds, events
    collectives   in simulation: results, ledgers, virtual seconds, events; the formulas of `cluster.cost`
    engines       messages and collectives on processes and MPI: results and ledgers; errors in every engine
    compressors   encoded bytes, decoded arrays, error feedback over 20 steps, sums over ranks
    learning      every operation under both kernels, models, optimizers, schedules, data sets, random numbers
    arguments     which values the parameters of public functions and classes accept; of errors only the type
    checks        `python3 -m course grade`: points and messages for solved, unsolved and wrong notebooks
    public_names  names, signatures, defaults, fields, methods and base classes of the public modules
    commands      help texts of `minidl` and `course`; what some commands print and write

Not compared: docstrings (only where a help text is made from them), type annotations, paths and addresses in errors,
real seconds, and of training on processes without a fixed order everything that depends on who comes first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .comparison import Difference, differences, is_error, leaves

ROOT = Path(__file__).resolve().parent.parent.parent
GROUPS = (
    *("checks", "commands", "strategies", "learning", "engines", "arguments", "compressors", "collectives"),
    "public_names",
)
LONGEST = 600  # seconds that a group may take in one checkout
AT_A_TIME = 2


class GroupFailedError(Exception):
    """A group of cases could not run in a checkout."""


def main() -> int:
    """Compare, report, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, metavar="OTHER_CHECKOUT")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS, metavar="GROUP", help="only these groups")
    parser.add_argument("--show", type=int, default=40, help="differences printed of each group (40)")
    options = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    try:
        records = record_all([ROOT, options.other.resolve()], [name for name in GROUPS if name in options.only])
    except GroupFailedError as failure:
        console.print(str(failure), markup=False)
        return 2
    return report(console, records, options.show)


def record_all(checkouts: list[Path], groups: list[str]) -> dict[str, list[dict[str, Any]]]:
    """For each group, its record in each checkout."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_A_TIME) as workers:
        running = {
            group: [workers.submit(record, group, checkout, Path(folder) / f"{group}-{number}")
                    for number, checkout in enumerate(checkouts)]
            for group in groups
        }  # fmt: skip
        return {group: [one.result() for one in ones] for group, ones in running.items()}


def record(group: str, checkout: Path, scratch: Path) -> dict[str, Any]:
    """Run a group in a checkout, in an empty folder of its own. Raises GroupFailedError."""
    scratch.mkdir()
    file = scratch / "record.json"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(checkout), str(Path(__file__).resolve().parent.parent)]),
        "MINIDL_NO_VENV": "1",
        "COLUMNS": "100",
    }
    environment.pop("MINIDL_KERNELS", None)
    command = [sys.executable, "-P", "-m", "same_behaviour.recording", group, str(file)]
    try:
        done = subprocess.run(
            command, env=environment, cwd=scratch, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        raise GroupFailedError(f"{group} in {checkout} took more than {LONGEST} seconds") from None
    if done.returncode != 0:
        raise GroupFailedError(f"{group} could not run in {checkout}:\n{done.stdout}{done.stderr}")
    result: dict[str, Any] = json.loads(file.read_text())
    if Path(result["minidl"]) != checkout:
        raise GroupFailedError(f"{group} was to run in {checkout}, but minidl came from {result['minidl']}")
    return result


def report(console: Console, records: dict[str, list[dict[str, Any]]], show: int) -> int:
    """Print the table and the differences; 1 if there is one."""
    table = Table("group", "cases", "errors", "values", "differences", "s here", "s there")
    found: dict[str, list[Difference]] = {}
    for group, (here, there) in records.items():
        found[group] = differences(here["results"], there["results"])
        values = sum(len(leaves(result)) for result in here["results"].values())
        errors = sum(is_error(result) for result in here["results"].values())
        row = (len(here["results"]), errors, values, len(found[group]), round(here["seconds"]), round(there["seconds"]))
        table.add_row(group, *map(str, row))
    console.print(table)
    for group, ones in found.items():
        ones.sort(key=lambda one: one.is_error_type)
        for one in ones[:show]:
            console.print(
                f"{group}: {one.case}: {one.path}\n    here   {one.here}\n    there  {one.there}", markup=False
            )
        if len(ones) > show:
            types = sum(one.is_error_type for one in ones[show:])
            console.print(f"{group}: {len(ones) - show} more differences, of them {types} only in the type of an error")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
