"""Timeline: what each stage of a pipeline does when, its idle time and memory; `executed` reads one from a trace."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from minidl.arguments import whole_number
from minidl.cluster.trace.trace import Trace
from minidl.parallel.pipeline.action import KINDS, PATTERN, Action
from minidl.parallel.pipeline.schedule import Schedule, levels
from minidl.plots.pipeline import Box, Panel, draw, draw_rows
from minidl.plots.player.columns import Played, Run
from minidl.plots.player.page import ACTIONS, Player

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_COLUMNS = 200
"""Columns of a timeline as text, unless more are needed to show every action."""


class Bar(NamedTuple):
    """An action of a stage, from `start` to `end`."""

    stage: int
    action: Action
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """What each stage does when.

    Parameters
        schedule  what is played
        bars      of all stages, each stage's in order
        source    where the times come from: "simulated" or "measured"
        unit      of the times: "s", or "units" for times that are relative to each other only

    Two conventions for the bubble are in use, which give different numbers for the same schedule:

        bubble_of_ideal   idle seconds relative to those of a stage that computes without a pause (Narayanan et al.)
        bubble_of_total   idle seconds relative to all seconds (GPipe)

    Both are of the stage that takes longest from its first forward to its last backward: in a zero-bubble schedule the
    stages begin, and end, one after the other, and the next minibatch follows without a pause. That needs an update
    that no stage waits for: one that needs the gradients of all stages, as with `clip_norm`, brings the bubble back.
    """

    schedule: Schedule
    bars: tuple[Bar, ...]
    source: str = "simulated"
    unit: str = "units"

    def of(self, stage: int) -> list[Bar]:
        """The bars of a stage, in order."""
        return self._bars_of.get(stage, [])

    @cached_property
    def _bars_of(self) -> dict[int, list[Bar]]:
        """The bars of each stage, grouped once, because every other method needs them."""
        found: dict[int, list[Bar]] = {}
        for bar in self.bars:
            found.setdefault(bar.stage, []).append(bar)
        return found

    def _minibatch(self, stage: int) -> list[Bar]:
        """The bars of a stage from its first forward to its last backward; updates between them are among these."""
        bars = self.of(stage)
        last = max((number for number, bar in enumerate(bars) if bar.action.kind != "U"), default=-1)
        return bars[: last + 1]

    def busy(self, stage: int) -> float:
        """Seconds that the stage computes until its last backward; updates after it are left out."""
        return sum(bar.end - bar.start for bar in self._minibatch(stage))

    def span(self, stage: int) -> float:
        """Seconds from the stage's first forward to its last backward."""
        bars = self._minibatch(stage)
        return bars[-1].end - bars[0].start if bars else 0.0

    def idle(self, stage: int) -> float:
        """Seconds between its first forward and its last backward in which the stage waits."""
        return self.span(stage) - self.busy(stage)

    @property
    def seconds(self) -> float:
        """Seconds of the stage that takes longest from its first forward to its last backward."""
        return max(map(self.span, range(self.schedule.stages)))

    @property
    def makespan(self) -> float:
        """Seconds until the last stage is done."""
        return max(bar.end for bar in self.bars)

    @property
    def ideal(self) -> float:
        """Seconds that the busiest stage computes."""
        return max(map(self.busy, range(self.schedule.stages)))

    @property
    def title(self) -> str:
        """The schedule's name, its seconds and its bubble."""
        of_ideal, of_total = self.bubble_of_ideal, self.bubble_of_total
        ideal = f"{100 * of_ideal:.3g}" if of_ideal < 9.995 else f"{100 * of_ideal:.0f}"
        return f"{self.schedule.name}: idle {100 * of_total:.3g} % of the total time, {ideal} % of the ideal time"

    @property
    def bubble_of_ideal(self) -> float:
        """Idle seconds relative to the seconds without a pause."""
        return (self.seconds - self.ideal) / self.ideal

    @property
    def bubble_of_total(self) -> float:
        """Idle seconds relative to all seconds."""
        return (self.seconds - self.ideal) / self.seconds

    def kept(self, stage: int, activation: float = 1.0, weight: float = 0.0) -> list[tuple[float, float]]:
        """Pairs (time, what the stage keeps from then on): F takes its memory when it begins, others free at their end.

        activation, weight: as in `peak_memory`.
        """
        bars, share = self.of(stage), self.schedule.chunks_per_stage
        after = levels((bar.action for bar in bars), activation / share, weight / share)
        curve = {0.0: 0.0}  # of several changes at one moment, the last one counts
        for bar, level in zip(bars, after, strict=True):
            curve[bar.start if bar.action.kind == "F" else bar.end] = level
        return list(curve.items())

    def plot(
        self, title: str = "", memory: bool = True, activation: float = 1.0, weight: float | None = None
    ) -> Figure:
        """Draw the timeline: a row for each stage, a box for each action with its micro-batch's number; memory below.

        Parameters
            title               text above the rows; default: the schedule's name and its bubble
            memory              whether curves below show what each stage keeps for backward
            activation, weight  as in `peak_memory`; weight=None: where backward is cut in two, one curve for the
                                activations that I needs, another for what W still needs

        The picture assumes that a minibatch starts every `seconds`. Grey: the stage waits. White: it computes the
        minibatch before or after.

        >>> from minidl.parallel import pipeline
        >>> figure = pipeline.simulate(pipeline.OneFOneB(stages=4, micro_batches=8)).plot()
        """
        return plot_timelines([self], [title] if title else None, memory, activation, weight)

    def player(self, title: str = "") -> Player:
        """The timeline as a page to be played, zoomed and searched; as the last value of a cell, JupyterLab shows it.

        >>> from minidl.parallel import pipeline
        >>> pipeline.simulate(pipeline.OneFOneB(stages=4, micro_batches=8)).player()
        <Player: 4 stages, 68 events, simulated>
        """
        return play_timelines([self], title=title or self.title)

    def to_html(self, path: str | os.PathLike[str], title: str = "") -> None:
        """Write the page of `player` into a file. It is complete: it opens in any browser, without a network."""
        self.player(title).save(path)

    def _run(self, title: str = "") -> Run:
        """The actions as the player takes them: the cause of each is the one whose result it needs."""
        number = {bar.action: index for index, bar in enumerate(self.bars)}
        before: dict[int, int] = {}  # the action of each stage that comes before
        causes, previous = [], []
        for index, bar in enumerate(self.bars):
            causes.append(next((number[each] for each in self._needs(bar.action) if each in number), -1))
            previous.append(before.get(bar.stage, -1))
            before[bar.stage] = index
        events = [
            Played(bar.stage, KINDS[bar.action.kind], bar.start, bar.end, label=self.schedule.text(bar.action),
                   cause=cause, ready=bar.start)
            for bar, cause in zip(self.bars, causes, strict=True)
        ]  # fmt: skip
        needed = [(bar, self.bars[cause]) for bar, cause in zip(self.bars, causes, strict=True) if cause >= 0]
        message = min((bar.start - other.end for bar, other in needed if bar.stage != other.stage), default=0.0)
        path: list[tuple[int, int, float, float]] = []
        last = max(range(len(self.bars)), key=lambda index: self.bars[index].end, default=-1)
        while last >= 0:  # backwards, from each action to the one that it had to wait for
            bar = self.bars[last]
            path.append((bar.stage, 0, bar.start, bar.end))
            arrivals = {}  # when the stage could begin, for all that it may have waited for
            for index in (causes[last], previous[last]):
                other = self.bars[index]
                arrivals[index] = other.end + message * (other.stage != bar.stage) if index >= 0 else -1.0
            last = max(arrivals, key=arrivals.__getitem__)
        return Run(
            events, self.schedule.stages, self.source, title, unit=self.unit, row="stage", path=path[::-1],
            summary=self.title,
        )  # fmt: skip

    def _needs(self, action: Action) -> Iterator[Action]:
        """The actions of which one, if it is there, gives what this one needs."""
        kind, micro_batch, chunk = action.kind, action.micro_batch, action.chunk
        if kind == "F":
            yield Action("F", micro_batch, chunk - 1)
        elif kind == "W":
            yield Action("I", micro_batch, chunk)
        elif kind in "BI":
            yield from (Action("B", micro_batch, chunk + 1), Action("I", micro_batch, chunk + 1))
            yield Action("F", micro_batch, chunk)

    def draw_on(self, axes: Axes) -> None:
        """Draw the rows on given axes, without title: for one of several small pictures.

        >>> from minidl.parallel import pipeline
        >>> from minidl.plots import style
        >>> figure, [axes] = style.new_figure(4, 2)
        >>> pipeline.simulate(pipeline.GPipe(stages=4, micro_batches=8)).draw_on(axes)
        """
        draw_rows(axes, self._panel())

    def _panel(
        self, title: str = "", memory: bool = False, activation: float = 1.0, weight: float | None = None
    ) -> Panel:
        """What `minidl.plots.pipeline` draws."""
        schedule = self.schedule
        turns = {chunk: turn for s in range(schedule.stages) for turn, chunk in enumerate(schedule.chunks_of(s))}
        boxes = [
            Box(
                bar.stage,
                KINDS[bar.action.kind],
                bar.action.micro_batch,
                turns[bar.action.chunk],
                bar.start,
                bar.end,
            )
            for bar in self.bars
        ]
        rows = [self._own_time(stage) for stage in range(schedule.stages)]
        return Panel(boxes, rows, self.source, self.unit, title, self._curves(activation, weight) if memory else {})

    def _own_time(self, stage: int) -> tuple[float, float]:
        """From when to when the stage computes this minibatch or waits, if one follows another every `seconds`."""
        bars = self._minibatch(stage)
        if not bars:
            return 0.0, self.makespan
        return max(bars[-1].end - self.seconds, 0.0), min(bars[0].start + self.seconds, self.makespan)

    def _curves(self, activation: float, weight: float | None) -> dict[str, list[list[tuple[float, float]]]]:
        """The memory curves of all stages, by what they count."""
        stages = range(self.schedule.stages)
        if weight is not None:
            return {"kept": [self.kept(stage, activation, weight) for stage in stages]}
        if all(bar.action.kind != "I" for bar in self.bars):
            return {"kept": [self.kept(stage, activation) for stage in stages]}
        return {
            "kept, F to I": [self.kept(stage, activation) for stage in stages],
            "kept, F to W": [self.kept(stage, activation, activation) for stage in stages],
        }

    def __str__(self) -> str:
        """A row for each stage, and a column for each unit of time; dots where it computes nothing.

        The unit is the shortest action, and at least a 200th of the whole. An action shorter than that has a column
        nevertheless: for all stages, what follows is moved to the right.
        """
        timed = [bar for bar in self.bars if bar.end > bar.start]
        unit = max(min((bar.end - bar.start for bar in timed), default=1.0), self.makespan / MOST_COLUMNS)
        columns = _columns(timed, unit)
        width = 1 + max((len(self.schedule.text(bar.action)) for bar in timed), default=1)
        rows = []
        for stage in range(self.schedule.stages):
            row, column = "", 0
            for bar in self.of(stage):
                if bar.end == bar.start:
                    continue
                start, end = columns[bar.start], columns[bar.end]
                row += ".".ljust(width) * (start - column)
                label = self.schedule.text(bar.action)
                row += label.ljust(width * (end - start) - 1, "-")[: max(width * (end - start) - 1, 0)].ljust(
                    width * (end - start)
                )
                column = end
            rows.append(
                f"stage {stage}: {row + '.'.ljust(width) * (max(columns.values(), default=0) - column)}".rstrip()
            )
        return "\n".join(rows)


