"""What must hold in every run, whatever was drawn."""

from __future__ import annotations

import linecache
import os
import re
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import minidl
from benchmarks.swarm.building import Setting, build
from benchmarks.swarm.choices import Choices
from minidl import cluster, kernels, parallel
from minidl.cluster.engines.simulation.batched import meeting
from minidl.cluster.trace.recording import Traffic
from minidl.grad_mode import is_grad_enabled

Outcome = parallel.Report | Exception


class Broken(AssertionError):
    """An invariant does not hold; `invariant` names it."""

    def __init__(self, invariant: str, found: object) -> None:
        super().__init__(f"{invariant}: {found}")
        self.invariant = invariant


def hold(holds: bool, invariant: str, found: object) -> None:
    """Raise Broken unless it holds."""
    if not holds:
        raise Broken(invariant, found)


def check(choices: Choices) -> str:
    """Play a run; return how it ended. Raises Broken if an invariant does not hold."""
    with leaves_nothing(), tempfile.TemporaryDirectory() as folder:
        try:
            setting = build(choices)
        except ValueError as error:
            return ended(error, strategy=None)
        end = ended(outcome := played(setting), setting.strategy)
        if end == "refused":
            return end
        same_again(setting, outcome)
        if isinstance(outcome, parallel.Report):
            numbers_add_up(setting, outcome)
            if reference := promised(setting, outcome):
                truth = played(replace(setting, strategy=reference, nodes=1), on="simulation", faults=None, elastic=False)
                same_numbers("a strategy that promises it equals Serial", setting, outcome, truth)
            goes_on(setting, outcome, Path(folder))
        return end


def played(setting: Setting, **changes: Any) -> Outcome:
    """The report of the run, or what it raised."""
    try:
        return parallel.train(setting.job, setting.strategy, setting.nodes, **setting.options | changes)
    except Exception as error:
        return error


# ---- a run comes back, and names its true cause ----


def ended(outcome: Outcome, strategy: Any) -> str:
    """How the run ended; Broken unless it trained, was refused by a sentence, or names a planned fault."""
    said = f"{type(outcome).__name__}: {outcome}"
    if isinstance(outcome, parallel.Report):
        for error in outcome.failures.values():
            check_blame(error, outcome.trace)
        return "trained"
    if isinstance(outcome, cluster.DeviceError):
        hold(strategy.counts_device, "a full device is one that is counted", said)
        return "too large"
    if isinstance(outcome, (ValueError, NotImplementedError)):
        hold(is_sentence(outcome), "what is refused is refused by a sentence of the library", said)
        return "refused"
    if isinstance(outcome, parallel.NonFiniteLoss):
        return "not finite"
    hold(isinstance(outcome, cluster.ClusterError), "what does not fit is refused before the ranks start", said)
    check_blame(outcome, outcome.trace)  # type: ignore[arg-type, attr-defined]
    return "failed as planned"


