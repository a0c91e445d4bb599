"""Runs of `ssp_gate` against workers of the check, and the closed form of the times at which their steps begin.

Worker i begins step k (from 0) when it has finished step k - 1, and every worker j has finished step k - s - 1, or the
last of its steps:  begin[i, k] = max(end[i, k - 1], max over j of end[j, min(k - s - 1, last of j)]),
end[i, k] = begin[i, k] + seconds[i, k].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from course.checks.asynchrony.requests import A_MOMENT, AT_ONCE, CLOCK, DONE, idle, request
from course.judging import Answer, Wrong, expect
from course.judging.ranks.rank_run import RankRun
from course.plural import counted
from minidl.cluster import Communicator
from minidl.random import Purpose, stream

Times = list[list[float]]
"""For each worker, a number of seconds for each of its steps."""

Drawn = Callable[[int, int, int], Times]
"""The seconds of steps, drawn for a seed, a number of workers, and a number of steps."""


@dataclass(frozen=True)
class Gated:
    """A run of `ssp_gate`: the seconds that steps take, and those at which they began."""

    bound: int
    seconds: Times
    begins: Times
    run: RankRun

    @property
    def called(self) -> str:
        return f"ssp_gate(comm, {len(self.seconds)}, bound={self.bound})"

    def finished(self, worker: int, at: float) -> float:
        """The steps that a worker has finished at a time; infinity if it has finished all."""
        ends = [begin + each for begin, each in zip(self.begins[worker], self.seconds[worker], strict=True)]
        count = sum(end <= at + A_MOMENT for end in ends)
        return float("inf") if count == len(ends) else count


def random_stragglers(seed: int, workers: int, steps: int) -> Times:
    """Steps of 1 to 2 s, of which some take four times as long."""
    rng = stream(Purpose.MANUAL, seed, "random stragglers", workers, steps)
    seconds = 1 + rng.integers(0, 64, (workers, steps)) / 64
    return [[float(each) for each in row] for row in seconds * np.where(rng.random((workers, steps)) < 0.2, 4.0, 1.0)]


def persistent_straggler(seed: int, workers: int, steps: int) -> Times:
    """The last but one worker always takes about four times as long as the first one; the last one, 1.6 times."""
    rng = stream(Purpose.MANUAL, seed, "a persistent straggler", workers, steps)
    seconds = 1 + rng.integers(0, 16, (workers, steps)) / 64
    if workers > 2:
        seconds[-1] *= 1.625
    seconds[max(0, workers - 2)] *= 4
    return [[float(each) for each in row] for row in seconds]


def far_ahead(seed: int, workers: int, steps: int) -> Times:
    """Worker 0 could make nearly all of its steps while the others make their first one."""
    slow = persistent_straggler(seed, workers, 3)[1:]
    return [[0.05] * steps, *([0.05 * steps * each for each in own] for own in slow)]


def one_ends_early(seed: int, workers: int, steps: int) -> Times:
    """As with random stragglers, and worker 0 has only two steps, and slow ones."""
    seconds = random_stragglers(seed, workers, steps)
    seconds[0] = [4.0, 4.0][: max(1, min(2, steps - 1))]
    return seconds


def fast_one_ends_early(seed: int, workers: int, steps: int) -> Times:
    """As with a persistent straggler, and worker 0 has only one step: it leaves while the straggler is far behind."""
    seconds = persistent_straggler(seed, workers, steps)
    seconds[0] = seconds[0][:1]
    return seconds


def gated(answer: Answer, bound: int, seconds: Times) -> Gated:
    """Run `ssp_gate` with workers whose steps take these seconds."""
    workers = len(seconds)

    def worker(comm: Communicator) -> list[float]:
        begins, own = [], seconds[comm.rank]
        for step, each in enumerate(own):
            begins.append(comm.now())
            comm.compute(seconds=each)
            comm.send(request(DONE if step + 1 == len(own) else CLOCK), workers)
            if step + 1 < len(own):
                comm.recv(workers)
        return begins

    played = dict.fromkeys(range(workers), worker) | {workers + 1: idle}
    run = answer.on_ranks([()] * workers + [(workers, bound), ()], AT_ONCE, played=played)
    return Gated(bound, seconds, run.results[:workers], run)


def closed_form(seconds: Times, bound: int) -> Times:
    """The times at which each worker's steps begin, by the recurrence above."""
    begins: Times = [[] for _ in seconds]
    ends: Times = [[] for _ in seconds]
    for step in range(max(map(len, seconds))):
        for worker, own in enumerate(seconds):
            if step < len(own):
                before = step - bound - 1
                others = [ends[j][min(before, len(each) - 1)] for j, each in enumerate(seconds) if before >= 0]
                begins[worker].append(max([ends[worker][-1] if step else 0.0, *others]))
        for worker, own in enumerate(seconds):
            if step < len(own):
                ends[worker].append(begins[worker][step] + own[step])
    return begins


