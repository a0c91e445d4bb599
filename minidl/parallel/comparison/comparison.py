"""Comparison: the runs of `parallel.compare`, as tables, CSV files and a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from pathlib import Path
from statistics import mean
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from minidl.arguments import one_of
from minidl.atomic_files import write_csv
from minidl.cluster.trace.recording import Shares
from minidl.cluster.trace.trace import play_traces
from minidl.parallel.comparison.compared_run import ComparedRun
from minidl.parallel.comparison.over_seeds import OverSeeds
from minidl.parallel.measures import spread
from minidl.plots import lines, race
from minidl.plots.player.page import Player
from minidl.plots.style import FORMATS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS, HISTORY, SUMMARY = "runs.csv", "history.csv", "summary.csv"
OF_AN_EPOCH = ("epoch", "samples", "steps", "seconds", "loss", "test_loss", "accuracy")  # columns of history.csv
OF_A_STRATEGY = ("accuracy", "steps", "time", "to {}", "sent", "busy", "stale")  # columns of a table
WIDTH, TITLE_WIDTH = 100, 70  # characters: of the text below the tables, above the picture of speed and accuracy

MISSED = "only: the highest test accuracy of a strategy that does not reach it; "
SPREAD = "±: standard deviation over the seeds (n - 1)"
INTERVAL = "95 % bootstrap interval, too short with few seeds"
BARS = "lines: geometric means over {} seeds; error bars: standard deviation of the loss's logarithm (n - 1)"
FREE = "compressing takes no simulated time, unless CodingTime charges it"


class Table(NamedTuple):
    """The results on one network.

    rows     by strategy, a text for each of `columns`; deviations and intervals stand on further lines
    first    row of the strategy whose median time to the target is the shortest; None without one, or if the intervals
             of several seeds overlap, so that chance may have chosen it
    """

    network: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    first: int | None


@dataclass
class Comparison:
    """The runs of `parallel.compare`.

    runs       in their order: by network, then by strategy, then by seed
    title      text above the picture
    source     "simulated" or "measured"
    seeds      the seeds with which every strategy runs
    asked      the test accuracy whose time is reported; None: the one that every run reaches
    settings   settings shared by all runs, as further columns of runs.csv
    is_writer  whether `save` writes; in a script under mpiexec only rank 0 does

    `print(comparison)` shows the tables.
    """

    title: str
    source: str
    seeds: range
    asked: float | None
    settings: Mapping[str, Any] = field(default_factory=dict)
    runs: list[ComparedRun] = field(default_factory=list)
    is_writer: bool = field(default=True, repr=False)

    @property
    def target(self) -> float | None:
        """The test accuracy to which the time is reported; None if it was not asked for and no run has one.

        Unless asked for, it is the highest that every run reaches, rounded down to a percent. Runs that diverged do not
        count.
        """
        if self.asked is not None:
            return self.asked
        best = [run.best_accuracy for run in self.runs if not run.ended]
        if not best or math.isnan(sum(best)):
            return None
        return max(percent / 100 for percent in range(101) if percent / 100 <= min(best))  # 100 * 0.29 is 28.999...

    def over_seeds(self) -> Iterator[tuple[str, list[OverSeeds]]]:
        """For each network, the runs of each strategy."""
        for network, group in groupby(self.runs, lambda run: run.network):
            by_strategy = groupby(group, lambda run: run.entrant.name)
            yield network, [OverSeeds(list(runs)) for _, runs in by_strategy]

    def rows(self) -> list[dict[str, Any]]:
        """A row for each run, as in runs.csv; times in seconds, sizes in bytes."""
        return [self._row(run) for run in self.runs]

    def summary(self) -> list[dict[str, Any]]:
        """A row for each strategy on each network, as in summary.csv: means, deviations, intervals over the seeds."""
        return [
            {"network": network, "strategy": each.name, **each.summary(self.target)}
            for network, of_network in self.over_seeds()
            for each in of_network
        ]

    def tables(self) -> Iterator[Table]:
        """For each network, a table as `print(comparison)` shows it."""
        columns = ["strategy", *(name.format(self._target_text) for name in OF_A_STRATEGY)]
        for network, of_network in self.over_seeds():
            times = [each.time_to(self.target) or spread.Estimate(*[math.inf] * 3) for each in of_network]
            first = min(range(len(times)), key=lambda i: times[i])
            is_ahead = all(times[first].high < time.low for i, time in enumerate(times) if i != first)
            is_first = math.isfinite(times[first].value) and (is_ahead or len(self.seeds) == 1)
            rows = [each.cells(self.target) for each in of_network]
            yield Table(network, columns, rows, first if is_first else None)

    @property
    def _target_text(self) -> str:
        return "target" if self.target is None else f"{self.target:.3g}"

    @property
    def legend(self) -> str:
        """What the columns of the tables mean."""
        columns = (
            f"to {self._target_text}: time to {'that' if self.asked else 'the'} test accuracy"
            f"{'' if self.asked else ' that all runs reach'}; "
            f"{MISSED * self._is_missed}sent: by a node; "
            "busy: % of the nodes' time computing/communicating/waiting; stale: updates that a gradient is behind"
        )
        columns += f"; {FREE}" * self.compresses_for_free
        if len(self.seeds) == 1:
            return columns
        return (
            f"{columns}; means over {len(self.seeds)} seeds, without runs that diverged; {SPREAD}; time to the target: "
            f"median of all seeds; k of {len(self.seeds)}: only k reach it; a to b: {INTERVAL}"
        )

    @property
    def _is_missed(self) -> bool:
        """Whether a row of a table has no time to the target."""
        rows = [each for _, of_network in self.over_seeds() for each in of_network if each.finished]
        return self.target is not None and not all(each.seconds_to(self.target) for each in rows)

    @property
    def compresses_for_free(self) -> bool:
        """Whether compressors worked in simulations without being charged for it."""
        return self.source == "simulated" and any(run.entrant.compresses_for_free for run in self.runs)

    def __str__(self) -> str:
        return "\n\n".join([*(_text(table, self.source) for table in self.tables()), fill(self.legend, WIDTH)])

    def draw(self, path: str | Path | None = None) -> Figure:
        """The picture: test loss of all strategies against time and against samples; saved to `path` if given."""
        places = [(network, [each.line() for each in of_network]) for network, of_network in self.over_seeds()]
        notes = [BARS.format(len(self.seeds))] * (len(self.seeds) > 1) + [FREE] * self.compresses_for_free
        figure = race.draw(places, source=self.source, title="\n".join([self.title, *notes]))
        if path is not None:
            figure.savefig(path)
        return figure

    def draw_trade_off(self) -> Figure:
        """The picture of speed against accuracy: a point for each run, and the front of the strategies' means.

        A front of single runs would be one of the luckiest seeds.
        """
        panels = []
        for network, of_network in self.over_seeds():
            points = [
                [(run.seconds, run.accuracy) for run in each.finished if not math.isnan(run.accuracy)]
                for each in of_network
            ]
            means = [(mean(x), mean(y)) for x, y in map(_columns, points) if x]
            front = [means[i] for i in spread.pareto_front(means)]
            series = [
                lines.Line(each.name, *_columns(of_strategy), look="points")
                for each, of_strategy in zip(of_network, points, strict=True)
            ]
            series.append(lines.Line("no mean is faster and better", *_columns(front)))
            panels.append(
                lines.Panel(
                    series, "training (s)", "test accuracy", network, log="x" * any(x > 0 for x, _ in front[:1])
                )
            )
        title = "\n".join(fill(line, TITLE_WIDTH) for line in self.title.splitlines())
        return lines.draw(panels, source=self.source, title=title)

    def player(self) -> Player:
        """The runs of the first network, one above the other, to be played; `compare(keep_traces=True)` keeps them.

        Raises ValueError if no trace was kept.
        """
        kept = [(run.trace, run.entrant.name) for run in self.runs if run.trace is not None]
        if not kept:
            raise ValueError("a player needs traces: give compare keep_traces=True")
        traces, names = zip(*kept, strict=True)
        return play_traces(traces, names, f"{self.title} ({self.runs[0].network})")

    def save(self, folder: str | Path, formats: Sequence[str] = ("png",)) -> Path:
        """Write runs.csv, history.csv, summary.csv, loss.png and trade_off.png, or in other `formats`: png, svg, pdf.

        Where traces were kept, run.html plays them in a browser.
        In a script under mpiexec rank 0 writes, and the others do nothing. Raises ValueError for another format, and
        OSError if the folder cannot be written.
        """
        folder = Path(folder)
        check_formats(formats)
        if self.is_writer:
            self.save_tables(folder)
            for picture, figure in (("loss", self.draw()), ("trade_off", self.draw_trade_off())):
                for name in formats:
                    figure.savefig(folder / f"{picture}.{name}")
            if any(run.trace is not None for run in self.runs):
                self.player().save(folder / "run.html")
        return folder

    def save_tables(self, folder: Path) -> None:
        """Write runs.csv, history.csv and summary.csv alone."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in ((RUNS, self.rows()), (SUMMARY, self.summary())):
            write_csv(folder / name, list(rows[0]), rows)
        rows_of_epochs = (row for run in self.runs for row in _epochs(run))
        write_csv(folder / HISTORY, ["network", "strategy", "seed", *OF_AN_EPOCH], rows_of_epochs)

    def _row(self, run: ComparedRun) -> dict[str, Any]:
        entrant, last = run.entrant, run.history[-1] if run.history else {}
        return {
            "network": run.network,
            "strategy": entrant.name,
            **self.settings,
            "nodes": entrant.nodes,
            "servers": entrant.strategy.servers,
            "batch_size": entrant.job.batch_size,
            "lr": entrant.lr,
            "momentum": entrant.momentum,
            "seed": run.seed,
            "ended": run.ended,
            **{name: last.get(name) for name in ("accuracy", "test_loss")},
            "training_loss": last.get("loss"),
            "epochs": last.get("epoch", 0),
            **{name: last.get(name) for name in ("samples", "steps", "seconds")},
            "target": self.target,
            "seconds_to_target": None if self.target is None else run.seconds_to(self.target),
            "learning_per_second": run.learning_per_second,
            "bytes_per_node": run.bytes_per_node,
            "bytes_of_busiest_rank": max(run.bytes_sent, default=None),
            **(run.shares._asdict() if run.shares else dict.fromkeys(Shares._fields)),
            "mean_staleness": run.mean_staleness,
            "greatest_staleness": max(run.staleness, default=None),
        }


