"""What `minidl simulate` prints and writes: the tables, the same as CSV, the picture of times and the timelines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from minidl.cli.display import results_table
from minidl.cli.quantities import seconds_text, size_text
from minidl.cli.run_folder import write_csv
from minidl.cli.simulate.cases import AUTO, Case, SimulatedCase
from minidl.cluster.trace.trace import plot_traces
from minidl.plots import scaling, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def tables(runs: Sequence[SimulatedCase]) -> Iterator[Table]:
    """A table for each network and size, with a row for each run."""
    for _, group in groupby(runs, lambda run: (run.case.network_name, run.case.nbytes)):
        yield _table(list(group))


def _table(runs: Sequence[SimulatedCase]) -> Table:
    first = runs[0].case
    title = f"{first.collective} of {size_text(first.nbytes)}, {first.network_name}: simulated, and by the formula"
    caption = "messages, sent: by the rank that sends the most; bold: the fastest"
    result = results_table(title, caption)
    for name in ("nodes", "algorithm", "simulated", "formula", "x best", "messages", "sent"):
        result.add_column(name, justify="left" if name == "algorithm" else "right", no_wrap=True)
    for nodes, group in groupby(runs, lambda run: run.case.nodes):
        rows = list(group)
        best = min(row.seconds for row in rows)
        for row in rows:
            result.add_row(
                str(nodes) if row is rows[0] else "",
                row.case.named(": "),
                seconds_text(row.seconds),
                seconds_text(row.case.formula()),
                f"{row.seconds / best:.2f}",
                f"{row.messages:,}",
                style.bytes_text(row.nbytes_sent),
                style="bold" if row.seconds == best else None,
            )
        result.add_section()
    return result


def write_times(runs: Sequence[SimulatedCase], folder: Path) -> None:
    """Write times.csv: the tables' numbers at full precision, in seconds and bytes, with the network's constants."""
    records = [_record(run) for run in runs]
    write_csv(folder / "times.csv", list(records[0]), records)


def _record(run: SimulatedCase) -> dict[str, str | float]:
    case, network = run.case, run.case.network
    return {
        "collective": case.collective,
        "network": case.network_name,
        "alpha": network.alpha,
        "beta": network.beta,
        "gamma": network.gamma,
        "bytes": case.nbytes,
        "nodes": case.nodes,
        "algorithm": case.algorithm,
        "chosen": case.chosen,
        "simulated_seconds": run.seconds,
        "formula_seconds": case.formula(),
        "messages": run.messages,  # by the rank that sends the most
        "bytes_sent": run.nbytes_sent,
    }


def picture(runs: Sequence[SimulatedCase]) -> Figure:
    """Times against nodes, in a panel for each network and size; against bytes if only the size varies."""
    sizes = {run.case.nbytes for run in runs}
    is_by_size = len({run.case.nodes for run in runs}) == 1 and len(sizes) > 1
    panels: dict[str, dict[str, list[SimulatedCase]]] = {}
    for run in runs:
        heading = f"{run.case.network_name}, {f'{run.case.nodes} nodes' if is_by_size else size_text(run.case.nbytes)}"
        panels.setdefault(heading, {}).setdefault(run.case.algorithm, []).append(run)

    def line(algorithm: str, of_it: list[SimulatedCase]) -> scaling.Line:
        x = [run.case.nbytes if is_by_size else run.case.nodes for run in of_it]
        return scaling.Line(algorithm, x, [run.seconds for run in of_it], algorithm == AUTO)

    return scaling.draw(
        [scaling.Panel(heading, [line(*one) for one in lines.items()]) for heading, lines in panels.items()],
        columns=1 if is_by_size else len(sizes),
        xlabel="bytes" if is_by_size else "nodes",
        source="simulated",
        title=runs[0].case.collective,
        name_x=(lambda x: size_text(int(x))) if is_by_size else "{:.0f}".format,
    )


def draw_timelines(cases: Sequence[Case], folder: Path) -> None:
    """Simulate the cases again with all events; draw the timelines in one picture, and write each for Perfetto."""
    traces = [case.simulate(trace="full").trace for case in cases]
    plot_traces(traces, folder / "timeline.png", titles=[str(case) for case in cases])
    for case, trace in zip(cases, traces, strict=True):
        trace.to_chrome(folder / f"trace-{case.algorithm}-{case.nodes}.json")
