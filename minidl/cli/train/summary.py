"""What `minidl train` prints before and after a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from minidl import data
from minidl.cli import engines
from minidl.cli.job import decay_text
from minidl.cli.quantities import counted
from minidl.nn import Module
from minidl.parallel.run.checkpoint import CHECKPOINT_FILE

if TYPE_CHECKING:
    from minidl.cli.job import Options
    from minidl.parallel import Report, Strategy


def title(options: Options, model: Module) -> str:
    """What is trained, on what data, and how, in two lines; a third for a strategy, a simulation or a network."""
    size = sum(parameter.size for parameter in model.parameters())
    nodes = counted(options["nodes"], "node")
    momentum = f", momentum {options['momentum']:g}" if options["momentum"] else ""
    rate = f"learning rate {options['lr']:g}{decay_text(options['lr_decay'])}{momentum}"
    third = [f"strategy {options['strategy']}"] if options["strategy"] is not None else []
    if options["on"] == "simulation":
        third.append(f"simulated {engines.node_text(engines.simulated_node())}")
    if options["network"] != engines.NO_NETWORK:
        third.append(f"network {options['network']}")
    lines = [
        f"{options['model']} ({size:,} parameters) on {options['data']}, {nodes}, kernels {options['kernels']}",
        f"minibatch {options['batch_size']}, {rate}, seed {options['seed']}",
        ", ".join(third),
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
    result.add_row("test accuracy", f"{report.accuracy:.2%}")
    result.add_row("loss (training / test)", f"{last['loss']:.4f} / {last['test_loss']:.4f}")
    if splits.train.x.dtype.kind in "iu":  # text: the lowest loss of a model that ignores the context
        result.add_row("entropy of the characters", f"{data.unigram_entropy(splits.test.y):.4f}")
    result.add_row("seconds", f"{report.seconds:.1f}")
    result.add_row("samples per second", f"{last['samples_per_second']:,.0f}")
    result.add_row("time of the nodes", shares_text)
    result.add_row("sent by node 0", f"{last['bytes'] / 1e6:,.1f} MB")
    return result


def how_to_go_on(folder: Path, strategy: Strategy) -> str:
    """A line that says how a stopped run can be resumed. All its nodes have ended."""
    if not strategy.is_resumable:
        return f"Stopped, and all nodes have ended. {type(strategy).__name__} cannot be resumed: start again."
    if (folder / CHECKPOINT_FILE).exists():
        return f"Stopped, and all nodes have ended. To go on: minidl train --resume {folder}"
    return "Stopped before the first step; all nodes have ended."
