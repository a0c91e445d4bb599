"""What must hold in every run, whatever was drawn."""

from __future__ import annotations

import linecache
import os
import re
import tempfile
import threading
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.swarm.building import build
from benchmarks.swarm.choices import Choices
from minidl import cluster, kernels, parallel
from minidl.cluster.engines.simulation.batched.plans import PLANS
from minidl.cluster.trace.recording import Traffic
from minidl.grad_mode import is_grad_enabled

Outcome = parallel.Report | Exception


class BrokenError(AssertionError):
    """An invariant does not hold: its name, and what was found."""

    def __str__(self) -> str:
        return ": ".join(map(str, self.args))


def hold(holds: object, invariant: str, found: object) -> None:
    """Raise BrokenError unless the invariant holds."""
    if not holds:
        raise BrokenError(invariant, found)


def check(choices: Choices) -> str:
    """Play a run and return how it ended. Raises BrokenError if an invariant does not hold."""
    before = belongings()
    with tempfile.TemporaryDirectory() as folder:
        end = verified(choices, Path(folder))
    hold(before == (after := belongings()), "a run leaves nothing behind", f"{before}\n{after}")
    return end


def verified(choices: Choices, folder: Path) -> str:
    try:
        run = build(choices)
    except ValueError as error:
        return ended(error, run=None)
    end = ended(outcome := played(run), run)
    if end != "refused":
        same_again(run, outcome)
    if isinstance(outcome, parallel.Report):
        numbers_add_up(run, outcome)
        if reference := promised(run, outcome):
            serial = played(run, strategy=reference, nodes=1, on="simulation", **CALM)
            same_numbers("a strategy that promises it equals Serial", run, outcome, serial)
        goes_on(run, outcome, folder)
    return end


CALM: dict[str, Any] = {"faults": None, "elastic": False}


def played(run: Any, **changes: Any) -> Outcome:
    """The report of the run, or what it raised."""
    try:
        return parallel.train(**run.options | changes)
    except Exception as error:
        return error


def ended(outcome: Outcome, run: Any) -> str:
    """How the run ended: it trained, was refused by a message, diverged, or failed by a planned fault."""
    said = f"{type(outcome).__name__}: {outcome}"
    if isinstance(outcome, parallel.Report):
        for error in outcome.failures.values():
            check_blame(error, outcome.trace)
        return "trained"
    if isinstance(outcome, cluster.DeviceError):
        hold(run.options["strategy"].counts_device, "a full device is one that is counted", said)
        return "too large"
    if isinstance(outcome, (ValueError, NotImplementedError)):
        last = traceback.extract_tb(outcome.__traceback__)[-1]
        is_raised = linecache.getline(last.filename, last.lineno or 0).strip().startswith("raise ")
        hold(is_raised and "minidl" in last.filename, "what is refused is refused by a sentence of the library", said)
        return "refused"
    if isinstance(outcome, parallel.NonFiniteLoss):
        return "not finite"
    if not isinstance(outcome, cluster.ClusterError):
        raise BrokenError("what does not fit is refused before the ranks start", said) from outcome
    check_blame(outcome, outcome.trace)
    return "failed as planned"


CAUSES: dict[str, tuple[type[Exception], ...]] = {
    "kill": (cluster.RankFailed,),
    "stop": (cluster.CommTimeout, cluster.RankFailed),
    "drop": (cluster.CommTimeout, cluster.Deadlock),
    "corrupt": (cluster.ClusterError,),
}
"""The errors that a planned fault may cause, by its kind."""


def check_blame(error: cluster.ClusterError, trace: Any) -> None:
    """Check that the error has the kind of a fault that took effect, and names its rank."""
    said = f"{type(error).__name__} of rank {error.rank}: {error}"
    backwards = [event for event in trace.events if event.end < event.start]
    hold(not backwards, "no event ends before it begins", backwards)
    hold("deadline" not in said.partition("\n")[0], "a run comes back within its deadline", said)
    if isinstance(error.cause, parallel.NonFiniteLoss):
        return
    took_effect = [(event.rank, event.label.split()[0]) for event in trace.faults]
    at_fault = [rank for rank, kind in took_effect if isinstance(error, CAUSES[kind])]
    hold(at_fault, "a rank fails by a planned fault only", said)
    if {kind for _, kind in took_effect} <= {"kill", "stop"}:
        hold(error.rank in at_fault, "an error names the rank of a planned fault", f"{at_fault} failed: {said}")


