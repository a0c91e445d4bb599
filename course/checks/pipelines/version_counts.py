"""Lists of one stage's actions with updates, and how many versions of the weights the stage holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from course.judging import Answer, expect


@dataclass(frozen=True)
class Line:
    """The actions of a stage, and the right number of versions; `what` describes them."""

    actions: tuple[str, ...]
    versions: int
    what: str


def actions_of(warm_up: int, M: int, period: int, is_flushed: bool = False) -> tuple[str, ...]:
    """1F1B with that warm-up; an update after every `period` backwards, numbered by the last of them."""
    line = [f"F{m}" for m in range(warm_up)]
    for m in range(M):
        line += [f"F{warm_up + m}"] * (warm_up + m < M) + [f"B{m}"]
        if period and (m + 1) % period == 0:
            line.append(f"U{m}")
    return tuple(line)


def held(actions: Sequence[str]) -> int:
    """The oracle: the largest number of different versions held, by going back to the forward of each backward."""
    uses: list[tuple[int, int, int]] = []  # version, its first moment, its last moment
    version, moment_of_forward = 0, {}
    for moment, action in enumerate(actions):
        if action[0] == "F":
            moment_of_forward[action[1:]] = (version, moment)
        elif action[0] == "B":
            used, start = moment_of_forward[action[1:]]
            uses.append((used, start, moment))  # released when the backward is done
        else:
            version += 1
    newest, most = 0, 1
    for moment, action in enumerate(actions):
        newest += action[0] == "U"
        most = max(most, len({newest, *(used for used, start, end in uses if start <= moment < end)}))
    return most


def straight(K: int, M: int) -> list[Line]:
    """The stages of PipeDream without replicas."""
    lines = []
    for s in range(K):
        actions = actions_of(min(M, K - 1 - s), M, 1)
        lines.append(Line(actions, held(actions), f"stage {s} of {K} of PipeDream, {M} minibatches"))
    return lines


def rare(K: int, M: int, period: int) -> list[Line]:
    """Updates every `period` micro-batches, one at the end, none, and micro-batches under way at the end."""
    lines = []
    for s in range(K):
        actions = actions_of(min(M, K - 1 - s), M, period)
        lines.append(Line(actions, held(actions), f"stage {s} of {K}, an update after every {period} backwards"))
    flushed, forwards = actions_of(K - 1, M, M), tuple(f"F{m}" for m in range(M))
    backwards = tuple(f"B{m}" for m in reversed(range(M)))
    lines.append(Line(flushed, 1, f"stage 0 of {K} of 1F1B, one update at the end"))
    lines.append(Line((*forwards, *backwards), 1, "no update"))
    lines.append(Line(("F0", "U0", "U1", "F1", "U2", "B1", "B0"), 3, "updates without a backward before them"))
    hundreds = ("F100", "U0", "F101", "U1", "F102", "B100", "U2", "B101", "B102")
    lines.append(Line(hundreds, 3, "micro-batches from number 100 on"))
    return lines


def mistakes(line: Line) -> dict[str, int]:
    """Known mistakes, by the sentence that explains each."""
    forwards, most, older, most_older, in_use, widest = 0, 0, 0, 0, 0, 1
    newest, used, ever = 0, {}, {0}
    for action in line.actions:
        if action[0] == "F":
            used[action[1:]] = newest
            ever.add(newest)
        elif action[0] == "B":
            del used[action[1:]]
        else:
            newest += 1
        forwards = max(forwards, len(used))
        most = max(most, 1 + len(used))
        older = len(set(used.values()) - {newest})
        most_older = max(most_older, older)
        in_use = max(in_use, len(set(used.values())))
        widest = max(widest, newest - min(used.values(), default=newest) + 1)
    return {
        "One copy for each micro-batch under way: those with the same version share it.": forwards,
        "Between the oldest version in use and the newest there are some that no micro-batch uses.": widest,
        "One copy for each micro-batch under way, and the newest: those with the same version share it.": most,
        "The newest version is held, too.": most_older,
        "The newest version is to be held also while no micro-batch uses it.": in_use,
        "An old version is released after the last backward that uses it: none was.": len(ever | {newest}),
        "These are all versions that there ever were.": newest + 1,
    }


def judge(answer: Answer, lines: Sequence[Line]) -> None:
    """Raise Wrong unless the answer counts the versions of every line."""
    disproved: set[str] = set()  # mistakes that would have shown in an earlier line
    for line in lines:
        text = " ".join(line.actions)
        shown = text if len(text) <= 90 else text[:89] + "…"
        called = f"weights_to_stash of {line.what} ({shown})"
        got = answer(list(line.actions))
        known = {sentence: number for sentence, number in mistakes(line).items() if sentence not in disproved}
        expect.number(got, line.versions, called, atol=0.0, rtol=0.0, mistakes=known)
        disproved |= {sentence for sentence, number in known.items() if number != line.versions}
