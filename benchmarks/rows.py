"""Lists what proves each claim of the lecture slides behind the course: `python -m benchmarks.rows [ROW ...]`.

The course was made from five sets of lecture slides. Every technique, formula and table in them is a row of `rows.csv`:

row      its name, such as D3
claim    what must be true, in few words
proof    where it is: a test, a lecture, a reproduction, or the public call that does it; separated by spaces
missing  the part of the claim that nothing in this repository proves

A test is FILE::NAME, a lecture or a reproduction a file, a call its name with its modules. The command checks that all
of them exist, and prints the rows that have no proof or lack a part.
"""

from __future__ import annotations

import argparse
import ast
import csv
import pkgutil
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("rows.csv")


def rows() -> list[dict[str, str]]:
    """The rows of the table, in its order."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def exists(proof: str) -> bool:
    """Whether the test, the file or the call is there."""
    if "::" in proof:
        file, _, name = proof.partition("::")
        return name in tests_in(file)
    if "/" in proof:
        return (ROOT / proof).is_file()
    try:
        pkgutil.resolve_name(proof)
    except (ImportError, AttributeError):
        return False
    return True


@cache
def tests_in(file: str) -> frozenset[str]:
    """The functions that a file of tests defines; none if there is no such file."""
    path = ROOT / file
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def main(arguments: Sequence[str] | None = None, console: Console | None = None) -> int:
    """The command; returns its exit code: 1 if the table names something that does not exist, 2 for an unknown row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rows", description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help="such as D3, or A for all that begin so")
    wanted = parser.parse_args(arguments).rows
    console = Console() if console is None else console
    known = rows()
    for name in wanted:
        if not any(row["row"].startswith(name) for row in known):
            parser.exit(2, f"there is no row {name!r} in {TABLE.name}: give a name such as D3, or a letter\n")
    chosen = [row for row in known if row["row"].startswith(tuple(wanted))] if wanted else unproved(known)
    table = Table("row", "claim", "proof", "missing")
    for row in chosen:
        table.add_row(*(escape(row[column].replace(" ", "\n") if column == "proof" else row[column]) for column in row))
    console.print(table)
    gone = [f"{row['row']}: {proof}" for row in known for proof in row["proof"].split() if not exists(proof)]
    console.print(f"{len(known)} rows; without proof or a part of it: {len(unproved(known))}; gone: {len(gone)}")
    for line in gone:
        console.print(escape(line), highlight=False)
    return 1 if gone else 0


def unproved(of: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The rows without proof, and those that lack a part."""
    return [row for row in of if not row["proof"] or row["missing"]]


if __name__ == "__main__":
    sys.exit(main())
