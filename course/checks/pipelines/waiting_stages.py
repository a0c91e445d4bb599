"""Schedules for `deadlock`, healthy ones and others, and the right result from the clock of the checks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from course.checks.pipelines.order_clock import Lines, awaited, play
from course.checks.pipelines.version_counts import actions_of
from course.judging import Answer, Wrong, expect
from course.plural import counted
from minidl.random import Purpose, stream

Case = tuple[int, int]
"""(K, M)"""

Schedule = list[list[str]]


def one_f_one_b(K: int, M: int) -> Schedule:
    return [[*actions_of(min(M, K - 1 - s), M, 0), "U0"] for s in range(K)]


def gpipe(K: int, M: int) -> Schedule:
    return [[*(f"{kind}{m}" for kind in "FB" for m in range(M)), "U0"] for _ in range(K)]


def naive(K: int, M: int) -> Schedule:
    return [[*(f"{kind}{m}" for m in range(M) for kind in "FB"), "U0"] for _ in range(K)]


def generator(case: Case, seed: int, name: str) -> random.Random:
    return random.Random(int(stream(Purpose.MANUAL, seed, name, *case).integers(2**31)))


def played_at_random(K: int, M: int, rng: random.Random) -> Schedule:
    """A schedule that works: repeatedly, any stage does any action for which everything is there."""
    lines: Schedule = [[] for _ in range(K)]
    actions = sorted(f"{kind}{m}" for kind in "FB" for m in range(M))
    left = {(s, action): awaited(s, action, K) for s in range(K) for action in actions}
    while left:
        possible = [each for each, sources in left.items() if not any(source in left for source in sources)]
        s, action = rng.choice(possible)
        del left[s, action]
        lines[s].append(action)
    return [[*line, "U0"] for line in lines]


def healthy(case: Case, seed: int) -> list[Schedule]:
    """Known schedules, with the warm-up one short and one long, early updates, and any orders that work."""
    K, M = case
    rng = generator(case, seed, "healthy")
    short = [[*actions_of(max(0, min(M, K - 2 - s)), M, 0), "U0"] for s in range(K)]
    long = [[*actions_of(min(M, K - s), M, 0), "U0"] for s in range(K)]
    early = naive(K, M)  # an update waits for nothing
    for line in early:
        line.insert(rng.randrange(2 * M), line.pop())
    several = [one_f_one_b(K, M), played_at_random(K, M, rng), gpipe(K, M), naive(K, M), short, long, early]
    return [*several, *(played_at_random(K, M, rng) for _ in range(2))]


def circles(case: Case, seed: int) -> list[Schedule]:
    """Schedules in which two or more stages wait for each other; some other stages finish, or wait for these."""
    K, M = case
    rng = generator(case, seed, "circles")
    turned = gpipe(K, M)  # the first two stages take the backwards, the last forwards, in another order
    turned[0] = [*(f"F{m}" for m in range(M - 1)), "B0", f"F{M - 1}", *(f"B{m}" for m in range(1, M)), "U0"]
    turned[1] = [*(f"F{m}" for m in range(M)), *(f"B{m}" for m in range(M)), "U0"]
    late = one_f_one_b(K, M)  # the last stage wants the last micro-batch first
    late[-1] = [f"{kind}{m}" for m in reversed(range(M)) for kind in "FB"] + ["U0"]
    late[0] = naive(K, M)[0]
    found = [each for each in (turned, late) if play(each).waiting]
    while len(found) < 5:
        lines = played_at_random(K, M, rng)
        line = lines[rng.randrange(K)]
        a, b = sorted(rng.sample(range(len(line)), 2))
        line[a:b] = [*line[a + 1 : b], line[a]]
        waiting = play(lines).waiting
        if len(waiting) > 1 and all(stage != other for stage, (_, other) in waiting.items()):
            found.append(lines)
    return found


def missing(case: Case, seed: int) -> list[Schedule]:
    """Schedules in which actions are missing, all of a stage's too, or a backward comes before its own forward."""
    K, M = case
    rng = generator(case, seed, "missing")
    found: list[Schedule] = []
    for kind, s in (("F", 0), ("B", K - 1), ("F", K - 1), ("F", rng.randrange(K))):
        lines = played_at_random(K, M, rng)
        lines[s].remove(f"{kind}{rng.randrange(M)}")
        if play(lines).waiting:
            found.append(lines)
    own = one_f_one_b(K, M)  # a stage does its first backward before everything
    own[rng.randrange(K)].sort(key=lambda action: action != "B0")
    alone, digits = [["B0", "F0", "U0"]], [["F1", "B1", "F2", "B12", "F12", "B2", "U0"]]
    hundreds = [["F110", "B110", "F11", "B111", "F111", "B11", "U0"]]
    empty = naive(K, M)
    empty[rng.randrange(1, K)] = []
    return [*found, own, alone, digits, hundreds, empty]


