"""Pipeline schedules: bubbles and memory are exactly those of the papers, simulated, and nearly so on processes.

GPipe (Huang et al., arXiv:1811.06965), 1F1B and its interleaved form (Narayanan et al., arXiv:2104.04473), and zero
bubble (Qi et al., arXiv:2401.10241) are compared by two numbers: how long stages wait, and how many micro-batches a
stage keeps for backward. The papers state both as formulas.

Here: every schedule as a list of actions, played with given times of forward, of backward for the inputs and of
backward for the weights, and compared with its closed form, for 2 to 16 stages and up to 48 micro-batches. The same
lists are then executed by `parallel.Pipeline` on four processes whose layers sleep instead of computing, since the
machine may have fewer cores than there are stages.

What must show: (1) the simulated bubble in both conventions, and the peak of every stage, equal the closed forms to
1e-9. (2) Three samples through three stages take 9 slots one after the other and 5 as a pipeline, as a source has it.
(3) On processes the order of the actions is that of the list, and the bubble of the total time is within 15 % of the
formula. Schedules whose formula is 0 must stay below 5 % of the total time.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import product
from math import ceil
from statistics import median
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import Tensor, nn, optim, parallel
from minidl.data import Dataset, Splits
from minidl.parallel import pipeline
from minidl.parallel.pipeline import Timeline, Times, formulas
from minidl.tensor import record

TITLE = "Pipeline schedules: bubbles and memory of GPipe, 1F1B, interleaved and zero bubble (T3)"

STAGES, MICRO_BATCHES = (2, 3, 4, 8, 16), (1, 2, 4, 8, 12, 24, 48)
TIMES = (Times(1, 1, 1), Times(1, 1.2, 0.8), Times(2, 3, 1))
UNIT = 0.06
"""Seconds that a stage of a real run sleeps in forward, in I and in W each."""

Case = tuple[pipeline.Schedule, Times]


def experiment(reproduction: Reproduction) -> None:
    exact(reproduction)
    slots(reproduction)
    measured = on_processes(reproduction)
    reproduction.picture(draw(measured))


# Simulated


def cases() -> list[Case]:
    """All for which the papers have a formula."""
    found: list[Case] = []
    for kind, stages, m, times in product(pipeline.SCHEDULES, STAGES, MICRO_BATCHES, TIMES):
        if kind == "pipedream" or (kind == "interleaved" and m % stages):
            continue
        for chunks in (2, 4) if kind == "interleaved" else (None,):
            schedule = pipeline.schedule(kind, stages, m, chunks)
            try:
                formulas.idle_seconds(schedule, times)
                formulas.peak_of_stage(schedule, 0)
            except ValueError:  # the formula does not hold for so few micro-batches, or for these times
                continue
            found.append((schedule, times))
    return found


def played(schedule: pipeline.Schedule, times: Times) -> Timeline:
    """The timeline, of times of a whole stage: each chunk takes its share."""
    share = schedule.chunks_per_stage
    of_chunk = [float(time) / share for time in (times.forward, times.input, times.weight)]  # type: ignore[arg-type]
    return pipeline.simulate(schedule, Times(*of_chunk))


def exact(reproduction: Reproduction) -> None:
    """Compare simulation and closed form."""
    counts: dict[str, int] = {}
    largest: dict[str, list[float]] = {}
    for schedule, times in cases():
        timeline = played(schedule, times)
        peaks = [formulas.peak_of_stage(schedule, stage) for stage in range(schedule.stages)]
        differences = (
            abs(timeline.bubble_of_ideal - formulas.bubble_of_ideal(schedule, times)),
            abs(timeline.bubble_of_total - formulas.bubble_of_total(schedule, times)),
            max(abs(a - b) for a, b in zip(pipeline.peak_memory(schedule), peaks, strict=True)),
        )
        counts[schedule.name] = counts.get(schedule.name, 0) + 1
        so_far = largest.get(schedule.name, [0.0] * 3)
        largest[schedule.name] = [max(pair) for pair in zip(so_far, differences, strict=True)]
    rows = [[kind, counts[kind], *largest[kind]] for kind in counts]
    columns = ["schedule", "cases", "of the ideal time", "of the total time", "peak"]
    reproduction.table(columns, rows, "largest difference of the simulation from the closed form; peak: micro-batches")
    worst = max(max(row) for row in largest.values())
    reproduction.accept(
        worst < 1e-9, f"{sum(counts.values())} cases: simulation and formula differ by at most {worst:.0e}"
    )


def slots(reproduction: Reproduction) -> None:
    forward = Times(1, 0, 0)
    in_turn, overlapped = (pipeline.simulate(kind(3, 3), forward).makespan for kind in (pipeline.Naive, pipeline.GPipe))
    reproduction.accept(
        (in_turn, overlapped) == (9, 5),
        f"three samples through three stages: {in_turn:.0f} slots one after the other, {overlapped:.0f} as a pipeline",
    )


# On processes


class Sleeping(nn.Module):
    """A linear layer that sleeps: in forward, in backward for the inputs, and in backward for the weights."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.linear = nn.Linear(4, 4, bias=False)
        self.linear.weight.register_post_accumulate_grad_hook(lambda weight: time.sleep(seconds))

    def forward(self, x: Any) -> Tensor:
        y = self.linear(x)
        if not self.training:
            return y
        time.sleep(self.seconds)

        def vjp(g: Any, needs: Any) -> tuple[Any]:
            time.sleep(self.seconds)
            return (g,)

        return record(y.data.copy(), (y,), vjp)