def is_sentence(error: Exception) -> bool:
    """Whether a `raise` of the library made this error, rather than numpy or Python."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(last.filename, last.lineno or 0).strip()
    return last.filename.startswith(os.path.dirname(minidl.__file__)) and line.startswith("raise") and len(str(error)) > 20


CAUSES: dict[str, tuple[type[Exception], ...]] = {
    "kill": (cluster.RankFailed,),
    "stop": (cluster.CommTimeout, cluster.RankFailed),
    "drop": (cluster.CommTimeout, cluster.Deadlock),
    "corrupt": (cluster.ClusterError,),
}
"""The errors in which a planned fault ends, by its kind."""


def check_blame(error: cluster.ClusterError, trace: Any) -> None:
    """Broken unless the error has the kind of a fault that took effect, and names its rank."""
    said = f"{type(error).__name__} of rank {error.rank}: {error}"
    hold("deadline" not in said.partition("\n")[0], "a run comes back within its deadline", said)
    if isinstance(error.cause, parallel.NonFiniteLoss) or "batch_norm: training needs more than one" in str(error.cause):
        return  # only batch norm itself can see that its share is one sample
    took_effect = [(event.rank, event.label.split()[0]) for event in (trace.faults if trace else ())]
    at_fault = [rank for rank, kind in took_effect if isinstance(error, CAUSES[kind])]
    hold(bool(at_fault), "a rank fails by a planned fault only", said)
    if {kind for _, kind in took_effect} <= {"kill", "stop"}:
        hold(error.rank in at_fault, "an error names the rank of a planned fault", f"{at_fault} failed: {said}")


# ---- the same run twice ----


def same_again(setting: Setting, outcome: Outcome) -> None:
    """Broken unless a second run has the same bits, times, messages and errors: also in the other kind of simulation."""
    engine = replace(setting.options["on"], batched=setting.run.again != "by message")
    with mock.patch.object(meeting, "LEAST", 2 if setting.run.again == "at once" else meeting.LEAST):
        again = played(setting, on=engine)
    for one, other in zip(observed(outcome), observed(again), strict=True):
        hold(one == other, "the same run has the same bits and times", f"{one}\n{other}")


def observed(outcome: Outcome) -> tuple[object, ...]:
    if isinstance(outcome, parallel.Report):
        errors = {rank: str(error).partition("\n")[0] for rank, error in outcome.failures.items()}
        return outcome.digests, str(outcome.history), outcome.seconds, outcome.trace.ledger(), errors
    return type(outcome), str(outcome).partition("\n")[0], getattr(outcome, "rank", None)


# ---- the numbers of a report ----


def numbers_add_up(setting: Setting, report: parallel.Report) -> None:
    """Broken unless weights are finite, counts are those of the job, and each message was received or dropped."""
    rows, job, strategy = [dict(row) for row in report.history], setting.job, setting.strategy
    for name, parameter in report.model().named_parameters():
        hold(bool(np.isfinite(parameter.numpy().astype(np.float64)).all()), "weights are finite", name)
    hold([row["epoch"] for row in rows] == list(range(1, job.epochs + 1)), "the history has a row for each epoch", rows)
    for name in ("seconds", "bytes", "steps", "samples"):
        hold(rows == sorted(rows, key=lambda row: row[name]), "what is counted since the start never falls", rows)
    expected, found = job.epochs * len(job.build_data().train) * strategy.readings(setting.nodes), rows[-1]["samples"]
    hold(found >= expected, "a run reads all samples", f"{found} of {expected}")
    if setting.is_calm and strategy.resumes_from in ("step", "checkpoint"):
        hold(len(set(report.digests)) == 1, "nodes that agree on every gradient have the same weights", report.digests)
        hold(found == expected, "a run reads each sample once an epoch", f"{found} of {expected}")
    if not report.failures and not report.restarts:  # ranks that fail leave messages behind
        total = Traffic.total(traffic for rank in report.trace.ledger() for traffic in rank.values())
        lost = sum(event.label.startswith("drop") for event in report.trace.faults)
        are_conserved = total.messages == total.messages_received + lost and (lost or total.nbytes == total.nbytes_received)
        hold(bool(are_conserved), "what is sent is received or dropped", f"{total}, {lost} dropped")


# ---- the same as Serial, and as a run that never stopped ----


def same_numbers(invariant: str, setting: Setting, one: Outcome, other: Outcome) -> None:
    """Broken unless two reports have the same weights, losses, rates and counts, within rounding."""
    if not isinstance(one, parallel.Report) or not isinstance(other, parallel.Report):
        raise Broken(invariant, f"{one!r}\n{other!r}")
    if not max(row["loss"] for row in other.history) < LARGEST_LOSS:
        return
    tolerance = 1e-4 if setting.job.precision else 1e-10
    columns = ["epoch", "lr", "steps", "samples", "test_loss", *([] if one.restarts else ["loss"])]  # not of the dead
    pairs = {name: (array, other.checkpoint.model[name]) for name, array in one.checkpoint.model.items()}
    for name in columns:
        pairs[name] = tuple(np.array([dict(row)[name] for row in each.history]) for each in (one, other))
    for name, (found, expected) in pairs.items():
        size = max(1.0, float(np.abs(expected).max(initial=0)))
        error = float(np.nan_to_num(np.abs(found - expected)).max(initial=0)) / size
        hold(error < tolerance, invariant, f"{name} differs by {error:.3g}")


LARGEST_LOSS = 5.0
"""A run with a larger one diverges, and multiplies rounding errors; the entropy of the labels is 1.1."""


def promised(setting: Setting, report: parallel.Report) -> parallel.Serial | None:
    """The Serial that the run must equal by the docstring of its strategy; None if nothing is promised."""
    strategy, run, doc = setting.strategy, setting.run, type(setting.strategy).__doc__ or ""
    plan, has_norms = strategy.plan(setting.job, setting.nodes), run.model in ("norms", "images")
    is_approximate = run.precision not in (None, "float32") or getattr(strategy, "compressor", None) is not None
    is_late = plan.schedule == "pipedream" or getattr(getattr(strategy, "offload", None), "delayed", False)
    is_other = report.restarts and not is_same_on_any_nodes(setting) or "corrupt" in str(report.trace.faults)
    if is_approximate or is_late or is_other or report.failures:
        return None
    if setting.nodes == 1 and re.search("one (node|worker) is Serial", doc) and run.model != "uneven":
        return parallel.Serial()  # with a gradient of zero where there is none
    if run.shards != "shuffled":
        return None
    if "Conserved: averaging keeps this mean" in doc and run.loss == "linear" and run.depth == 0 and run.model == "mlp":
        is_plain = run.optimizer.startswith("sgd") and not (run.clip_norm or report.restarts or strategy.asynchronous)
        return parallel.Serial() if is_plain else None
    if not re.search("Equal to (`?Serial|Synchronous)", doc):
        return None
    micro_batches = getattr(strategy, "accumulate", plan.micro_batches)
    if has_norms and getattr(strategy, "batch_norm", "local") == "synchronized":
        return None if run.dropout or micro_batches > 1 else parallel.Serial()
    return parallel.Serial(plan.shares, micro_batches)


def is_same_on_any_nodes(setting: Setting) -> bool:
    """Whether nothing in the model depends on how many nodes share a minibatch."""
    return not setting.run.dropout and setting.run.model not in ("norms", "images", "experts")


def goes_on(setting: Setting, report: parallel.Report, folder: Path) -> None:
    """Broken unless a run that stopped and was resumed, or lost nodes, ends as one that never stopped."""
    strategy, on = setting.strategy, setting.run.resume_on
    if report.restarts and strategy.resumes_from == "checkpoint" and "corrupt" not in str(report.trace.faults):
        calm = played(setting, faults=None, elastic=False)
        name = "with new nodes in the places of the dead, a run has the bits of one in which none died"
        hold(report.digests == getattr(calm, "digests", None), name, report.restarts)
    if not on or not setting.is_calm or setting.job.epochs == 1 or not strategy.is_resumable:
        return
    played(replace(setting, job=replace(setting.job, epochs=1)), folder=folder)
    rest, name = played(setting, resume=folder), "a resumed run has the bits of one that never stopped"
    same_numbers(name, setting, rest, report)
    hold(getattr(rest, "digests", None) == report.digests, name, rest)
    if on != "the same" and setting.job.smallest_batch >= on and is_same_on_any_nodes(setting) and promised(setting, report):
        moved = replace(setting, strategy=parallel.Synchronous(), nodes=on)
        name = "a run resumed on other nodes has the numbers of one that always had them"
        same_numbers(name, setting, played(moved, resume=folder, on="simulation", faults=None), report)


# ---- nothing is left ----


def belongings() -> dict[str, object]:
    """What this process has: threads, open files, shared memory, child processes, and settings of its own."""
    return {
        "threads": threading.active_count(),
        "files": len(os.listdir("/proc/self/fd")),
        "shared memory": re.findall("/dev/shm/.*", Path("/proc/self/maps").read_text()),
        "processes": Path("/proc/thread-self/children").read_text(),
        "settings": (np.geterr(), kernels.active(), is_grad_enabled()),
    }


@contextmanager
def leaves_nothing() -> Iterator[None]:
    """Broken if the block leaves anything behind, or changes a setting."""
    before = belongings()
    yield
    hold(before == (after := belongings()), "a run leaves nothing behind", f"{before}\n{after}")