def same_again(run: Any, outcome: Outcome) -> None:
    """Check that a second run, played as `again` says, has the same bits, times, messages and errors."""
    engine = replace(run.options["on"], batched=run.again != "by message")
    least = {function: plan._replace(least=2) for function, plan in PLANS.items()} if run.again == "at once" else {}
    with mock.patch.dict(PLANS, least):
        again = played(run, on=engine)
    for one, other in zip(observed(outcome), observed(again), strict=True):
        hold(one == other, "the same run has the same bits and times", f"{one}\n{other}")


def observed(outcome: Outcome) -> tuple[object, ...]:
    if isinstance(outcome, parallel.Report):
        errors = {rank: str(error).partition("\n")[0] for rank, error in outcome.failures.items()}
        return outcome.digests, str(outcome.history), outcome.seconds, outcome.trace.ledger(), errors
    return type(outcome), str(outcome).partition("\n")[0], getattr(outcome, "rank", None)


def numbers_add_up(run: Any, report: parallel.Report) -> None:
    """Check that weights are finite, counts are those of the job, and no message is missing that was not dropped."""
    rows: list[dict[str, Any]] = [dict(row) for row in report.history]
    strategy = report.strategy
    for name, parameter in report.model().named_parameters():
        hold(np.isfinite(parameter.numpy().astype(np.float64)).all(), "weights are finite", name)
    hold([row["epoch"] for row in rows] == [*range(1, run.epochs + 1)], "the history has a row for each epoch", rows)
    for name in ("seconds", "bytes", "steps", "samples"):
        hold(rows == sorted(rows, key=lambda row: row[name]), "what is counted since the start never falls", rows)
    expected, found = run.epochs * run.samples * strategy.readings(run.options["nodes"]), rows[-1]["samples"]
    hold(found >= expected, "a run reads all samples", f"{found} of {expected}")
    if run.is_calm and strategy.resumes_from in ("step", "checkpoint"):
        hold(len(set(report.digests)) == 1, "nodes that agree on every gradient have the same weights", report.digests)
        hold(found == expected, "a run reads each sample once an epoch", f"{found} of {expected}")
    path = report.trace.critical_path().seconds
    hold(report.restarts or path <= report.seconds * (1 + 1e-9), "the critical path is in the run", path)
    if not report.failures and not report.restarts:  # ranks that fail leave messages behind
        total = Traffic.total(traffic for rank in report.trace.ledger() for traffic in rank.values())
        lost = sum(event.label.startswith("drop") for event in report.trace.faults)
        are_all = total.messages == total.messages_received + lost and (lost or total.nbytes == total.nbytes_received)
        hold(are_all, "what is sent is received or dropped", f"{total}, {lost} dropped")


LARGEST_LOSS = 5.0
"""Above this loss a run counts as divergent, and rounding errors grow. A model that knows nothing has a loss of 1.1."""


def same_numbers(invariant: str, run: Any, one: Outcome, other: Outcome) -> None:
    """Check that two reports have the same weights, losses, learning rates and counts, within rounding."""
    if not isinstance(one, parallel.Report) or not isinstance(other, parallel.Report):
        raise BrokenError(invariant, f"{one!r}\n{other!r}")
    if not max(row["loss"] for row in other.history) < LARGEST_LOSS:
        return
    is_whole = not one.restarts and one.strategy.resumes_from != "mean"  # else of survivors, or at weights of their own
    pairs = {name: (array, other.checkpoint.model[name]) for name, array in one.checkpoint.model.items()}
    for name in ("epoch", "lr", "steps", "samples", "test_loss", *["loss"] * is_whole):
        found, expected = (np.array([dict(row)[name] for row in each.history]) for each in (one, other))
        pairs[name] = found, expected
    for name, (found, expected) in pairs.items():
        error = np.nan_to_num(np.abs(found - expected)).max(initial=0) / max(1.0, np.abs(expected).max(initial=0))
        hold(error < (1e-4 if run.precision else 1e-10), invariant, f"{name} differs by {error:.3g}")


