"""What must hold in every run, whatever was drawn."""

from __future__ import annotations

import linecache
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import minidl
from benchmarks.swarm.building import Setting, build
from benchmarks.swarm.choices import Choices
from minidl import cluster, kernels, parallel
from minidl.cluster.trace.recording import Traffic
from minidl.grad_mode import is_grad_enabled

LIBRARY = os.path.dirname(minidl.__file__)
REFUSED, TRAINED, NOT_FINITE, FAILED, FULL = "refused", "trained", "not finite", "failed as planned", "too large"

Outcome = parallel.Report | Exception


class Broken(AssertionError):
    """An invariant does not hold; `invariant` names it."""

    def __init__(self, invariant: str, found: str) -> None:
        super().__init__(f"{invariant}: {found}")
        self.invariant = invariant


def hold(holds: bool, invariant: str, found: Any) -> None:
    """Raise Broken unless it holds; found: what was found, or a function that says it."""
    if not holds:
        raise Broken(invariant, str(found() if callable(found) else found))


def check(choices: Choices) -> str:
    """Play a run; return how it ended. Raises Broken if an invariant does not hold."""
    with leaves_nothing(), tempfile.TemporaryDirectory() as folder:
        try:
            setting = build(choices)
        except ValueError as error:
            return ended(error, None)
        outcome = played(setting)
        end = ended(outcome, setting)
        if end == REFUSED:
            return end
        repeated(setting, outcome)
        if isinstance(outcome, parallel.Report):
            numbers_add_up(setting, outcome)
            equals_serial(setting, outcome)
            goes_on(setting, outcome, Path(folder))
        return end


def played(setting: Setting, **changes: Any) -> Outcome:
    """The report of the run, or what it raised."""
    try:
        return parallel.train(setting.job, setting.strategy, setting.nodes, **setting.options | changes)
    except Exception as error:
        return error


# ---- a run comes back, and names its true cause ----


def ended(outcome: Outcome, setting: Setting | None) -> str:
    """How the run ended; Broken unless it trained, was refused by a sentence, or names a planned fault."""
    said = f"{type(outcome).__name__}: {outcome}"
    if isinstance(outcome, parallel.NonFiniteLoss):
        return NOT_FINITE
    if isinstance(outcome, cluster.DeviceError):
        hold(setting is not None and type(setting.strategy).counts_device, "a full device is one that is counted", said)
        return FULL
    if isinstance(outcome, (ValueError, NotImplementedError)):
        hold(is_sentence(outcome), "what is refused is refused by a sentence of the library", said)
        return REFUSED
    if isinstance(outcome, parallel.Report):
        for rank, error in outcome.failures.items():
            blamed(setting, error, outcome.trace, rank)
        return TRAINED
    hold(isinstance(outcome, cluster.ClusterError), "what does not fit is refused before the ranks start", said)
    assert isinstance(outcome, cluster.ClusterError)
    if isinstance(outcome.cause, parallel.NonFiniteLoss):
        return NOT_FINITE
    blamed(setting, outcome, outcome.trace, outcome.rank)
    return FAILED


