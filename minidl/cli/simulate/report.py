"""What `minidl simulate` prints and writes: the tables, the same as CSV, the picture of times and the timelines."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from minidl.atomic_files import write_csv
from minidl.cli.display import results_table
from minidl.cli.quantities import counted, size_text
from minidl.cli.simulate.cases import AUTO, HIERARCHICAL, Case, SimulatedCase
from minidl.cluster.trace.trace import play_traces, plot_traces
from minidl.cores import cores
from minidl.plots import scaling, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_UNEVEN = 2  # ratio of the longest timeline to the shortest, beyond which each has a time axis of its own


def tables(runs: Sequence[SimulatedCase]) -> Iterator[Table]:
    """A table for each network and size, with a row for each run."""
    for _, group in groupby(runs, lambda run: (run.case.network_name, run.case.nbytes)):
        yield _table(list(group))


def winners(runs: Sequence[SimulatedCase]) -> Table:
    """A table of the fastest algorithm on each network, for each size and number of nodes."""
    result = results_table(f"The fastest {runs[0].case.collective}: simulated", "")
    for name in ("network", "bytes", "nodes", "fastest"):
        result.add_column(name, justify="left" if name in ("network", "fastest") else "right", overflow="fold")
    for _, group in groupby(runs, lambda run: (run.case.network_name, run.case.nbytes, run.case.nodes)):
        rows = list(group)
        case = rows[0].case
        times, choices = ({row.case.named(" "): row.seconds for row in rows if (row.case.algorithm == AUTO) is choice}
                          for choice in (False, True))  # fmt: skip
        result.add_row(case.network_name, size_text(case.nbytes), str(case.nodes), scaling.fastest(times, choices))
    return result


def _table(runs: Sequence[SimulatedCase]) -> Table:
    first, is_measured = runs[0].case, bool(runs[0].measured)
    kinds = "simulated, by the formula, and measured" if is_measured else "simulated, and by the formula"
    result = results_table(
        f"{first.collective} of {size_text(first.nbytes)}, {first.network_name}: {kinds}", _caption(runs)
    )
    columns = ("measured", "ratio") if is_measured else ("x best", "messages", "sent")
    for name in ("nodes", "algorithm", "simulated", "formula", *columns):
        result.add_column(name, justify="left" if name == "algorithm" else "right", no_wrap=True)
    for nodes, group in groupby(runs, lambda run: run.case.nodes):
        rows = list(group)
        best = min(row.seconds for row in rows)
        for row in rows:
            formula = row.case.formula()
            result.add_row(
                str(nodes) if row is rows[0] else "",
                row.case.named(": "),
                style.seconds_text(row.seconds),
                "-" if formula is None else style.seconds_text(formula),
                *(_real(row) if is_measured else _sent(row, best)),
                style="bold" if row.seconds == best else None,
            )
        result.add_section()
    return result


def _sent(row: SimulatedCase, best: float) -> tuple[str, ...]:
    return f"{row.seconds / best:.2f}", f"{row.messages:,}", style.bytes_text(row.nbytes_sent)


def _real(row: SimulatedCase) -> tuple[str, ...]:
    median = statistics.median(row.measured)
    return style.seconds_text(median), f"{median / row.seconds:.2f}"


def _caption(runs: Sequence[SimulatedCase]) -> str:
    lines = ["bold: the fastest in the simulation"]
    if runs[0].measured:
        lines.append(f"measured: median of {len(runs[0].measured)} calls, each until the last node has ended")
        lines.append("ratio: measured / simulated")
        if max(run.case.nodes for run in runs) > cores():
            lines.append(f"this machine has {counted(cores(), 'core')}: more nodes than that also wait for a core")
    else:
        lines.append("messages, sent: by the rank that sends the most")
    if any(run.case.algorithm == HIERARCHICAL for run in runs):
        lines.append("hierarchical: groups x nodes in each")
    if any(run.case.is_imported for run in runs):
        lines.append("-: there is no formula for an algorithm of your own")
    if any(run.case.formula() is None and not run.case.is_imported for run in runs):
        lines.append("-: there is no formula for links that are shared")
    return "\n".join(lines)


def write_times(runs: Sequence[SimulatedCase], folder: Path) -> None:
    """Write times.csv: the tables' numbers at full precision, in seconds and bytes, with the network's constants."""
    records = [_record(run) for run in runs]
    write_csv(folder / "times.csv", list(records[0]), records)


def _record(run: SimulatedCase) -> dict[str, str | float | None]:
    case, network, times = run.case, run.case.network, run.measured
    algorithm, options = case.choice
    record: dict[str, str | float | None] = {
        "collective": case.collective,
        "network": case.network_name,
        "alpha": network.alpha,
        "beta": network.beta,
        "gamma": network.gamma,
        "bytes": case.nbytes,
        "nodes": case.nodes,
        "algorithm": case.algorithm,
        "chosen": algorithm,
        "per_group": options.get("per_group"),
        "simulated_seconds": run.seconds,
        "formula_seconds": case.formula(),
        "messages": run.messages,  # by the rank that sends the most
        "bytes_sent": run.nbytes_sent,
    }
    if times:
        of_them = {"median": statistics.median(times), "least": min(times), "most": max(times)}
        record |= {f"measured_seconds_{name}": seconds for name, seconds in of_them.items()}
    return record


def picture(runs: Sequence[SimulatedCase], source: str = "simulated") -> Figure:
    """Times against nodes, in a panel for each network and size; against bytes if only the size varies.

    source: "simulated", or "measured" for the medians
    """
    sizes = {run.case.nbytes for run in runs}
    is_by_size = len({run.case.nodes for run in runs}) == 1 and len(sizes) > 1
    panels: dict[str, dict[str, list[SimulatedCase]]] = {}
    for run in runs:
        of_one = f"{run.case.nodes} nodes" if is_by_size else size_text(run.case.nbytes)
        heading = f"{run.case.network_name}, {of_one}" if source == "simulated" else of_one
        panels.setdefault(heading, {}).setdefault(run.case.algorithm, []).append(run)

    def line(algorithm: str, of_it: list[SimulatedCase]) -> scaling.Line:
        x = [run.case.nbytes if is_by_size else run.case.nodes for run in of_it]
        seconds = [run.seconds if source == "simulated" else statistics.median(run.measured) for run in of_it]
        return scaling.Line(algorithm, x, seconds, is_choice=algorithm == AUTO and source == "simulated")

    return scaling.draw(
        [scaling.Panel(heading, [line(*one) for one in lines.items()]) for heading, lines in panels.items()],
        columns=1 if is_by_size else len(sizes),
        xlabel="bytes" if is_by_size else "nodes",
        source=source,
        title=runs[0].case.collective,
        name_x=(lambda x: size_text(int(x))) if is_by_size else "{:.0f}".format,
    )


def draw_timelines(cases: Sequence[Case], folder: Path) -> None:
    """Simulate the cases again with all events; write their timelines: one picture, one page, each for Perfetto."""
    runs = [case.simulate(trace="full") for case in cases]
    seconds, titles = [run.seconds for run in runs], [str(case) for case in cases]
    is_uneven = max(seconds) > MOST_UNEVEN * min(seconds)
    plot_traces([run.trace for run in runs], folder / "timeline.png", titles=titles, own_axes=is_uneven)
    play_traces([run.trace for run in runs], titles, cases[0].collective).save(folder / "run.html")
    for case, run in zip(cases, runs, strict=True):
        run.trace.to_chrome(folder / f"trace-{case.algorithm}-{case.nodes}.json")
