"""Schedules against a judge that shares no code with the library: what is valid, what is bad first, times and memory.

The judge knows a schedule as lists of (kind, micro-batch, chunk), a list for each stage. It takes one action after
another, wherever one is possible, until no stage can go on.
"""

from __future__ import annotations

import random
import re

import pytest

from minidl.parallel import pipeline
from tests.tiers import exhaustively

KINDS = tuple(pipeline.SCHEDULES)
Line = list[tuple[str, int, int]]


class Judge:
    """The rules of schedules, written down a second time."""

    def __init__(self, lines: list[Line], places: list[int], micro_batches: int, asynchronous: bool) -> None:
        self.lines, self.places, self.m, self.asynchronous = lines, places, micro_batches, asynchronous

    def needs(self, kind: str, m: int, chunk: int) -> list[tuple[tuple[str, int, int], ...]]:
        """What must be done before, on whichever stage: of each tuple, one."""
        before, after = chunk - 1, chunk + 1
        if kind == "F":
            return [(("F", m, before),)] if before >= 0 else []
        if kind in "BI":
            return [(("F", m, chunk),)] + [(("B", m, after), ("I", m, after))] * (after < len(self.places))
        if kind == "W":
            return [(("I", m, chunk),)]
        return [(("B", each, chunk), ("W", each, chunk)) for each in ([m] if self.asynchronous else range(self.m))]

    def is_strange(self, stage: int, action: tuple[str, int, int], done: set[tuple[str, int, int]]) -> bool:
        """Whether no valid schedule has this action on this stage after those that are done."""
        kind, m, chunk = action
        rival = {"B": "IW", "I": "B", "W": "B"}.get(kind, "")
        return (
            not 0 <= m < self.m
            or not 0 <= chunk < len(self.places)
            or self.places[chunk] != stage
            or action in done
            or (kind == "U" and not self.asynchronous and any(done & {("U", n, chunk) for n in range(self.m)}))
            or any((other, m, chunk) in done for other in rival)
        )

    def local_slip(self, stage: int) -> int | None:
        """The position of a stage's first action that this stage's own order forbids; its length: some are missing."""
        done: set[tuple[str, int, int]] = set()
        for position, action in enumerate(self.lines[stage]):
            own = [some for some in self.needs(*action) if self.places[some[0][2]] == stage]
            if self.is_strange(stage, action, done) or not all(done.intersection(some) for some in own):
                return position
            done.add(action)
        mine = [chunk for chunk, place in enumerate(self.places) if place == stage]
        updates = self.m if self.asynchronous else 1
        complete = all(
            sum(kind == "F" and c == chunk for kind, _, c in done) == self.m
            and sum(kind in "BW" and c == chunk for kind, _, c in done) == self.m
            and sum(kind == "U" and c == chunk for kind, _, c in done) == updates
            for chunk in mine
        )
        return None if complete else len(self.lines[stage])

    def play(self, time: dict[tuple[str, int], float], message: float) -> tuple[list[list[tuple[float, float]]], bool]:
        """Start and end of the actions of each stage, as far as they are possible; and whether all are."""
        ends: dict[tuple[str, int, int], float] = {}
        where = {action: stage for stage, line in enumerate(self.lines) for action in line}
        spans: list[list[tuple[float, float]]] = [[] for _ in self.lines]
        moved = True
        while moved:
            moved = False
            for stage, line in enumerate(self.lines):
                if len(spans[stage]) == len(line):
                    continue
                action = line[len(spans[stage])]
                found = [[each for each in some if each in ends] for some in self.needs(*action)]
                if not all(found):
                    continue
                ready = [ends[each] + message * (where[each] != stage) for some in found for each in some]
                start = max([*ready, spans[stage][-1][1] if spans[stage] else 0.0])
                ends[action] = start + time[action[0], action[2]]
                spans[stage].append((start, ends[action]))
                moved = True
        return spans, all(len(span) == len(line) for span, line in zip(spans, self.lines, strict=True))

    def peak(self, stage: int) -> float:
        """The most micro-batches of a whole stage whose activations a stage keeps."""
        kept = [0]
        for kind, _, _ in self.lines[stage]:
            kept.append(kept[-1] + {"F": 1, "B": -1, "I": -1}.get(kind, 0))
        return max(kept) * len(self.lines) / len(self.places)


def drawn(rng: random.Random) -> pipeline.Schedule:
    kind, stages = rng.choice(KINDS), rng.randint(1, 5)
    micro_batches = stages * rng.randint(1, 3) if kind == "interleaved" else rng.randint(1, 9)
    return pipeline.schedule(kind, stages, micro_batches, rng.randint(1, 3) if kind == "interleaved" else None)


def random_times(rng: random.Random, chunks: int) -> float | list[float]:
    """A time for each chunk, or one for all."""
    of_chunk = [rng.choice([rng.random(), rng.randint(0, 3)]) for _ in range(chunks)]
    return rng.choice([of_chunk, of_chunk[0]])


def judge_of(schedule: pipeline.Schedule) -> Judge:
    lines = [[(a.kind, a.micro_batch, a.chunk) for a in schedule.actions(s)] for s in range(schedule.stages)]
    places = [schedule.place(chunk) for chunk in range(schedule.chunks)]
    return Judge(lines, places, schedule.micro_batches, schedule.is_asynchronous)


