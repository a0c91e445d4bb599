"""executed: the timeline of a pipeline in a run, read from the run's trace."""

from __future__ import annotations

from collections.abc import Iterator

from minidl.arguments import whole_number
from minidl.cluster.trace.trace import Trace
from minidl.parallel.pipeline.action import PATTERN, Action
from minidl.parallel.pipeline.schedule import Schedule
from minidl.parallel.pipeline.timeline import Bar, Timeline


def executed(trace: Trace, schedule: Schedule, minibatch: int = 0, replica: int = 0) -> Timeline:
    """Return the actions of a pipeline's stages in one minibatch, in seconds since the first action began.

    Parameters
        trace      trace of a run with `parallel.Pipeline`: `report.trace`
        schedule   schedule of that run: `report.strategy.made_schedule()`
        minibatch  number of the minibatch since the start of the run; with an asynchronous schedule, number of the
                   epoch, since the schedule's micro-batches are the minibatches of an epoch
        replica    number of the pipeline

    Receiving and sending lie between the bars. Actions that take no time, as in a simulation whose nodes compute
    infinitely fast, are missing. With `Hybrid(tp=...)`, the first rank of each stage is shown.

    Raises
        ValueError  the run has no such minibatch or replica, or is not of a pipeline
    """
    whole_number("executed: minibatch", minibatch, at_least=0)
    bars: list[Bar] = []
    ranks_of_stage = _ranks_of_stage(trace)
    for stage in range(schedule.stages):
        rank = (replica * schedule.stages + stage) * ranks_of_stage
        runs = list(_minibatches(trace, rank, stage, schedule))
        if minibatch >= len(runs):
            raise ValueError(
                f"executed: rank {rank} has done {len(runs)} minibatches of a pipeline, "
                f"asked for number {minibatch}, from 0, of replica {replica}"
            )
        bars += runs[minibatch]
    first = min(bar.start for bar in bars)
    shifted = (bar._replace(start=bar.start - first, end=bar.end - first) for bar in bars)
    return Timeline(schedule, tuple(shifted), source=trace.source, unit="s")


def _ranks_of_stage(trace: Trace) -> int:
    """Number of ranks per stage: those from rank 0 on that exchange messages along the axis "tp"."""
    count = 1
    for event in trace.events:  # ordered by rank
        if event.axis == "tp" and event.rank < count:
            count = max(count, event.peer + 1)
    return count


def _minibatches(trace: Trace, rank: int, stage: int, schedule: Schedule) -> Iterator[list[Bar]]:
    """The bars of this rank, by minibatch; an update ends a minibatch. Asynchronous: by epoch."""
    ends = ("evaluation",) if schedule.is_asynchronous else ("update", "evaluation")
    own = sorted(
        (event for event in trace.events if event.rank == rank and event.kind == "compute" and event.lane == 0),
        key=lambda event: event.start,
    )
    bars: list[Bar] = []
    for event in own:
        if PATTERN.fullmatch(event.label):
            action = Action.parse(event.label, chunk=stage)
            if bars and bars[-1].action == action:
                bars[-1] = bars[-1]._replace(end=event.end)
            else:
                bars.append(Bar(stage, action, event.start, event.end))
        elif bars and event.label in ends:
            yield bars
            bars = []
    if bars:
        yield bars
