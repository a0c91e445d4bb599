"""Schedules of a model's units on a small device: what they need and hold, and the seconds that they take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from course.judging import Answer, Wrong, expect
from course.plural import counted

Case = tuple[int, int, int]
"""(n, size, room)"""

Seconds = tuple[float, list[float], list[float]]
"""(of a transfer, of each unit's forward, of each unit's backward)"""


def times(n: int) -> list[Seconds]:
    """A link that is faster than the computing, as fast, slower, much slower; and units that differ."""
    uneven = [float(1 + i * 5 % 7) for i in range(n)]
    by_turns = [(4.0, 0.5)[i % 2] for i in range(n)]
    even: list[Seconds] = [(link, [1.0] * n, [2.0] * n) for link in (0.25, 1.0, 1.75, 6.0)]
    return [*even, *((link, each, [2 * t for t in each[::-1]]) for link, each in ((3.0, uneven), (1.75, by_turns)))]


def best(n: int, places: int) -> list[str]:
    """A schedule of the fewest fetches and the fewest seconds: the last units stay from forward to backward."""
    actions = [f"+{i}" for i in range(min(n, places))]
    for i in range(n):
        actions.append(f"F{i}")
        if i + places < n:
            actions += [f"-{i}", f"+{i + places}"]
    for i in reversed(range(n)):
        actions += [f"B{i}", f"G{i}"]
        if i >= places:
            actions.append(f"+{i - places}")
    return actions


@dataclass
class Clock:
    """The seconds at which actions end, if each begins as soon as it may.

    fetched, computed, sent   when the last action of this kind ends
    freed                     when all places are free whose evict or send-back came so far
    """

    seconds: Seconds
    fetched: float = 0.0
    computed: float = 0.0
    sent: float = 0.0
    freed: float = 0.0
    units: dict[int, float] = field(default_factory=dict)  # when the last action with a unit ends

    def do(self, action: str) -> float:
        """The second at which the action, the next in the list, ends."""
        (link, forward, backward), kind, i = self.seconds, action[0], int(action[1:])
        ready = self.units.get(i, 0.0)
        if kind == "+":
            end = self.fetched = max(self.fetched, self.freed) + link
        elif kind in "FB":
            end = self.computed = max(self.computed, ready) + (forward if kind == "F" else backward)[i]
        elif kind == "G":
            end = self.sent = max(self.sent, ready) + link
        else:
            end = ready
        if kind in "G-":
            self.freed = max(self.freed, end)
        self.units[i] = end
        return end


def makespan(actions: Sequence[str], seconds: Seconds) -> float:
    """The seconds from the first action's beginning to the last one's end."""
    clock = Clock(seconds)
    return max(clock.do(action) for action in actions)


class Schedule:
    """An answer's list for a case."""

    def __init__(self, answer: Answer, case: Case) -> None:
        self.n, size, room = case
        self.places = room // size
        self.called = f"fetch_schedule({self.n}, {size}, {room})"
        got = answer(*case)
        listed = expect.listed(got.tolist() if isinstance(got, np.ndarray) else got, self.called, "a list of actions")
        for action in listed:
            if not isinstance(action, str) or not re.fullmatch(r"[-+FBG](0|[1-9]\d{0,4})", action):
                raise Wrong(
                    f"{self.called}: expected actions such as '+0', got {expect.shown(action)}.",
                    "An action is a string: +, F, -, B or G, and the number of a unit directly behind it.",
                )
            if int(action[1:]) >= self.n:
                raise Wrong(
                    f"{self.called}: {action!r} is of a unit that there is not.", "Units are numbered from 0 to n - 1."
                )
        self.actions = list(listed)

    def upto(self, place: int) -> str:
        """The list as far as this action, as a message shows it."""
        text = " ".join(self.actions[: place + 1])
        return text if len(text) <= 90 else f"… {text[-88:]}"

    def compare_order(self) -> None:
        """Raise Wrong unless the computing is complete and in order."""
        want = [f"F{i}" for i in range(self.n)] + [f"B{i}" for i in reversed(range(self.n))]
        got = [action for action in self.actions if action[0] in "FB"]
        if got == want:
            return
        missing = [action for action in want if action not in got]
        raise Wrong(
            f"{self.called}: expected the computing {self._short(want)}, got {self._short(got)}.",
            f"{missing[0]} is missing." if missing
            else "Backward begins with the last unit." if got == want[: self.n] + want[: self.n - 1 : -1] and self.n > 1
            else "Every forward and every backward is there once.",
        )  # fmt: skip

    @staticmethod
    def _short(actions: Sequence[str]) -> str:
        return (" ".join(actions) or "none") if len(actions) <= 12 else " ".join([*actions[:6], "…", *actions[-5:]])

    def compare_places(self) -> None:
        """Raise Wrong unless each action has what it needs, and the units on the device fit."""
        held: dict[int, str] = {}  # "weights" or "gradient" of a unit on the device
        sent: set[int] = set()
        for place, action in enumerate(self.actions):
            kind, i = action[0], int(action[1:])
            where = f"{self.called}: {action}, the last of {self.upto(place)}"
            has = held.get(i, "")
            if kind == "+":
                expect.true(not has, f"{where}: unit {i} is on the device.", "Fetch only what is not there.")
                expect.true(
                    len(held) < self.places,
                    f"{where}: the device has {counted(len(held), 'unit')}, and room for no other: "
                    f"{counted(self.places, 'unit')} of this size fit.",
                    "Evict a unit, or send its gradient back, before another is fetched into its place.",
                )
                held[i] = "weights"
            elif kind in "FB":
                expect.true(
                    has == "weights",
                    f"{where}: the weights of unit {i} are not on the device.",
                    "Fetch a unit before it computes; what was evicted after forward is fetched again for backward.",
                )
                held[i] = "weights" if kind == "F" else "gradient"
            elif kind == "-":
                expect.true(
                    bool(has), f"{where}: unit {i} is not on the device.", "Only what is on the device is evicted."
                )
                expect.true(
                    has == "weights",
                    f"{where}: the gradient of unit {i} is lost.",
                    "After its backward a unit's place has its gradient, which is sent back: that frees the place.",
                )
                del held[i]
            else:
                expect.true(
                    has == "gradient",
                    f"{where}: there is no gradient of unit {i} on the device.",
                    "A gradient is sent back once." if i in sent else "Its backward makes the gradient.",
                )
                sent.add(i)
                del held[i]
        lost = sorted(set(range(self.n)) - sent)
        expect.true(
            not lost,
            f"{self.called}: the gradient of unit {lost[0] if lost else 0} is not sent back.",
            "The host makes the update: it needs every gradient.",
        )

    def compare_fetches(self) -> None:
        """Raise Wrong unless the number of fetches is the smallest."""
        fetches = [int(action[1:]) for action in self.actions if action[0] == "+"]
        want = max(self.n, 2 * self.n - self.places)
        expect.true(
            len(fetches) <= want,
            f"{self.called}: {counted(len(fetches), 'fetch', 'fetches')}, expected {want}.",
            "Everything fits: each unit is fetched once." if self.places >= self.n
            else "Each unit is fetched again for its backward, also those that could have stayed."
            if len(fetches) >= 2 * self.n
            else "Backward begins with the last units: keep as many of these as fit, and evict the first ones.",
        )  # fmt: skip

    def compare_time(self) -> None:
        """Raise Wrong unless the schedule takes the fewest seconds, for each of several links."""
        most, held = 0, 0
        for action in self.actions:
            held += (action[0] == "+") - (action[0] in "-G")
            most = max(most, held)
        for seconds in times(self.n):
            want, got = makespan(best(self.n, self.places), seconds), makespan(self.actions, seconds)
            link, forward, backward = seconds
            computing = (
                f"{forward[0]:g} s, backward {backward[0]:g} s"
                if len(set(forward)) == 1
                else f"{min(forward):g} to {max(forward):g} s, backward twice"
            )
            expect.true(
                got <= want + 1e-9,
                f"{self.called}, a transfer {link:g} s, a forward {computing}: takes {got:g} seconds, {want:g} are "
                "possible.",
                f"Only {most} of {counted(self.places, 'place')} are ever in use: fetch units while another computes."
                if most < min(self.n, self.places)
                else "A send-back waits for all send-backs that are listed before it: list them in the order of the "
                "backwards."
                if [action for action in self.actions if action[0] == "G"] != [f"G{i}" for i in reversed(range(self.n))]
                else "A fetch waits for all evicts and send-backs that are listed before it: list it directly behind "
                "the one that makes room for it, and fetch the units in the order in which they compute.",
            )