def mutate(lines: list[Line], rng: random.Random) -> None:
    """Change one thing, or nothing that matters."""
    stage = rng.choice([stage for stage, line in enumerate(lines) if line])
    line = lines[stage]
    i, j = rng.randrange(len(line)), rng.randrange(len(line))
    kind, m, chunk = line[i]
    match rng.choice(["drop", "double", "swap", "shift", "stage", "rename", "kind", "chunk", "split", "weight first"]):
        case "drop":
            del line[i]
        case "double":
            line.insert(j, line[i])
        case "swap":
            line[i], line[j] = line[j], line[i]
        case "shift":
            line.insert(j, line.pop(i))
        case "stage":
            other = rng.choice(lines)
            other.insert(rng.randint(0, len(other)), line.pop(i))
        case "rename":
            line[i] = (kind, rng.choice([m + 1, max(m - 1, 0), m + 50]), chunk)
        case "kind":
            line[i] = (rng.choice("FBIWU"), m, chunk)
        case "chunk":
            line[i] = (kind, m, rng.choice([c for _, _, c in rng.choice(lines) or line]))
        case "split" if kind == "B":
            line[i : i + 1] = [("I", m, chunk), ("W", m, chunk)]
        case "weight first" if kind == "I":
            line.insert(i, line.pop(line.index(("W", m, chunk))) if ("W", m, chunk) in line else ("W", m, chunk))


@pytest.mark.parametrize("seed", [0, *exhaustively(1)])
def test_validator_and_judge_agree_on_what_is_valid_and_on_the_first_bad_action(seed: int):
    rng, verdicts = random.Random(seed), {True: 0, False: 0}
    for _ in range(250):
        schedule = drawn(rng)
        judge = judge_of(schedule)
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            mutate(judge.lines, rng)
        written = pipeline.Listed(
            schedule.stages,
            schedule.micro_batches,
            schedule.chunks_per_stage,
            lines=[[pipeline.Action(*action) for action in line] for line in judge.lines],
            places=judge.places,
        )
        updates = {(m, chunk) for line in judge.lines for kind, m, chunk in line if kind == "U"}
        judge.asynchronous = any(m < n and chunk == other for m, chunk in updates for n, other in updates)
        slips = [judge.local_slip(stage) for stage in range(schedule.stages)]
        bad = next((stage for stage, slip in enumerate(slips) if slip is not None), None)
        free = {(kind, chunk): 1.0 for kind in "FBIWU" for chunk in range(schedule.chunks)}
        spans, is_complete = judge.play(free, 0.0) if bad is None else ([], False)
        verdicts[bad is None and is_complete] += 1
        if bad is None and is_complete:
            pipeline.validate(written)
            continue
        with pytest.raises(pipeline.ScheduleError) as error:
            pipeline.validate(written)
        message = str(error.value)
        if bad is None:
            stuck = {stage for stage in range(schedule.stages) if len(spans[stage]) < len(judge.lines[stage])}
            named = re.findall(r"stage (\d+) waits for .*? micro-batch (\d+) for chunk (\d+)", message)
            assert {int(stage) for stage, _, _ in named} == stuck
            assert {(int(m), int(chunk)) for _, m, chunk in named} == {
                judge.lines[stage][len(spans[stage])][1:] for stage in stuck
            }
        elif (position := slips[bad]) < len(judge.lines[bad]):
            action = pipeline.Action(*judge.lines[bad][position])
            assert message.startswith(f"stage {bad}: {written.text(action)} ("), (message, action)
        else:
            assert message.startswith(f"stage {bad}: "), message
            assert message.endswith(" is missing"), message
            named = re.search(r": (\d*)([FBIWU])(\d+) ", message)
            chunk = int(named[1]) if named[1] else bad
            assert (named[2], int(named[3]), chunk) not in judge.lines[bad]
    assert min(verdicts.values()) > 20


@pytest.mark.parametrize("seed", [0, *exhaustively(1)])
def test_times_bubble_and_memory_are_those_of_the_judge(seed: int):
    rng = random.Random(seed)
    for _ in range(30):
        schedule = drawn(rng)
        judge = judge_of(schedule)
        drawn_times = [random_times(rng, schedule.chunks) for _ in range(3)]
        times = pipeline.Times(1 + rng.random(), *drawn_times, message=rng.choice([0, 0.3]))
        each = {
            (kind, chunk): times.of(pipeline.Action(kind, 0, chunk))
            for kind in "FBIWU"
            for chunk in range(schedule.chunks)
        }
        spans, is_complete = judge.play(each, times.message)
        timeline = pipeline.simulate(schedule, times)
        assert is_complete
        for stage, line in enumerate(judge.lines):
            bars = [(bar.action.kind, bar.action.micro_batch, bar.action.chunk) for bar in timeline.of(stage)]
            assert bars == line
            played = [moment for bar in timeline.of(stage) for moment in bar[2:]]
            assert played == pytest.approx([moment for span in spans[stage] for moment in span], abs=1e-9)
        assert timeline.makespan == pytest.approx(max(span[-1][1] for span in spans))
        lengths = [max(i for i, (kind, _, _) in enumerate(line) if kind != "U") + 1 for line in judge.lines]
        computed = [span[:length] for span, length in zip(spans, lengths, strict=True)]
        busy = [sum(end - start for start, end in span) for span in computed]
        whole = [span[-1][1] - span[0][0] for span in computed]
        idle = [timeline.idle(stage) for stage in range(schedule.stages)]
        assert idle == pytest.approx([all_of - busy_of for all_of, busy_of in zip(whole, busy, strict=True)], abs=1e-9)
        assert timeline.bubble_of_total == pytest.approx(1 - max(busy) / max(whole), abs=1e-9)
        assert timeline.bubble_of_ideal == pytest.approx(max(whole) / max(busy) - 1, abs=1e-9)
        assert pipeline.peak_memory(schedule) == pytest.approx([judge.peak(s) for s in range(schedule.stages)])
        curve = pipeline.simulate(schedule).kept
        assert [max(kept for _, kept in curve(s)) for s in range(schedule.stages)] == pipeline.peak_memory(schedule)