def sleepers(chunks: int, seconds: float) -> nn.Module:
    return nn.Sequential(*[Sleeping(seconds) for _ in range(chunks)])


def samples() -> Splits:
    rng = np.random.default_rng(0)
    few = Dataset(rng.normal(size=(24, 4)).astype(np.float32), rng.integers(0, 4, 24))
    return Splits(few, few)


def execute(kind: str, stages: int = 4, micro_batches: int = 8, minibatches: int = 3) -> list[Timeline]:
    """The timelines of the minibatches of a run on processes, after a first one that is left out."""
    made = pipeline.schedule(kind, stages, micro_batches)
    model = partial(sleepers, made.chunks, UNIT / made.chunks_per_stage)
    job = parallel.Job(model, samples, partial(optim.SGD, lr=0.01), batch_size=8, epochs=ceil((minibatches + 1) / 3))
    strategy = parallel.Pipeline(stages, micro_batches, kind, cuts=range(1, made.chunks))
    report = parallel.train(job, strategy, stages)
    return [pipeline.executed(report.trace, made, minibatch=number) for number in range(1, minibatches + 1)]


def on_processes(reproduction: Reproduction) -> dict[str, Timeline]:
    """Execute each schedule; returns one timeline of each."""
    shown, rows = {}, []
    for kind in pipeline.SCHEDULES:
        if kind == "pipedream":
            continue
        timelines = execute(kind)
        made = timelines[0].schedule
        bubble = median(timeline.bubble_of_total for timeline in timelines)
        formula = formulas.bubble_of_total(made, Times(UNIT, UNIT, UNIT))
        simulated = pipeline.simulate(made)
        same = all(order(timeline) == order(simulated) for timeline in timelines)
        rows.append([kind, formula, bubble, bubble / formula if formula else "", same])
        is_near = abs(bubble / formula - 1) < 0.15 if formula else bubble < 0.05
        reproduction.accept(
            same and is_near,
            f"{kind} on 4 processes: bubble of {bubble:.1%} of the total time, by the formula {formula:.1%}; the order "
            f"of actions is {'' if same else 'not '}that of the list",
        )
        shown[kind] = timelines[0]
    columns = ["schedule", "formula", "measured", "measured / formula", "same order"]
    reproduction.table(columns, rows, "bubble of the total time; 4 stages, 8 micro-batches, median of 3 minibatches")
    return shown


def order(timeline: Timeline) -> list[list[str]]:
    """The actions of each stage, updates aside."""
    stages = range(timeline.schedule.stages)
    return [[str(bar.action) for bar in timeline.of(stage) if bar.action.kind != "U"] for stage in stages]


# The picture


def draw(measured: dict[str, Timeline]) -> Figure:
    """A minibatch of each schedule, as four processes executed it."""
    return pipeline.plot_timelines(list(measured.values()))


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
