"""What `minidl compare` prints: the title, and a table for each network. `progress.py` has the lines in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from minidl.cli import engines
from minidl.cli.compare.settings import Settings
from minidl.cli.display import results_table
from minidl.cli.job import decay_text
from minidl.cli.quantities import counted
from minidl.parallel import Comparison
from minidl.parallel.comparison.entrant import Entrant


def title(settings: Settings, entrants: Sequence[Entrant], is_emulated: bool = False) -> str:
    """What is compared: the job, and where it runs.

    is_emulated: messages between processes are slowed down to the speed of a network.
    """
    rates = [_setting("learning rate", "lr", settings.lr, entrants) + decay_text(settings.lr_decay)]
    momenta = {one.momentum for one in entrants}
    rates += [_setting("momentum", "momentum", settings.momentum, entrants)] * (momenta != {0})
    seeds = settings.all_seeds
    of_seeds = f"seed {settings.seed}" if settings.seeds == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    where = {"processes": "processes of this machine", "mpi": "ranks of MPI"}.get(settings.on, "")
    where = f"simulated {engines.node_text(settings.node)}" if settings.node is not None else where
    where += ", messages slowed down to the network" * is_emulated
    slow = "".join(f", node {node} {factor:g} times slower" for node, factor in settings.slow.items())
    return (
        f"{settings.model} on {settings.data}, {counted(settings.nodes, 'node')}, minibatch {settings.batch_size}, "
        + ", ".join([counted(settings.epochs, "epoch"), *rates, of_seeds])
        + f"\n{where}{slow}"
    )


def tables(comparison: Comparison) -> Iterator[Table]:
    """A table for each network, with a row for each strategy; the first to reach the target is bold."""
    for one in comparison.tables():
        table = results_table(
            f"{one.network}: {comparison.source}", f"{comparison.legend}; bold: the first at the target"
        )
        table.add_column("strategy", overflow="fold")
        for name in one.columns[1:]:
            table.add_column(name, justify="right", no_wrap=True)
        for number, row in enumerate(one.rows):
            table.add_row(*map(escape, row), style="bold" if number == one.first else None)
        yield table


def _setting(words: str, name: str, common: float, entrants: Sequence[Entrant]) -> str:
    """A setting of the optimizer as text; a strategy whose value differs shows it in its name."""
    values = {getattr(one, name) for one in entrants}
    if len(values) == 1:
        return f"{words} {values.pop():g}"
    return f"{words} {common:g} unless {name}= is given" if common in values else f"{words} as given by {name}="