def play_timelines(timelines: Sequence[Timeline], titles: Sequence[str] | None = None, title: str = "") -> Player:
    """Timelines in one player, one above the other on one time axis.

    Parameters
        titles  a heading for each; default: the schedule's name and its bubble
        title   heading of the page

    Raises
        ValueError  for another number of titles

    >>> from minidl.parallel import pipeline
    >>> kinds = pipeline.GPipe(4, 8), pipeline.ZeroBubbleH1(4, 8)
    >>> play_timelines([pipeline.simulate(kind) for kind in kinds], title="Two schedules")
    <Player: 8 stages, 168 events, simulated>
    """
    return Player([timeline._run(each) for timeline, each in _titled(timelines, titles)], title, ACTIONS)


def plot_timelines(
    timelines: Sequence[Timeline],
    titles: Sequence[str] | None = None,
    memory: bool = False,
    activation: float = 1.0,
    weight: float | None = None,
) -> Figure:
    """Draw timelines one above the other on one time axis, so that schedules can be compared.

    Parameters
        timelines           of one unit of time
        titles              text above each; default: the schedule's name and its bubble
        memory              whether curves below each show what its stages keep for backward
        activation, weight  as in `Timeline.plot`

    Raises
        ValueError  timelines of different units, or another number of titles

    >>> from minidl.parallel import pipeline
    >>> kinds = pipeline.GPipe(4, 8), pipeline.ZeroBubbleH1(4, 8)
    >>> figure = plot_timelines([pipeline.simulate(kind) for kind in kinds])
    """
    return draw([timeline._panel(title, memory, activation, weight) for timeline, title in _titled(timelines, titles)])