def compare_bound(one: Gated) -> None:
    """Raise Wrong if a worker began a step more than `bound` steps ahead of another that had not finished."""
    for worker, begins in enumerate(one.begins):
        for step, begin in enumerate(begins):
            behind, slowest = min((one.finished(other, begin), other) for other in range(len(one.seconds)))
            if step - behind > one.bound:
                lead = int(step - behind)
                raise Wrong(
                    f"{one.called}: at {begin:g} s worker {worker} had finished {counted(step, 'step')} and began "
                    f"another one, {lead} ahead of worker {slowest} with {int(behind)}.",
                    "Nobody waits here, however far ahead."
                    if close(one.begins, closed_form(one.seconds, step * len(begins)))
                    else "The bound is off by one: a lead of bound + 1 is too much."
                    if close(one.begins, closed_form(one.seconds, one.bound + 1))
                    else "It goes on only if clock - slowest <= bound, of the slowest worker that has not finished.",
                )


def compare_waiting(one: Gated) -> None:
    """Raise Wrong if a worker began a step later than the closed form allows."""
    wanted = closed_form(one.seconds, one.bound)
    late = [
        (begin, worker, step, want)
        for worker, (begins, wants) in enumerate(zip(one.begins, wanted, strict=True))
        for step, (begin, want) in enumerate(zip(begins, wants, strict=True))
        if begin > want + A_MOMENT
    ]
    if not late:
        return
    begin, worker, step, want = min(late)
    barrier = closed_form(one.seconds, 0)
    behind = min(one.finished(other, want) for other in range(len(one.seconds)))
    lead = f"{max(0, int(step - behind))} ahead of the slowest" if np.isfinite(behind) else "the last one at work"
    cause = "A worker that waits has to be released as soon as the slowest one has gone on."
    ended = [
        (own[-1] + each[-1], other)
        for other, (own, each) in enumerate(zip(one.begins, one.seconds, strict=True))
        if len(each) < max(map(len, one.seconds)) and own[-1] + each[-1] <= want + A_MOMENT
    ]
    if one.bound and close(one.begins, barrier):
        cause = "That is a barrier: every worker waited for all others in each step, whatever the bound."
    elif one.bound and close(one.begins, closed_form(one.seconds, one.bound - 1)):
        cause = "The bound is off by one: a lead of exactly `bound` is allowed."
    elif ended:
        cause = f"Worker {ended[0][1]} has finished: it holds nobody back."
    raise Wrong(
        f"{one.called}: worker {worker} began step {step} at {begin:g} s; it was allowed to at {want:g} s, {lead}.",
        cause,
    )


def close(one: Times, other: Times) -> bool:
    """Whether two tables of times agree."""
    return all(np.allclose(a, b, rtol=0.0, atol=A_MOMENT) for a, b in zip(one, other, strict=True))


def compare_replies(one: Gated) -> None:
    """Raise Wrong unless the gate sent one message for each CLOCK."""
    workers = len(one.seconds)
    for worker, own in enumerate(one.seconds):
        sent = sum(send[:2] == (workers, worker) for send in one.run.sends)
        expect.true(
            sent == len(own) - 1,
            f"{one.called}: {counted(sent, 'message')} to worker {worker}, which sent {counted(len(own) - 1, 'CLOCK')} "
            "and a DONE.",
            "DONE has no reply: the worker has left." if sent == len(own) else "One reply for each CLOCK.",
        )
    sent_bytes = max((nbytes for source, _, nbytes, *_ in one.run.sends if source == workers), default=0)
    expect.true(
        sent_bytes == 0,
        f"{one.called}: a reply has {sent_bytes} bytes; expected np.zeros(0).",
        "A reply has no contents.",
    )
