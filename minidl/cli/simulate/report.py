"""What `minidl simulate` shows and keeps: the table, the same as CSV, and the picture of times."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from minidl.cli.quantities import seconds_text, size_text
from minidl.cli.simulate.cases import AUTO, Case, Outcome
from minidl.cluster.trace import plot_traces
from minidl.plots import scaling, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def tables(outcomes: Sequence[Outcome]) -> Iterator[Table]:
    """A table for each network and size, in it a row for each run; what is to be compared stands together."""
    for _, group in groupby(outcomes, lambda outcome: (outcome.case.network_name, outcome.case.nbytes)):
        yield _table(list(group))


def _table(outcomes: Sequence[Outcome]) -> Table:
    first = outcomes[0].case
    title = f"{first.collective} of {size_text(first.nbytes)}, {first.network_name}: simulated, and by the formula"
    result = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False
    )
    for name in ("nodes", "algorithm", "simulated", "formula", "x best", "messages", "sent"):
        result.add_column(name, justify="left" if name == "algorithm" else "right", no_wrap=True)
    for nodes, group in groupby(outcomes, lambda outcome: outcome.case.nodes):
        rows = list(group)
        best = min(row.seconds for row in rows)
        for row in rows:
            result.add_row(
                str(nodes) if row is rows[0] else "",
                row.case.algorithm if row.case.algorithm == row.chosen else f"{row.case.algorithm}: {row.chosen}",
                seconds_text(row.seconds),
                seconds_text(row.formula),
                f"{row.seconds / best:.2f}",
                f"{row.messages:,}",
                style.bytes_text(row.nbytes_sent),
                style="bold" if row.seconds == best else None,
            )
        result.add_section()
    result.caption = "messages, sent: of the rank that sends most of them; bold: the fastest"
    result.caption_justify = "left"
    return result


def write_csv(outcomes: Sequence[Outcome], path: Path) -> None:
    """The table's numbers at full precision, in seconds and bytes, with the network's alpha, beta and gamma."""
    rows = [_record(outcome) for outcome in outcomes]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _record(outcome: Outcome) -> dict[str, str | float]:
    case, network = outcome.case, outcome.case.network
    return {
        "collective": case.collective,
        "network": case.network_name,
        "alpha": network.alpha,
        "beta": network.beta,
        "gamma": network.gamma,
        "bytes": case.nbytes,
        "nodes": case.nodes,
        "algorithm": case.algorithm,
        "chosen": outcome.chosen,
        "simulated_seconds": outcome.seconds,
        "formula_seconds": outcome.formula,
        "messages": outcome.messages,  # as the table's: of the rank that sends most
        "bytes_sent": outcome.nbytes_sent,
    }


def picture(outcomes: Sequence[Outcome]) -> Figure:
    """Times against nodes, or against bytes where there is only one number of nodes; a panel for all else."""
    across_nodes = len({row.case.nodes for row in outcomes}) > 1 or len({row.case.nbytes for row in outcomes}) == 1
    names = list(dict.fromkeys(row.case.network_name for row in outcomes))
    others = sorted({row.case.nbytes if across_nodes else row.case.nodes for row in outcomes})
    panels = []
    for name in names:
        for other in others:
            rows = [
                row
                for row in outcomes
                if row.case.network_name == name and (row.case.nbytes if across_nodes else row.case.nodes) == other
            ]
            lines = [
                scaling.Line(
                    algorithm,
                    [row.case.nodes if across_nodes else row.case.nbytes for row in same],
                    [row.seconds for row in same],
                    algorithm == AUTO,
                )
                for algorithm in dict.fromkeys(row.case.algorithm for row in rows)
                if (same := [row for row in rows if row.case.algorithm == algorithm])
            ]
            panels.append(scaling.Panel(_heading(name, rows[0].case, across_nodes), lines))
    return scaling.draw(
        panels,
        columns=len(others),
        xlabel="nodes" if across_nodes else "bytes",
        source="simulated",
        title=outcomes[0].case.collective,
        name_x="{:.0f}".format if across_nodes else lambda x: size_text(int(x)),
    )


def _heading(name: str, case: Case, across_nodes: bool) -> str:
    return f"{name}, {size_text(case.nbytes) if across_nodes else f'{case.nodes} nodes'}"


def draw_timelines(cases: Sequence[Case], folder: Path) -> None:
    """Run the cases once more with all their events: one above the other as a picture, and each for Perfetto."""
    traces = [case.simulate(trace="full").trace for case in cases]
    plot_traces(traces, folder / "timeline.png", titles=[str(case) for case in cases])
    for case, trace in zip(cases, traces, strict=True):
        trace.to_chrome(folder / f"trace-{case.algorithm}-{case.nodes}.json")
