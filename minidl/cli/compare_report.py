"""What `minidl compare` shows and keeps: a table a network, the same and the histories as CSV, and the picture."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from minidl.cli import place
from minidl.cli.comparison import Outcome, Terms
from minidl.cli.quantities import seconds_text
from minidl.plots import race
from minidl.plots.style import bytes_text

RUNS = "runs.csv"  # in the folder: a row a run
HISTORY = ("epoch", "samples", "steps", "seconds", "loss", "test_loss", "accuracy")


class Report:
    """The outcomes of a comparison as they come, in a folder.

    target: the test accuracy that the strategies race to.
    """

    def __init__(self, terms: Terms, target: float, folder: Path) -> None:
        self.terms, self.target, self.folder = terms, target, folder
        self.outcomes: list[Outcome] = []

    @property
    def title(self) -> str:
        """What was compared, in two lines."""
        terms = self.terms
        rate = f"learning rate {terms.lr:g}" + (f" (x {terms.lr_decay:g} an epoch)" if terms.lr_decay != 1 else "")
        momentum = f", momentum {terms.momentum:g}" if terms.momentum else ""
        where = "processes of this machine" if terms.node is None else f"simulated {place.node_text(terms.node)}"
        slow = "".join(f", node {node} {factor:g} times slower" for node, factor in terms.slow.items())
        return (
            f"{terms.model} on {terms.data}, {terms.nodes} nodes, minibatch {terms.batch_size}, {terms.epochs} epochs, "
            f"{rate}{momentum}, seed {terms.seed}\n{where}{slow}"
        )

    def add(self, outcome: Outcome) -> None:
        """Take the outcome, and write it into runs.csv and history.csv."""
        self.outcomes.append(outcome)
        records = [self._record(one) for one in self.outcomes]
        _write(self.folder / RUNS, list(records[0]), records)
        rows = (row for one in self.outcomes for row in _history(one))
        _write(self.folder / "history.csv", ["network", "strategy", *HISTORY], rows)

    def draw(self) -> None:
        """Write loss.png, the test loss of all runs against time and against samples."""
        places = [
            (network, [_run(outcome) for outcome in group])
            for network, group in groupby(self.outcomes, lambda outcome: outcome.network)
        ]
        source = "measured" if self.terms.node is None else "simulated"
        race.draw(places, source=source, title=self.title).savefig(self.folder / "loss.png")

    def tables(self) -> Iterator[Table]:
        """A table for each network, a row a strategy; bold is the first at the target."""
        for network, group in groupby(self.outcomes, lambda outcome: outcome.network):
            yield self._table(network, list(group))

    def _table(self, network: str, outcomes: list[Outcome]) -> Table:
        reached = [seconds for one in outcomes if (seconds := one.seconds_to(self.target)) is not None]
        table = Table(
            title=f"{network}: {'measured' if self.terms.node is None else 'simulated'}",
            title_justify="left",
            box=box.SIMPLE_HEAD,
            show_edge=False,
            padding=(0, 1, 0, 0),
            pad_edge=False,
        )
        table.add_column("strategy", overflow="fold")
        for name in ("accuracy", "steps", "time", f"to {self.target:.3g}", "sent", "busy", "stale"):
            table.add_column(name, justify="right", no_wrap=True)
        for one in outcomes:
            seconds = one.seconds_to(self.target)
            is_first = seconds is not None and seconds == min(reached)
            table.add_row(*map(escape, self._cells(one)), style="bold" if is_first else None)
        table.caption = (
            f"to {self.target:.3g}: time to that test accuracy; sent: by a node; "
            "busy: % of the nodes' time computing/communicating/waiting; stale: updates that a gradient is behind; "
            "bold: the first at the target"
        )
        table.caption_justify = "left"
        return table

    def _cells(self, one: Outcome) -> list[str]:
        if not one.history or one.ended:
            return [f"{one.contestant.text}: {one.ended}", *["-"] * 7]
        seconds, shares = one.seconds_to(self.target), one.shares
        return [
            one.contestant.text,
            f"{one.accuracy:.2%}",
            f"{one.history[-1]['steps']:,}",
            seconds_text(one.seconds),
            "never" if seconds is None else seconds_text(seconds),
            bytes_text(one.bytes_per_node or 0),
            "/".join(f"{100 * share:.0f}" for share in shares or ()),
            "" if one.mean_staleness is None else f"{one.mean_staleness:.2g}",
        ]

    def _record(self, one: Outcome) -> dict[str, Any]:
        contestant, terms = one.contestant, self.terms
        last = one.history[-1] if one.history else {}
        shares = one.shares
        return {
            "network": one.network,
            "strategy": contestant.text,
            "nodes": contestant.nodes,
            "servers": contestant.strategy.servers,
            "batch_size": contestant.job.batch_size,
            "lr": contestant.lr,
            "momentum": contestant.momentum,
            "seed": terms.seed,
            "ended": one.ended,
            "accuracy": last.get("accuracy"),
            "test_loss": last.get("test_loss"),
            "training_loss": last.get("loss"),
            "epochs": last.get("epoch", 0),
            "samples": last.get("samples"),
            "steps": last.get("steps"),
            "seconds": last.get("seconds"),
            "target": self.target,
            "seconds_to_target": one.seconds_to(self.target),
            "bytes_per_node": one.bytes_per_node,
            "bytes_of_busiest_rank": max(one.bytes_sent, default=None),
            "compute": shares.compute if shares else None,
            "communication": shares.communication if shares else None,
            "waiting": shares.waiting if shares else None,
            "mean_staleness": one.mean_staleness,
            "greatest_staleness": max(one.staleness, default=None),
        }


def _history(one: Outcome) -> Iterator[dict[str, Any]]:
    for row in one.history:
        yield {"network": one.network, "strategy": one.contestant.text} | {name: row[name] for name in HISTORY}


def _run(one: Outcome) -> race.Run:
    seconds, samples, loss = ([row[name] for row in one.history] for name in ("seconds", "samples", "test_loss"))
    return race.Run(one.contestant.text, seconds, samples, loss, one.ended)


def _write(path: Path, names: list[str], records: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