def promised(run: Any, report: parallel.Report) -> parallel.Serial | None:
    """The Serial that the run must equal by the docstring of its strategy; None if nothing is promised."""
    strategy, nodes = run.options["strategy"], run.options["nodes"]
    plan, doc = strategy.plan(run.options["job"], nodes), type(strategy).__doc__ or ""
    is_approximate = run.precision not in (None, "float32") or getattr(strategy, "compressor", None) is not None
    is_late = plan.schedule == "pipedream" or getattr(getattr(strategy, "offload", None), "delayed", False)
    is_other: Any = (report.restarts and depends_on_nodes(run)) or "corrupt" in str(report.trace.faults)
    if is_approximate or is_late or is_other or report.failures:
        return None
    if nodes == 1 and re.search("one (node|worker) is Serial", doc) and run.model != "uneven":
        return parallel.Serial()  # but with a gradient of zero where there is none
    if run.shards != "shuffled":
        return None
    if "averaging keeps this mean" in doc and (run.loss, run.depth, run.model) == ("linear", 0, "mlp"):
        is_other = run.clip_norm or report.restarts or strategy.asynchronous or not run.optimizer.startswith("sgd")
        return None if is_other else parallel.Serial()
    if type(strategy) is parallel.LocalSGD and strategy.period == 1:
        is_plain = run.optimizer == "sgd" and run.model != "convolutions" and not (run.clip_norm or report.restarts)
        return parallel.Serial(nodes) if is_plain else None
    if not re.search("Equal to (`?Serial|Synchronous)", doc):
        return None
    micro_batches = getattr(strategy, "accumulate", plan.micro_batches)
    if run.model == "convolutions" and getattr(strategy, "batch_norm", "local") == "synchronized":
        return None if run.dropout or micro_batches > 1 else parallel.Serial()
    return parallel.Serial(plan.shares, micro_batches)


def depends_on_nodes(run: Any) -> bool:
    """Whether the model's numbers depend on how many nodes share a minibatch."""
    return bool(run.dropout) or run.model in ("convolutions", "experts")


def goes_on(run: Any, report: parallel.Report, folder: Path) -> None:
    """Check that a run that was resumed, or lost nodes, ends as one that never stopped."""
    strategy, on = report.strategy, run.resume_on
    if report.restarts and strategy.resumes_from == "checkpoint" and "corrupt" not in str(report.trace.faults):
        name = "with new nodes in the places of the dead, a run has the bits of one in which none died"
        hold(report.digests == getattr(played(run, **CALM), "digests", None), name, report.restarts)
    if not on or not run.is_calm or run.epochs == 1 or not strategy.is_resumable:
        return
    played(run, job=replace(run.options["job"], epochs=1), folder=folder)
    rest, name = played(run, resume=folder), "a resumed run has the bits of one that never stopped"
    same_numbers(name, run, rest, report)
    hold(getattr(rest, "digests", None) == report.digests, name, rest)
    if on != "the same" and run.batch_size >= on and not depends_on_nodes(run) and promised(run, report):
        moved = played(run, strategy=parallel.Synchronous(), nodes=on, resume=folder, on="simulation", faults=None)
        same_numbers("a run resumed on other nodes has the numbers of one that always had them", run, moved, report)


def belongings() -> dict[str, object]:
    """Threads, open files, shared memory, child processes and settings of this process."""
    return {
        "threads": threading.active_count(),
        "files": len(os.listdir("/proc/self/fd")),
        "shared memory": re.findall("/dev/shm/.*", Path("/proc/self/maps").read_text()),
        "processes": Path("/proc/thread-self/children").read_text(),
        "settings": (np.geterr(), kernels.active(), is_grad_enabled()),
    }
