"""What `minidl compare` shows and keeps: a table a network, the same and the histories as CSV, and the picture."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from minidl.cli import engines
from minidl.cli.compare.over_seeds import OverSeeds
from minidl.cli.compare.runs import Contestant, Outcome, Terms
from minidl.plots import race

RUNS = "runs.csv"  # in the folder: a row a run
HISTORY = ("epoch", "samples", "steps", "seconds", "loss", "test_loss", "accuracy")


SPREAD = "±: standard deviation over the seeds (n - 1)"
BAND = "line: geometric mean over seeds; band: standard deviation (n - 1) of the log"
GLUE = "\N{NO-BREAK SPACE}"
WIDTH = 80  # of the title, where it must be broken


class Report:
    """The outcomes of a comparison as they come, in a folder.

    target: the test accuracy that the strategies race to.
    """

    def __init__(self, terms: Terms, contestants: Sequence[Contestant], target: float, folder: Path) -> None:
        self.terms, self.contestants, self.target, self.folder = terms, contestants, target, folder
        self.outcomes: list[Outcome] = []

    @property
    def title(self) -> str:
        """What was compared: the job, where it ran, and what differs between strategies."""
        terms = self.terms
        decay = f" (x {terms.lr_decay:g} an epoch)" if terms.lr_decay != 1 else ""
        rates, momenta = self._by_value("lr"), self._by_value("momentum")
        common = [f"learning rate {next(iter(rates)):g}{decay}"] if len(rates) == 1 else []
        common += [f"momentum {momentum:g}" for momentum in momenta if momentum and len(momenta) == 1]
        seeds = terms.all_seeds
        common += [f"seed {terms.seed}" if terms.seeds == 1 else f"seeds {seeds[0]} to {seeds[-1]}"]
        where = "processes of this machine" if terms.node is None else f"simulated {engines.node_text(terms.node)}"
        slow = "".join(f", node {node} {factor:g} times slower" for node, factor in terms.slow.items())
        lines = [
            f"{terms.model} on {terms.data}, {terms.nodes} nodes, minibatch {terms.batch_size}, {terms.epochs} epochs, "
            + ", ".join(common),
            f"{where}{slow}",
        ]
        lines += _differences(f"learning rate{decay}", rates, terms.lr)
        lines += _differences("momentum", momenta, terms.momentum)
        return "\n".join(lines)

    def _by_value(self, name: str) -> dict[float, list[str]]:
        """The strategies by the value that they were given."""
        result: dict[float, list[str]] = {}
        for one in self.contestants:
            result.setdefault(getattr(one, name), []).append(one.text)
        return result

    def add(self, outcome: Outcome) -> None:
        """Take the outcome, and write it into runs.csv and history.csv."""
        self.outcomes.append(outcome)
        records = [self._record(one) for one in self.outcomes]
        _write(self.folder / RUNS, list(records[0]), records)
        rows = (row for one in self.outcomes for row in _history(one))
        _write(self.folder / "history.csv", ["network", "strategy", "seed", *HISTORY], rows)

    def draw(self) -> None:
        """Write loss.png, the test loss of all strategies against time and against samples."""
        places = [(network, [one.line() for one in rows]) for network, rows in self._over_seeds()]
        source = "measured" if self.terms.node is None else "simulated"
        title = self.title + f"\n{BAND}" * (self.terms.seeds > 1)
        race.draw(places, source=source, title=title).savefig(self.folder / "loss.png")

    def tables(self) -> Iterator[Table]:
        """A table for each network, a row a strategy; bold is the first at the target."""
        for network, rows in self._over_seeds():
            yield self._table(network, rows)

    def _over_seeds(self) -> Iterator[tuple[str, list[OverSeeds]]]:
        """For each network, the runs of each strategy."""
        for network, group in groupby(self.outcomes, lambda outcome: outcome.network):
            by_strategy = groupby(group, lambda outcome: outcome.contestant.text)
            yield network, [OverSeeds(list(runs)) for _, runs in by_strategy]

    def _table(self, network: str, rows: list[OverSeeds]) -> Table:
        reached = [seconds for one in rows if (seconds := one.mean_seconds_to(self.target)) is not None]
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
        for one in rows:
            seconds = one.mean_seconds_to(self.target)
            is_first = seconds is not None and seconds == min(reached)
            table.add_row(*map(escape, one.cells(self.target)), style="bold" if is_first else None)
        table.caption = (
            f"to {self.target:.3g}: time to that test accuracy; sent: by a node; "
            "busy: % of the nodes' time computing/communicating/waiting; stale: updates that a gradient is behind; "
        ) + ("bold: the first at the target" if self.terms.seeds == 1 else self._caption_of_seeds())
        table.caption_justify = "left"
        return table

    def _caption_of_seeds(self) -> str:
        seeds = self.terms.seeds
        return (
            f"means over {seeds} seeds, without runs that diverged; {SPREAD}; k of {seeds}: only k seeds reach the "
            "target, and the time is theirs; bold: the first at the target, of those that reach it with every seed"
        )

    def _record(self, one: Outcome) -> dict[str, Any]:
        contestant = one.contestant
        last = one.history[-1] if one.history else {}
        shares = one.shares
        return {
            "network": one.network,
            "strategy": contestant.text,
            "model": self.terms.model,
            "data": self.terms.data,
            "on": self.terms.on,
            "simulated_node": "" if self.terms.node is None else engines.node_text(self.terms.node),
            "slow": " ".join(f"{node}:{factor:g}" for node, factor in self.terms.slow.items()),
            "kernels": self.terms.kernels,
            "nodes": contestant.nodes,
            "servers": contestant.strategy.servers,
            "batch_size": contestant.job.batch_size,
            "lr": contestant.lr,
            "lr_decay": self.terms.lr_decay,
            "momentum": contestant.momentum,
            "seed": contestant.job.seed,
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


def _differences(name: str, by_value: dict[float, list[str]], usual: float) -> list[str]:
    """A line that says which strategies have which value; none where all have the same. usual: if nothing is typed."""
    if len(by_value) == 1:
        return []
    own = "; ".join(
        f"{value:g}{GLUE}for{GLUE}{', '.join(texts)}" for value, texts in by_value.items() if value != usual
    )
    common = f"{usual:g}, but " if usual in by_value else ""
    return [fill(f"{name}: {common}{own}", WIDTH, break_long_words=False, break_on_hyphens=False).replace(GLUE, " ")]


def _history(one: Outcome) -> Iterator[dict[str, Any]]:
    run = {"network": one.network, "strategy": one.contestant.text, "seed": one.contestant.job.seed}
    for row in one.history:
        yield run | {name: row[name] for name in HISTORY}


def _write(path: Path, names: list[str], records: Iterable[dict[str, Any]]) -> None:
    """Write the table; stopped at any moment, the file holds the former rows or all of the new ones."""
    temporary = path.with_name(f".{path.name}")
    try:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(records)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