def is_sentence(error: Exception) -> bool:
    """Whether a `raise` of the library made this error, rather than numpy or Python."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not (place := trace.tb_frame.f_code.co_filename).startswith(LIBRARY):
        return False
    return linecache.getline(place, trace.tb_lineno).strip().startswith("raise") and len(str(error)) > 20


CAUSES: dict[str, tuple[type[Exception], ...]] = {
    "kill": (cluster.RankFailed,),
    "stop": (cluster.CommTimeout, cluster.RankFailed),
    "drop": (cluster.CommTimeout, cluster.Deadlock),
    "corrupt": (cluster.ClusterError,),
}
"""The errors in which a planned fault ends, by its kind."""


def blamed(setting: Setting | None, error: cluster.ClusterError, trace: Any, rank: int | None) -> None:
    """Broken unless the error has the kind of a fault that took effect, and names its rank."""
    said = f"{type(error).__name__} of rank {error.rank}: {error}"
    hold("deadline" not in str(error).partition("\n")[0], "a run comes back within its deadline", said)
    took_effect = [(event.rank, event.label.split()[0]) for event in (trace.faults if trace else ())]
    if str(error.cause).startswith("batch_norm: training needs more than one value"):
        return  # a share of one sample, which only batch norm itself can see
    hold(bool(took_effect), "a run without faults fails in no rank", said)
    kinds = {kind for _, kind in took_effect}
    hold(any(isinstance(error, CAUSES[kind]) for kind in kinds), "an error is that of a planned fault", said)
    if kinds <= {"kill", "stop"}:
        at_fault = [rank for rank, kind in took_effect if isinstance(error, CAUSES[kind])]
        hold(error.rank in at_fault, "an error names the rank of a planned fault", f"{at_fault} failed: {said}")


# ---- the same run twice ----


def repeated(setting: Setting, outcome: Outcome) -> None:
    """Broken unless a second run has the same bits, times, messages and errors."""
    by_message = setting.choices.get("again") == "message by message"
    engine = replace(setting.options["on"], batched=not by_message)
    again = played(setting, on=engine)
    for one, other in zip(observed(outcome), observed(again), strict=True):
        hold(one == other, "the same run has the same bits and times", lambda one=one, other=other: f"{one}\n{other}")


def observed(outcome: Outcome) -> tuple[str, ...]:
    if isinstance(outcome, parallel.Report):
        ledger = str(outcome.trace.ledger())
        errors = {rank: str(error).partition("\n")[0] for rank, error in outcome.failures.items()}
        return str(outcome.digests), str(outcome.history), repr(outcome.seconds), ledger, str(errors)
    rank = getattr(outcome, "rank", None)
    return type(outcome).__name__, str(outcome).partition("\n")[0], str(rank), "", ""


# ---- the numbers of a report ----


def numbers_add_up(setting: Setting, report: parallel.Report) -> None:
    """Broken unless numbers are finite, counts are those of the job, and every message was received or dropped.

    Ranks that fail leave messages behind.
    """
    for name, parameter in report.model().named_parameters():
        hold(bool(np.isfinite(np.asarray(parameter.numpy(), np.float64)).all()), "weights are finite", name)
    rows, job, strategy = report.history, setting.job, setting.strategy
    hold([row["epoch"] for row in rows] == list(range(1, job.epochs + 1)), "the history has a row for each epoch", rows)
    for name in ("seconds", "bytes", "steps", "samples"):
        values = [row[name] for row in rows]  # type: ignore[literal-required]
        hold(values == sorted(values), "what is counted since the start never falls", f"{name}: {values}")
    expected = job.epochs * len(job.build_data().train) * strategy.readings(setting.nodes)
    hold(rows[-1]["samples"] >= expected, "a run reads all samples", f"{rows[-1]['samples']} of {expected}")
    if setting.is_calm and strategy.resumes_from in ("step", "checkpoint"):
        hold(len(set(report.digests)) == 1, "nodes that agree on every gradient have the same weights", report.digests)
        hold(rows[-1]["samples"] == expected, "a run reads each sample once an epoch", rows[-1]["samples"])
    if not report.failures and not report.restarts:
        total = Traffic.total(traffic for rank in report.trace.ledger() for traffic in rank.values())
        lost = sum(event.label.startswith("drop") for event in report.trace.faults)
        found = f"{total}, {lost} dropped"
        hold(total.messages - total.messages_received == lost, "messages sent are received or dropped", found)
        hold(bool(lost) or total.nbytes == total.nbytes_received, "bytes sent are received", found)


# ---- the same as Serial, and as a run that never stopped ----


def equals_serial(setting: Setting, report: parallel.Report) -> None:
    """Broken unless the run has Serial's numbers, where the strategy's docstring promises it."""
    reference = promised(setting, report)
    if reference is None:
        return
    truth = played(replace(setting, strategy=reference, nodes=1), on="simulation", faults=None, elastic=False)
    same_numbers("a strategy that promises it equals Serial", setting, report, truth)


def same_numbers(invariant: str, setting: Setting, one: Outcome, other: Outcome) -> None:
    """Broken unless two reports have the same weights, losses, rates and counts, within rounding."""
    if not isinstance(one, parallel.Report) or not isinstance(other, parallel.Report):
        hold(False, invariant, f"{one}\n{other}")
        return
    tolerance = 1e-4 if setting.job.precision else 1e-10
    for name, array in one.checkpoint.model.items():
        expected = other.checkpoint.model[name]
        size = max(1.0, float(np.abs(expected).max(initial=0)))
        error = float(np.abs(array - expected).max(initial=0)) / size
        hold(error < tolerance or size > 1e3, invariant, f"{name} differs by {error:.3g}")
    for row, same in zip(one.history, other.history, strict=True):
        for name in ("epoch", "lr", "steps", "samples", "loss", "test_loss"):
            found, right = row[name], same[name]  # type: ignore[literal-required]
            if name == "loss" and one.restarts:
                continue  # the samples of dead nodes are missing in it
            is_close = abs(found - right) <= 100 * tolerance * max(1.0, abs(right)) or found != found and right != right
            hold(is_close or abs(right) > 1e3, invariant, f"epoch {row['epoch']}: {name} is {found}, not {right}")


def promised(setting: Setting, report: parallel.Report) -> parallel.Serial | None:
    """The Serial that the run must equal; None if nothing is promised."""
    strategy, job, choices, doc = setting.strategy, setting.job, setting.choices, type(setting.strategy).__doc__ or ""
    plan = strategy.plan(job, setting.nodes)
    has_norms = choices.get("model") in ("norms", "images")
    draws = bool(has_norms or choices.get("dropout") or choices.get("model") == "experts")
    if job.precision not in (None, "float32") or (draws and report.restarts) or "corrupt" in str(report.trace.faults):
        return None
    if report.failures or getattr(strategy, "compressor", None) is not None:
        return None
    if setting.nodes == 1 and re.search("one (node|worker) is Serial", doc):
        return parallel.Serial()
    is_linear = choices.get("loss") == "linear" and choices.get("depth") == 0 and not choices.get("clip_norm")
    if "Conserved: averaging keeps this mean" in doc and is_linear and not strategy.asynchronous:
        is_sgd = str(choices.get("optimizer", "sgd")).startswith("sgd")
        return parallel.Serial() if is_sgd and job.shards == "shuffled" and not report.restarts else None
    if job.shards != "shuffled" or not re.search("Equal to (`?Serial|Synchronous)", doc):
        return None
    if plan.schedule == "pipedream" or getattr(getattr(strategy, "offload", None), "delayed", False):
        return None
    shards, micro_batches = plan.shares, getattr(strategy, "accumulate", plan.micro_batches)
    if getattr(strategy, "batch_norm", "local") == "synchronized" and has_norms:
        shards = 1
        if choices.get("dropout") or micro_batches > 1:
            return None
    return parallel.Serial(shards, micro_batches)


def goes_on(setting: Setting, report: parallel.Report, folder: Path) -> None:
    """Broken unless a run that stopped and was resumed, or lost nodes, ends as one that never stopped."""
    strategy, on = setting.strategy, setting.choices.get("resume on")
    if report.restarts and strategy.resumes_from == "checkpoint" and "corrupt" not in str(setting.choices):
        calm = played(setting, faults=None, elastic=False)
        assert isinstance(calm, parallel.Report)
        name = "with new nodes in the places of the dead, a run has the bits of one in which none died"
        hold(report.digests == calm.digests, name, lambda: f"{report.restarts}")
    if not on or not setting.is_calm or setting.job.epochs == 1 or not strategy.is_resumable:
        return
    first = played(replace(setting, job=replace(setting.job, epochs=1)), folder=folder)
    hold(isinstance(first, parallel.Report), "a run of one epoch ends as a longer one", first)
    rest, name = played(setting, resume=folder), "a resumed run has the bits of one that never stopped"
    hold(getattr(rest, "digests", rest) == report.digests, name, rest)
    same_numbers(name, setting, rest, report)
    reference = promised(setting, report)
    is_same_anywhere = reference is not None and setting.choices.get("model") not in ("norms", "images", "experts")
    if on != "the same" and is_same_anywhere and not setting.choices.get("dropout") and setting.job.smallest_batch >= on:
        moved = replace(setting, strategy=parallel.Synchronous(), nodes=on)
        name = "a run resumed on other nodes has the numbers of one that always had them"
        same_numbers(name, setting, played(moved, resume=folder, on="simulation", faults=None), report)


# ---- nothing is left ----


class Belongings(NamedTuple):
    threads: int
    files: int
    shared: frozenset[str]
    children: str
    settings: tuple[Any, ...]


def belongings() -> Belongings:
    """What this process has now: threads, open files, shared memory, child processes, and settings of its own."""
    shared = Path("/dev/shm")
    return Belongings(
        threading.active_count(),
        len(os.listdir("/proc/self/fd")),
        frozenset(os.listdir(shared)) if shared.is_dir() else frozenset(),
        Path("/proc/thread-self/children").read_text(),
        (tuple(np.geterr().items()), kernels.active(), is_grad_enabled()),
    )


@contextmanager
def leaves_nothing() -> Iterator[None]:
    """Broken if the block leaves anything behind, or changes a setting."""
    before = belongings()
    yield
    hold(before == (after := belongings()), "a run leaves nothing behind", f"{before}\n{after}")
