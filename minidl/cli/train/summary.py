"""What `minidl train` prints before and after a run."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from minidl import data
from minidl.cli import engines
from minidl.cli.job import decay_text, read_as
from minidl.cli.quantities import counted
from minidl.nn import Module
from minidl.parallel.run.checkpoint import CHECKPOINT_FILE
from minidl.plots.style import bytes_text, seconds_text

if TYPE_CHECKING:
    from minidl.cli.job import Options
    from minidl.nn.experts import RoutingCounts
    from minidl.parallel import Report, Strategy


def title(options: Options, model: Module, splits: data.Splits) -> str:
    """What is trained, on what data, and how: two lines.

    A third is for a strategy, a simulation or a network, one more for data of one's own: what it was read as.
    """
    size = sum(parameter.size for parameter in model.parameters())
    nodes = counted(options["nodes"], "node")
    momentum = f", momentum {options['momentum']:g}" if options["momentum"] else ""
    optimizer = f"{options['optimizer']}, " if options["optimizer"] is not None else ""
    rate = f"{optimizer}learning rate {options['lr']:g}{decay_text(options['lr_decay'])}{momentum}"
    third = [f"strategy {options['strategy']}"] if options["strategy"] is not None else []
    if options["on"] == "mpi":
        third.append("nodes: ranks of MPI")
    if options["on"] == "simulation":
        node = engines.simulated_node(options["flops"] or engines.FLOPS_PER_S)
        third.append(f"simulated {engines.node_text(node)}")
        if options["device_memory"] is not None:
            third.append(f"device memory {options['device_memory']}")
    if options["network"] != engines.NO_NETWORK:
        third.append(f"network {options['network']}")
    if options["precision"] is not None:
        third.append(f"in {options['precision']}")
    lines = [
        f"{options['model']} ({size:,} parameters) on {options['data']}, {nodes}, kernels {options['kernels']}",
        f"minibatch {options['batch_size']}, {rate}, seed {options['seed']}",
        ", ".join(third),
        "" if options["data"] in data.NAMES else read_as(splits),
    ]
    return "\n".join(filter(None, lines))


def table(report: Report) -> Table:
    """The results of a run."""
    last, shares, splits = report.history[-1], report.trace.shares(), report.job.build_data()
    result = Table(show_header=False)
    result.add_column(style="bold")
    result.add_column()
    shares_text = (
        f"{shares.compute:.0%} computing, {shares.communication:.0%} communicating, {shares.waiting:.0%} waiting"
    )
    if splits.columns:
        result.add_row("class, from columns", f"{splits.columns[-1]}, {', '.join(splits.columns[:-1][:8])}")
    result.add_row("test accuracy", f"{report.accuracy:.2%}")
    result.add_row("loss (training / test)", f"{last['loss']:.4f} / {last['test_loss']:.4f}")
    if splits.train.x.dtype.kind in "iu":  # text: the lowest loss of a model that ignores the context
        result.add_row("entropy of the characters", f"{data.unigram_entropy(splits.test.y):.4f}")
    result.add_row(f"time, {report.trace.source}", seconds_text(report.seconds))
    result.add_row("samples/s, last epoch", f"{last['samples_per_second']:,.0f}")
    result.add_row("time of all nodes", shares_text)
    waits = report.waited_for
    if total := sum(waits.values()):
        most = max(waits, key=lambda node: waits[node])
        result.add_row("most waited for", f"{report.name(most)}, {waits[most] / total:.0%} of all nodes' waiting")
    result.add_row("sent by node 0, in all", bytes_text(last["bytes"]))
    if report.routing:
        for name, counts in report.routing[-1].items():
            chosen = max(counts.load.sum(), 1)  # none, if the run went on after the epoch's last minibatch
            loads = " ".join(f"{load / chosen:.0%}" for load in counts.load)
            result.add_row(f"experts of {name}", f"{loads} of the tokens; {counts.dropped / chosen:.1%} dropped")
    if uses := report.recorded.get("device"):
        peak = max((use for each in uses for use in each), key=lambda use: use.peak)
        parts = ", ".join(f"{name} {bytes_text(nbytes)}" for name, nbytes in peak.at_peak.items() if nbytes)
        result.add_row("most on a device", f"{bytes_text(peak.peak)} {peak.moment}: {parts}")
        result.add_row(
            "its link to the host", f"{bytes_text(peak.fetched)} fetched, {bytes_text(peak.sent_back)} sent back"
        )
    return result


def as_json(report: Report, folder: Path) -> dict[str, Any]:
    """The results and every epoch, for a program; None for a number that is not finite."""
    last = report.history[-1]
    return {
        "folder": str(folder),
        "nodes": report.nodes,
        "seconds": report.seconds,
        "clock": report.trace.source,
        **{name: _finite(last[name]) for name in ("accuracy", "loss", "test_loss")},
        **({"routing": [_routing(epoch) for epoch in report.routing]} if report.routing else {}),
        "deaths": [asdict(death) for death in report.deaths],
        "waited_for": {report.name(node): seconds for node, seconds in report.waited_for.items()},
        "history": [{name: _finite(value) for name, value in row.items()} for row in report.history],
    }


def _routing(epoch: dict[str, RoutingCounts]) -> dict[str, Any]:
    return {name: {"load": counts.load.tolist(), "dropped": counts.dropped} for name, counts in epoch.items()}


def _finite(value: Any) -> Any:
    return value if math.isfinite(value) else None


def how_to_go_on(folder: Path, strategy: Strategy) -> str:
    """A line that says how a stopped run can be resumed. All its nodes have ended."""
    if not strategy.is_resumable:
        return f"Stopped, and all nodes have ended. {type(strategy).__name__} cannot be resumed: start again."
    if (folder / CHECKPOINT_FILE).exists():
        return f"Stopped, and all nodes have ended. To go on: minidl train --resume {folder}"
    return "Stopped before the first step; all nodes have ended."