def judge(answer: Answer, schedules: Sequence[Lines]) -> None:
    """Raise Wrong unless the answer says of every schedule who waits for what."""
    for lines in schedules:
        want = play(lines).waiting
        got = answer([list(line) for line in lines])
        if not isinstance(got, dict):
            raise Wrong(
                f"deadlock of {shown(lines)}: expected a dictionary, got {expect.shown(got)}.", expect.not_a_value(got)
            )
        if not expect.equal({stage: as_pair(value) for stage, value in got.items()}, want):
            message = f"deadlock of {shown(lines)}: expected {want}, got {expect.shown(got)}.{the_case(want, got)}"
            raise Wrong(message, cause(lines, want, got))


def as_pair(value: Any) -> Any:
    """A list of two is a pair, too."""
    return tuple(value) if isinstance(value, list) else value


def shown(lines: Lines) -> str:
    """A schedule as a message shows it."""
    texts = [f"stage {s}: {' '.join(line)}" for s, line in enumerate(lines)]
    text = "; ".join(texts)
    return f"({text})" if len(text) <= 400 else f"({text[:399]}…)"


def the_case(want: dict[int, tuple[str, int]], got: dict[Any, Any]) -> str:
    """What one of the two empty dictionaries means, as a further sentence; "" if neither is empty."""
    if not want:
        return " This schedule works: every stage finishes."
    return (
        "" if got else f" In this schedule {counted(len(want), 'stage')} never finish{'es' if len(want) == 1 else ''}."
    )


def cause(lines: Lines, want: dict[int, tuple[str, int]], got: dict[Any, Any]) -> str:
    """The likely mistake; "" if either dictionary is empty, since the message says then what happens."""
    if not want or not got:
        return ""
    if not all(isinstance(stage, int) for stage in got):
        return "The keys are the numbers of the stages, not texts."
    if set(got) != set(want):
        late = sorted(set(want) - set(got))
        early = sorted(map(str, set(got) - set(want)))
        return (
            f"Stage {late[0]} waits for ever, too: also those that wait for a stage in the circle."
            if late
            else f"Stage {early[0]} finishes its list: what it waits for comes in the end."
        )
    for s, pair in want.items():
        value = as_pair(got[s])
        if not isinstance(value, tuple) or len(value) != 2:
            return "Each value is a pair: the action, and the stage for which it waits."
        if value[0] != pair[0]:
            return cause_of_action(lines[s], pair[0], value[0])
        if value[1] != pair[1]:
            return (
                "A backward needs the forward of its own stage first: if that is not done, the stage waits for itself."
                if pair[1] == s
                else "A stage waits for itself only before a backward whose own forward is not done."
                if value[1] == s
                else "Activations come from stage s - 1, gradients from stage s + 1."
            )
    return ""


def cause_of_action(line: Sequence[str], right: str, named: Any) -> str:
    """The likely mistake of a stage that waits before the action `right`, where the answer has `named`."""
    if named not in line:
        return (
            "Each pair has the action first, then the stage for which it waits." if not isinstance(named, str) else ""
        )
    ahead = line.index(right) - line.index(named)
    if ahead == 1:
        return "The action is the first one that the stage cannot do, not the last one that it has done."
    if ahead > 1:
        return f"The stage does not wait for ever before {named}: what it needs is done in the end."
    return "The stage stops before the first action that it cannot do; those behind it do not matter."
