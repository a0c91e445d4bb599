"""What `minidl compare` prints and writes: a table for each network, CSV files and the picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import Any

from rich.markup import escape
from rich.table import Table

from minidl.cli import engines
from minidl.cli.compare.over_seeds import OverSeeds
from minidl.cli.compare.runs import Comparison, Contestant, TrainedRun
from minidl.cli.display import results_table
from minidl.cli.job import decay_text
from minidl.cli.quantities import counted
from minidl.cli.run_folder import write_csv
from minidl.cluster import Shares
from minidl.plots import race

RUNS = "runs.csv"  # a row for each run
HISTORY = ("epoch", "samples", "steps", "seconds", "loss", "test_loss", "accuracy")  # columns

SPREAD = "±: standard deviation over the seeds (n - 1)"
BAND = "line: geometric mean over seeds; band: standard deviation (n - 1) of the log"
GLUE = "\N{NO-BREAK SPACE}"
WIDTH = 80  # columns, of the lines of the title that are broken


class ComparisonReport:
    """Collects the runs of a comparison, writes the files of its folder, and makes the tables."""

    def __init__(self, comparison: Comparison, contestants: Sequence[Contestant], folder: Path) -> None:
        self.comparison, self.contestants, self.folder = comparison, contestants, folder
        self.runs: list[TrainedRun] = []

    @property
    def title(self) -> str:
        """What was compared: the job, where it ran, and what differs between strategies."""
        shared = self.comparison
        decay = decay_text(shared.lr_decay)
        rates, momenta = self._by_value("lr"), self._by_value("momentum")
        common = [f"learning rate {next(iter(rates)):g}{decay}"] if len(rates) == 1 else []
        common += [f"momentum {momentum:g}" for momentum in momenta if momentum and len(momenta) == 1]
        seeds = shared.all_seeds
        common += [f"seed {shared.seed}" if shared.seeds == 1 else f"seeds {seeds[0]} to {seeds[-1]}"]
        where = "processes of this machine" if shared.node is None else f"simulated {engines.node_text(shared.node)}"
        slow = "".join(f", node {node} {factor:g} times slower" for node, factor in shared.slow.items())
        lines = [
            f"{shared.model} on {shared.data}, {counted(shared.nodes, 'node')}, minibatch {shared.batch_size}, "
            + ", ".join([counted(shared.epochs, "epoch"), *common]),
            f"{where}{slow}",
        ]
        lines += _differences(f"learning rate{decay}", rates, shared.lr)
        lines += _differences("momentum", momenta, shared.momentum)
        return "\n".join(lines)

    def _by_value(self, name: str) -> dict[float, list[str]]:
        """For each value of that setting of the optimizer, the strategies that have it."""
        result: dict[float, list[str]] = {}
        for one in self.contestants:
            result.setdefault(getattr(one, name), []).append(one.text)
        return result

    def add(self, run: TrainedRun) -> None:
        """Add a run, and write runs.csv and history.csv."""
        self.runs.append(run)
        records = [self._record(one) for one in self.runs]
        write_csv(self.folder / RUNS, list(records[0]), records)
        rows = (row for one in self.runs for row in _history(one))
        write_csv(self.folder / "history.csv", ["network", "strategy", "seed", *HISTORY], rows)

    def draw(self) -> None:
        """Write loss.png, the test loss of all strategies against time and against samples."""
        places = [(network, [one.line() for one in rows]) for network, rows in self._over_seeds()]
        title = self.title + f"\n{BAND}" * (self.comparison.seeds > 1)
        race.draw(places, source=self.comparison.source, title=title).savefig(self.folder / "loss.png")

    def tables(self) -> Iterator[Table]:
        """A table for each network, with a row for each strategy; the first to reach the target is bold."""
        for network, rows in self._over_seeds():
            yield self._table(network, rows)

    def _over_seeds(self) -> Iterator[tuple[str, list[OverSeeds]]]:
        """For each network, the runs of each strategy."""
        for network, group in groupby(self.runs, lambda run: run.network):
            by_strategy = groupby(group, lambda run: run.contestant.text)
            yield network, [OverSeeds(list(runs)) for _, runs in by_strategy]

    def _table(self, network: str, rows: list[OverSeeds]) -> Table:
        target = self.comparison.target
        reached = [seconds for one in rows if (seconds := one.mean_seconds_to(target)) is not None]
        table = results_table(f"{network}: {self.comparison.source}", self._caption())
        table.add_column("strategy", overflow="fold")
        for name in ("accuracy", "steps", "time", f"to {target:.3g}", "sent", "busy", "stale"):
            table.add_column(name, justify="right", no_wrap=True)
        for one in rows:
            seconds = one.mean_seconds_to(target)
            is_first = seconds is not None and seconds == min(reached)
            table.add_row(*map(escape, one.cells(target)), style="bold" if is_first else None)
        return table

    def _caption(self) -> str:
        seeds = self.comparison.seeds
        columns = (
            f"to {self.comparison.target:.3g}: time to that test accuracy; sent: by a node; "
            "busy: % of the nodes' time computing/communicating/waiting; stale: updates that a gradient is behind; "
        )
        if seeds == 1:
            return columns + "bold: the first at the target"
        return columns + (
            f"means over {seeds} seeds, without runs that diverged; {SPREAD}; k of {seeds}: only k seeds reach the "
            "target, and the time is theirs; bold: the first at the target, of those that reach it with every seed"
        )

    def _record(self, one: TrainedRun) -> dict[str, Any]:
        contestant, shared = one.contestant, self.comparison
        last = one.history[-1] if one.history else {}
        return {
            "network": one.network,
            "strategy": contestant.text,
            **{name: getattr(shared, name) for name in ("model", "data", "on")},
            "simulated_node": "" if shared.node is None else engines.node_text(shared.node),
            "slow": " ".join(f"{node}:{factor:g}" for node, factor in shared.slow.items()),
            "kernels": shared.kernels,
            "nodes": contestant.nodes,
            "servers": contestant.strategy.servers,
            "batch_size": contestant.job.batch_size,
            "lr": contestant.lr,
            "lr_decay": shared.lr_decay,
            "momentum": contestant.momentum,
            "seed": contestant.job.seed,
            "ended": one.ended,
            **{name: last.get(name) for name in ("accuracy", "test_loss")},
            "training_loss": last.get("loss"),
            "epochs": last.get("epoch", 0),
            **{name: last.get(name) for name in ("samples", "steps", "seconds")},
            "target": shared.target,
            "seconds_to_target": one.seconds_to(shared.target),
            "bytes_per_node": one.bytes_per_node,
            "bytes_of_busiest_rank": max(one.bytes_sent, default=None),
            **(one.shares._asdict() if one.shares else dict.fromkeys(Shares._fields)),
            "mean_staleness": one.mean_staleness,
            "greatest_staleness": max(one.staleness, default=None),
        }


def _differences(name: str, by_value: dict[float, list[str]], usual: float) -> list[str]:
    """A line that says which strategies have which value; none if all have the same. `usual` is the default."""
    if len(by_value) == 1:
        return []
    own = "; ".join(
        f"{value:g}{GLUE}for{GLUE}{', '.join(texts)}" for value, texts in by_value.items() if value != usual
    )
    common = f"{usual:g}, but " if usual in by_value else ""
    return [fill(f"{name}: {common}{own}", WIDTH, break_long_words=False, break_on_hyphens=False).replace(GLUE, " ")]


def _history(one: TrainedRun) -> Iterator[dict[str, Any]]:
    run = {"network": one.network, "strategy": one.contestant.text, "seed": one.contestant.job.seed}
    for row in one.history:
        yield run | {name: row[name] for name in HISTORY}
