"""Answers that are lists of actions: whether each is complete, how long the pipeline takes, and what a stage keeps."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from course.checks.pipelines.order_clock import most_kept, play
from course.judging import Answer, Wrong, expect
from course.plural import counted

Case = tuple[int, int]
"""(K, M)"""

TIMES = ((1.0, 2.0), (1.0, 1.0), (3.0, 1.0))
"""(t_F, t_B) with which schedules are played."""


class Orders:
    """The lists of an answer for all K stages."""

    def __init__(self, answer: Answer, case: Case) -> None:
        self.name = answer.name
        self.K, self.M = case
        self.lines = [self._actions(answer(self.K, self.M, s), s) for s in range(self.K)]

    def called(self, s: int | str = "s") -> str:
        return f"{self.name}({self.K}, {self.M}, {s})"

    def _actions(self, got: object, s: int) -> list[str]:
        actions = got.tolist() if isinstance(got, np.ndarray) else got
        actions = expect.listed(actions, self.called(s), "a list of actions")
        for action in actions:
            if not isinstance(action, str) or not re.fullmatch(r"[FBU](0|[1-9]\d{0,5})", action):
                raise Wrong(
                    f"{self.called(s)}: expected actions such as 'F0', got {expect.shown(action)}.",
                    self._cause_of(action),
                )
        return actions

    def _cause_of(self, action: object) -> str:
        """The likely mistake of what is no action."""
        if action is None or (isinstance(action, str) and not action):
            return "Only what the stage does is in the list; waiting is no action."
        if isinstance(action, str) and re.fullmatch(r"[FBU]-\d+", action):
            shorter = f" Here M = {self.M} is less than K = {self.K}." if self.M < self.K else ""
            return f"Micro-batches are numbered from 0 to M - 1.{shorter}"
        return "An action is a string: a capital letter, F, B or U, and a number directly behind it."


def written(line: Sequence[str]) -> str:
    """A list as a message shows it: its actions, separated by spaces."""
    text = " ".join(line) or "an empty list"
    return text if len(text) <= 100 else text[:99] + "…"


def compare_actions(one: Orders, is_ascending: str) -> None:
    """Raise Wrong unless every stage has each action once, those of the kinds `is_ascending` in order, and U0 last."""
    for s, line in enumerate(one.lines):
        _compare_computed(one, s, line)
        _compare_update(one, s, line)
        for kind in is_ascending:
            those = [action for action in line if action[0] == kind]
            right = [f"{kind}{m}" for m in range(one.M)]
            expect.true(
                those == right,
                f"{one.called(s)}: expected {written(right)} in this order, got {written(those)}.",
                "The micro-batches come in the order of their numbers on every stage.",
            )
        for m in range(one.M):
            expect.true(
                line.index(f"F{m}") < line.index(f"B{m}"),
                f"{one.called(s)}: B{m} comes before F{m}; got {written(line)}.",
                "The backward of a micro-batch needs what its forward has kept.",
            )
        expect.true(
            line[-1] == "U0",
            f"{one.called(s)}: expected U0 as the last action, got {written(line)}.",
            "The update uses the gradient of the whole minibatch: it comes after the last backward.",
        )


def _compare_computed(one: Orders, s: int, line: Sequence[str]) -> None:
    """Raise Wrong unless each forward and each backward is there exactly once, and no other."""
    for action in [f"{kind}{m}" for kind in "FB" for m in range(one.M)]:
        times = line.count(action)
        expect.true(
            times == 1,
            f"{one.called(s)}: {action} is there {counted(times, 'time')}, expected once; got {written(line)}.",
            "A list that is made outside of the function still has the actions of the calls before."
            if line.count("U0") > 1 and times == line.count("U0")
            else "Micro-batches are numbered from 0 to M - 1."
            if f"F{one.M}" in line
            else f"{one.K} instead of {one.M}: K is the number of stages, M that of micro-batches."
            if one.K != one.M and line.count("F0") and sum(each[0] == "F" for each in line) == one.K
            else "Every stage does a forward and a backward for every micro-batch.",
        )
    beyond = [action for action in line if action[0] in "FB" and int(action[1:]) >= one.M]
    expect.true(
        not beyond,
        f"{one.called(s)}: {written(beyond[:1])} is of a micro-batch that there is not; got {written(line)}.",
        "Micro-batches are numbered from 0 to M - 1.",
    )


def _compare_update(one: Orders, s: int, line: Sequence[str]) -> None:
    """Raise Wrong unless there is one U0."""
    updates = [action for action in line if action[0] == "U"]
    expect.true(
        updates == ["U0"],
        f"{one.called(s)}: expected one update, U0, got {written(updates) if updates else 'none'}; "
        f"the list is {written(line)}.",
        "One minibatch is one update, with the sum of the gradients of its micro-batches."
        if len(updates) > 1
        else "The minibatch ends with an update of the weights."
        if not updates
        else "There is one minibatch, number 0, so its update is U0 on every stage.",
    )


def compare_forwards_first(one: Orders) -> None:
    """Raise Wrong unless all forwards come before all backwards."""
    for s, line in enumerate(one.lines):
        kinds = "".join(action[0] for action in line)
        expect.true(
            "BF" not in kinds,
            f"{one.called(s)}: expected all forwards before the first backward, got {written(line)}.",
            "That is another schedule: in GPipe's, no backward comes before the last forward.",
        )


def compare_time(one: Orders, cause: Callable[[Orders], str]) -> None:
    """Raise Wrong unless the pipeline takes (M + K - 1) (t_F + t_B) seconds. cause: a likely one, for too slow ones."""
    for s, line in enumerate(one.lines):
        _compare_computed(one, s, line)
    for forward, backward in TIMES:
        played = play(one.lines, forward, backward)
        where = f"{one.name} with K = {one.K}, M = {one.M}"
        for s, (action, other) in played.waiting.items():
            raise Wrong(
                f"{where}: stage {s} waits for ever before {action}: stage {other} never comes to what it needs.",
                cause_of_waiting(one),
            )
        seconds = (one.M + one.K - 1) * (forward + backward)
        if abs(played.seconds - seconds) > 1e-9:
            raise Wrong(
                f"{where}, t_F = {forward:g}, t_B = {backward:g}: the minibatch takes {played.seconds:g} seconds, "
                f"expected (M + K - 1) (t_F + t_B) = {seconds:g}.",
                cause(one),
            )


def compare_memory(one: Orders) -> None:
    """Raise Wrong unless stage s keeps the activations of at most min(M, K - s) micro-batches."""
    for s, line in enumerate(one.lines):
        _compare_computed(one, s, line)
        most, allowed = most_kept(line), min(one.M, one.K - s)
        expect.true(
            most <= allowed,
            f"{one.called(s)}: keeps the activations of {counted(most, 'micro-batch', 'micro-batches')} at a time, "
            f"expected at most min(M, K - s) = {allowed}; got {written(line)}.",
            "All forwards come before all backwards here: that is GPipe."
            if most == one.M and not most_kept_short(line)
            else "The warm-up is one forward too long: after it, a forward comes first, and then a backward."
            if most == allowed + 1
            else f"The warm-up is {most - allowed} forwards too long.",
        )


def most_kept_short(line: Sequence[str]) -> bool:
    """Whether a forward comes after a backward."""
    return "BF" in "".join(action[0] for action in line)


def other_order(one: Orders) -> str:
    """The likely cause of a schedule of gpipe that takes too long."""
    for kind, name in (("F", "forwards"), ("B", "backwards")):
        if len({tuple(action for action in line if action[0] == kind) for line in one.lines}) > 1:
            return f"The {name} are not in the same order on all stages."
    return ""


def cause_of_waiting(one: Orders) -> str:
    """The likely cause of schedules of neighbours that do not fit together."""
    kept = [most_kept(line) for line in one.lines]
    if any(kept[s] < kept[s + 1] for s in range(one.K - 1)):
        return (
            "A stage begins with more forwards than the stage before it, which sends it no more activations before "
            "it gets a gradient back."
        )
    return "The lists of neighbouring stages must fit together: the same order of micro-batches on all stages."


def too_slow(one: Orders) -> str:
    """The likely cause of a schedule of one_f_one_b that takes too long."""
    kept = [most_kept(line) for line in one.lines]
    right = [min(one.M, one.K - s) for s in range(one.K)]
    if all(most == 1 for most in kept) and one.K > 1:
        return "Without a warm-up, one stage works at a time."
    if all(most in (max(want - 1, 1), want) for most, want in zip(kept, right, strict=True)) and kept != right:
        return (
            "The warm-up is one forward short on some stage: the next stage is idle while the first gradient is on "
            "its way."
        )
    if any(most > want for most, want in zip(kept, right, strict=True)):
        return "Some stage does more forwards than necessary before its first backward: all gradients come later."
    return "Some stage waits although it could compute: compare its warm-up with those of its neighbours."