def _titled(timelines: Sequence[Timeline], titles: Sequence[str] | None) -> list[tuple[Timeline, str]]:
    """Each timeline with its title. Raises ValueError for another number of titles."""
    if titles and len(titles) != len(timelines):
        raise ValueError(f"a title for each of the {len(timelines)} timelines, got {len(titles)}: {list(titles)}")
    return list(zip(timelines, titles or [timeline.title for timeline in timelines], strict=True))


def _columns(bars: Sequence[Bar], unit: float) -> dict[float, int]:
    """The column of each moment at which a bar starts or ends; every bar gets at least one column.

    Halves are rounded up, so that a bar of a unit or more has a column. Where a shorter one has none, columns move.
    """
    starts: dict[float, list[float]] = {}  # of the bars that end at a moment
    for bar in bars:
        starts.setdefault(bar.start, [])
        starts.setdefault(bar.end, []).append(bar.start)
    columns: dict[float, int] = {}
    moved = 0
    for moment in sorted(starts):
        column = math.floor(moment / unit + 0.5 + 1e-9)
        moved = max([moved, *(columns[start] + 1 - column for start in starts[moment])])
        columns[moment] = column + moved
    return columns


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
    to_replica, to_stage = _distance(trace, "dp"), _distance(trace, "pp")
    for stage in range(schedule.stages):
        rank = replica * to_replica + stage * to_stage
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


def _distance(trace: Trace, axis: str) -> int:
    """From a rank to the next one along the axis, as rank 0's messages show; without any, more than there are ranks."""
    of_first = takewhile(lambda event: event.rank == 0, trace.events)  # ordered by rank
    return min((event.peer for event in of_first if event.axis == axis and event.peer > 0), default=trace.size)


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