def check_formats(formats: Sequence[str]) -> None:
    """Raise TypeError or ValueError unless this is a list of picture formats."""
    if isinstance(formats, str):
        raise TypeError(f"formats must be a list, such as ['png', 'pdf'], got {formats!r}")
    for name in formats:
        one_of("formats", name, FORMATS)


def _epochs(run: ComparedRun) -> Iterator[dict[str, Any]]:
    for row in run.history:
        yield {"network": run.network, "strategy": run.entrant.name, "seed": run.seed} | {
            name: row[name] for name in OF_AN_EPOCH
        }


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """The x and the y of points."""
    return [x for x, _ in points], [y for _, y in points]


def _text(table: Table, source: str) -> str:
    """The table as text; a star marks the strategy that reaches the target first."""
    marked = [[f"{row[0]} *" if number == table.first else row[0], *row[1:]] for number, row in enumerate(table.rows)]
    lines = [
        line for row in [table.columns, *marked] for line in zip_longest(*(c.split("\n") for c in row), fillvalue="")
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = [
        "  ".join(cell.rjust(widths[place]) if place else cell.ljust(widths[0]) for place, cell in enumerate(line))
        for line in lines
    ]
    star = "" if table.first is None else "; *: the first at the target"
    return "\n".join([f"{table.network}: {source}{star}", *(text.rstrip() for text in texts)])
