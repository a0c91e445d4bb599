"""What the commands share to print."""

import io

import pytest
from rich.console import Console

from minidl.cli.display import results_table, show


def shown(columns):
    """A table of 45 columns on a console of that width."""
    table = results_table("Times", "measured")
    for name in ("algorithm", "simulated"):
        table.add_column(name, no_wrap=True)
    table.add_row("hierarchical: 128 groups of 128 nodes", "840 ms")
    console = Console(file=io.StringIO(), width=columns)
    show(console, table)
    return console.file.getvalue()


@pytest.mark.parametrize("columns", [1, 20, 40])
def test_a_narrow_terminal_cuts_no_number(columns):
    assert shown(columns) == shown(100)
