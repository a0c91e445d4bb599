"""Runs of `run_stage` on all stages: the weights of one node, the time of every message, and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.checks.pipelines.order_clock import Played, most_kept, play
from course.checks.pipelines.stage_mistakes import gradients, weights_by_mistake
from course.checks.pipelines.waiting_stages import Schedule, gpipe, naive, one_f_one_b
from course.judging import Answer, Wrong, expect
from course.judging.ranks.rank_run import RankRun
from course.plural import counted
from course.probes.pipelines import BACKWARD_SECONDS, FORWARD_SECONDS, Backward, Forward
from minidl.cluster import Network, Node
from minidl.random import Purpose, stream

Array = NDArray[Any]

Case = tuple[str, int, int]
"""(name of the schedule, K, M)"""

AT_ONCE = Network(alpha=0.0, beta=0.0)
"""On this network messages take no time, so every time in a run is that of the work and of waiting."""

ONE_A_SECOND = Node(flops_per_s=1.0, bytes_per_s=np.inf)

RATES = (0.3, 0.7)

WIDTH, SAMPLES = 3, 2
LARGE_WIDTH, LARGE_SAMPLES = 36, 250
"""Activations of 72,000 bytes: a send waits until they are received."""


def reverse(K: int, M: int) -> Schedule:
    """GPipe with the backwards in descending order, as the paper draws it."""
    return [[*(f"F{m}" for m in range(M)), *(f"B{m}" for m in reversed(range(M))), "U0"] for _ in range(K)]


def last_in_bursts(K: int, M: int) -> Schedule:
    """GPipe, but the last stage does its last micro-batch alone: gradients come before it has all activations."""
    burst, alone = gpipe(1, M - 1)[0][:-1], [f"F{M - 1}", f"B{M - 1}", "U0"]
    return [*gpipe(K - 1, M), [*burst, *alone]]


SCHEDULES = {"1f1b": one_f_one_b, "gpipe": gpipe, "naive": naive, "reversed": reverse, "last in bursts": last_in_bursts}


def rate(M: int) -> float:
    """The learning rate of a run with M micro-batches."""
    return RATES[M % 2]


@dataclass(frozen=True)
class StageRun:
    """A run of `run_stage` on K stages, and what it was given."""

    name: str
    lines: Schedule
    inputs: list[Array]
    weights: list[Array]
    done: RankRun

    @property
    def lr(self) -> float:
        return rate(len(self.inputs))

    def called(self, s: int) -> str:
        large = ", large messages" if self.inputs[0].nbytes > 2**16 else ""
        return f"run_stage, stage {s} of {len(self.lines)}, {self.name} with {len(self.inputs)} micro-batches{large}"

    def played(self) -> Played:
        return play(self.lines, FORWARD_SECONDS, BACKWARD_SECONDS)


def run(answer: Answer, case: Case, seed: int, *, is_large: bool = False, is_limited: bool = False) -> StageRun:
    """Let the answer execute a schedule.

    is_large: arrays above 64 KiB. is_limited: a stage has room for as many inputs as its actions need, and one.
    """
    name, K, M = case
    rng = stream(Purpose.MANUAL, seed, "stages", K, M)
    width, samples = (LARGE_WIDTH, LARGE_SAMPLES) if is_large else (WIDTH, SAMPLES)
    lines = SCHEDULES[name](K, M)
    weights = [rng.normal(size=(width, width)) / np.sqrt(width) for _ in range(K)]
    inputs = [rng.normal(size=(samples, width)) + 0.3 for _ in range(M)]
    for x in inputs:
        x[:, 0] *= 1e-7  # small gradients are not 0
    arguments: list[tuple[Any, ...]] = []
    for s, line in enumerate(lines):
        room = most_kept(line) + 1 if is_limited and s else 0
        is_last = s == K - 1
        own = list(inputs) if s == 0 else None
        forward = Forward(is_last, room)
        arguments.append((list(line), M, own, weights[s], rate(M), forward, Backward(is_last, forward)))
    done = answer.on_ranks(arguments, AT_ONCE, node=ONE_A_SECOND)
    return StageRun(name, lines, inputs, weights, done)


def compare_weights(one: StageRun) -> None:
    """Raise Wrong unless every stage returned the weights of one node after the minibatch."""
    per_micro_batch = gradients(one.weights, one.inputs)
    for s, w in enumerate(one.weights):
        want = w - one.lr * np.mean([each[s] for each in per_micro_batch], axis=0)
        called = f"{one.called(s)}: the weights"
        scale = 1e-10 * (1 + float(np.abs(want).max()))
        slips = weights_by_mistake(one.weights, one.inputs, one.lines, s, one.lr)
        slips = {sentence: wrong for sentence, wrong in slips.items() if not np.allclose(wrong, want)}
        expect.array(one.done.results[s], want, called, rtol=0.0, atol=scale, mistakes=slips, dtype=np.float64)


def compare_waited(one: StageRun) -> None:
    """Raise Wrong unless each stage waited for the end of every isend and irecv."""
    for s, left in enumerate(one.done.unfinished):
        expect.true(
            not left,
            f"{one.called(s)}: returned without waiting for the end of {counted(left, 'call')} of isend or irecv.",
            "isend only begins to send: keep what it returns, and call .wait() of it before the function returns.",
        )


def compare_messages(one: StageRun) -> None:
    """Raise Wrong unless each stage sent each result once, to the right stage, when it was computed."""
    ends = one.played().ends
    nbytes = one.inputs[0].nbytes
    for s, line in enumerate(one.lines):
        for other, kind, name in ((s + 1, "F", "activations"), (s - 1, "B", "gradients")):
            if not 0 <= other < len(one.lines):
                continue
            want = [ends[s, action] for action in line if action[0] == kind]
            sent = [(send[2], send[3]) for send in one.done.sends if send[:2] == (s, other)]
            called = f"{one.called(s)}: {name} to stage {other}"
            expect.true(
                len(sent) == len(want),
                f"{called}: {counted(len(sent), 'message')}, expected {len(want)}, one for each micro-batch.",
                "Every micro-batch is a message of its own."
                if len(sent) < len(want)
                else "Neighbours need the activations and the gradients, and nothing else.",
            )
            expect.true(
                all(size == nbytes for size, _ in sent),
                f"{called}: {max(size for size, _ in sent)} bytes in a message, expected {nbytes}.",
                "Send the array that forward or backward returned, as it is.",
            )
            late = next((i for i, (_, at) in enumerate(sent) if abs(at - want[i]) > 1e-6), None)
            if late is not None:
                raise Wrong(
                    f"{called}: message {late + 1} was sent after {sent[late][1]:g} s, expected {want[late]:g} s "
                    f"({' '.join(line)}; t_F = {FORWARD_SECONDS} s, t_B = {BACKWARD_SECONDS} s).",
                    "Each result is sent when it is computed, before anything else is done; and the actions are done "
                    "in the order of the list."
                    if sent[late][1] > want[late]
                    else "The actions are done in another order than in the list.",
                )
        others = {send[1] for send in one.done.sends if send[0] == s} - {s - 1, s + 1}
        expect.true(not others, f"{one.called(s)}: sent to stage {min(others, default=0)}, no neighbour.")
    computing = len(one.inputs) * (FORWARD_SECONDS + BACKWARD_SECONDS)
    for s in range(len(one.lines)):
        seconds = sum(event[3] - event[2] for event in one.done.events if event[0] == s and event[1] == "compute")
        expect.true(
            abs(seconds - computing) < 1e-6,
            f"{one.called(s)}: computed for {seconds:g} s, expected {computing} s: M forwards of "
            f"{FORWARD_SECONDS} s and M backwards of {BACKWARD_SECONDS} s.",
            "Each forward and each backward is called once for a micro-batch.",
        )
