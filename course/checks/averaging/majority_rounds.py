"""Runs of `majority` against played training: the right sums, the seconds of the rounds, and the messages.

Messages take no time. So round r begins when machine drawn[r] has a gradient that is in no earlier round, and its sum
has all gradients that are ready by then and are in no earlier round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from course.checks.averaging.machines import Array, vector
from course.judging import Answer, Wrong, expect
from course.judging.ranks.counted_all_reduces import WHY_NOT, all_reduces, words_sent
from course.judging.ranks.rank_run import RankRun
from course.plural import counted
from minidl.cluster import Communicator, Network
from minidl.random import Purpose, stream

Case = tuple[int, int, int]
"""(p, n, rounds)"""

AT_ONCE = Network(alpha=0.0, beta=0.0)
A_SECOND_A_MESSAGE = Network(alpha=1.0, beta=0.0)
A_MOMENT = 1e-6
ROUNDING = 1e-9


@dataclass(frozen=True)
class Gradient:
    """A gradient of a machine, and the second at which it is ready."""

    machine: int
    at: float
    values: Array


@dataclass
class Majority:
    """A run of `majority`; one that raises is made again by the next part that asks for it."""

    answer: Answer
    p: int
    n: int
    gradients: list[Gradient]
    drawn: list[int]
    network: Network = AT_ONCE

    @cached_property
    def run(self) -> RankRun:
        arguments = [(self.p, self.n, tuple(self.drawn))] * self.p + [()] * self.p
        played = {self.p + machine: self.training(machine) for machine in range(self.p)}
        return self.answer.on_ranks(arguments, self.network, played=played)

    def training(self, machine: int) -> Callable[[Communicator], None]:
        """The program of a machine's training, which never waits."""

        def play(comm: Communicator) -> None:
            for gradient in self.gradients:
                if gradient.machine == machine:
                    comm.compute(seconds=gradient.at - comm.now())
                    comm.send(gradient.values, machine)
            comm.send(np.zeros(0), machine)

        return play

    def called(self, machine: int) -> str:
        return f"majority on rank {machine} of {self.p}, n={self.n}, drawn={self.drawn}"

    def returned(self, machine: int) -> tuple[list[Array], Array]:
        """The sums of the rounds, and what is left."""
        sums, left = expect.listed(self.run.results[machine], self.called(machine), "(sums, left)", 2)
        if not isinstance(sums, (list, tuple)) and not (isinstance(sums, np.ndarray) and sums.ndim == 2):
            raise Wrong(f"{self.called(machine)}: expected a list of sums, got {expect.shown(sums)}.")
        if len(sums) != len(self.drawn):
            raise Wrong(
                f"{self.called(machine)}: expected {counted(len(self.drawn), 'sum')}, one a round, got {len(sums)}."
            )
        return list(sums), left


def majority(answer: Answer, kind: str, case: Case, seed: int) -> Majority:
    """Machines whose gradients take 1 to 2 s, and drawn machines, each of which has a gradient for its round.

    kind: "even"; "uneven": gradients of the last machine take ten times, those of the first a third as long; "same":
    one machine is drawn in all rounds.
    """
    p, n, rounds = case
    rng = stream(Purpose.MANUAL, seed, "machines that are drawn", kind, p, n, rounds)
    slowness = np.ones(p)
    if kind == "uneven":
        slowness[-1], slowness[0] = 10.0, 1 / 3
    gradients = []
    for machine in range(p):
        at = 0.0
        for _ in range(2 * rounds + 2 if slowness[machine] >= 1 else 6 * rounds):
            at += float(slowness[machine]) * (1 + float(rng.integers(1, 2**20)) / 2**20)
            gradients.append(Gradient(machine, at, rng.uniform(-99, 99, n)))
        if machine == 0:
            gradients[1].values[:] = 0.0  # no message is told by its numbers
    gradients.sort(key=lambda gradient: gradient.at)
    drawn, now = [], 0.0
    for _ in range(rounds):
        able = [machine for machine in range(p) if slowness[machine] < 5 or p == 1]
        drawn.append(drawn[0] if drawn and kind == "same" else int(rng.choice(able)))
        now = next(each.at for each in gradients if each.machine == drawn[-1] and each.at > now)
    return Majority(answer, p, n, [each for each in gradients if each.at < now + 4], drawn)


def far_between(answer: Answer, p: int) -> Majority:
    """Two rounds in which messages take time, far less than until the next gradient. Machine 0 is not drawn."""
    drawn = [p - 1, p // 3]
    gradients = [
        Gradient(machine, at, np.array([at])) for machine, at in zip((0, *drawn), (12.0, 25.0, 50.0), strict=True)
    ]
    return Majority(answer, p, 1, gradients, drawn, A_SECOND_A_MESSAGE)


def replay(one: Majority) -> tuple[list[float], list[Array], list[Array]]:
    """The seconds of the rounds, their sums, and what is left on each machine."""
    seconds, sums, now = [], [], 0.0
    for drawn in one.drawn:
        before, now = now, next(each.at for each in one.gradients if each.machine == drawn and each.at > now)
        seconds.append(now)
        sums.append(total(one.n, [each for each in one.gradients if before < each.at <= now]))
    left = [
        total(one.n, [each for each in one.gradients if each.at > now and each.machine == machine])
        for machine in range(one.p)
    ]
    return seconds, sums, left


def total(n: int, gradients: Sequence[Gradient]) -> Array:
    return np.asarray(sum((each.values for each in gradients), start=np.zeros(n)))


def slipped(one: Majority, number: int) -> dict[str, Array]:
    """What known mistakes give as the sum of a round."""
    seconds, sums, _ = replay(one)
    begin, end = seconds[number - 1] if number else 0.0, seconds[number]
    ready = [each for each in one.gradients if begin < each.at <= end]
    newest = list({each.machine: each for each in ready}.values())
    oldest = list({each.machine: each for each in reversed(ready)}.values())
    first = [each for each in one.gradients if each.machine == one.drawn[number] and begin < each.at <= end]
    nth = [[each for each in one.gradients if each.machine == machine] for machine in range(one.p)]
    seen = [each for each in one.gradients if each.at <= end]
    return {
        "These are zeros: no gradient was added.": np.zeros(one.n),
        "Gradients of earlier rounds are in it once more: begin anew with zeros after each round.": total(one.n, seen),
        "A machine may have several gradients that are in no round yet: only the newest one of each is in it.": total(
            one.n, newest
        ),
        "A machine may have several gradients that are in no round yet: only the oldest one of each is in it.": total(
            one.n, oldest
        ),
        "Only the drawn machine's gradients are in it: all that are ready take part.": total(one.n, first),
        "This is an ordinary all-reduce: a gradient of each machine, also of those that were not ready.": total(
            one.n, [own[number] for own in nth if len(own) > number]
        ),
        "This is the mean over the machines, not the sum.": sums[number] / one.p,
        "This is the mean of the gradients in it, not the sum.": sums[number] / max(1, len(ready)),
        "This is the sum of the round before.": sums[number - 1] if number else sums[number] * np.nan,
        "The drawn machine's own gradients are missing.": total(one.n, [e for e in ready if e not in first]),
    }


USED_AGAIN = (
    "All sums of the list hold the same numbers: an array that is used again in each round changes in the list, too."
)


def compare_sums(one: Majority) -> None:
    """Raise Wrong unless each round has the sum of the gradients that are ready when it begins."""
    seconds, sums, _ = replay(one)
    for machine in range(one.p):
        got, _ = one.returned(machine)
        for number, (value, want, at) in enumerate(zip(got, sums, seconds, strict=True)):
            mistakes = {k: v for k, v in slipped(one, number).items() if not np.allclose(v, want)}
            if len(got) > 1 and all(np.array_equal(each, value) for each in got):
                mistakes[USED_AGAIN] = value
            expect.array(
                value, want, f"{one.called(machine)}: the sum of round {number}, which begins at {at:g} s",
                rtol=ROUNDING, atol=ROUNDING, mistakes=mistakes, dtype=np.float64,
            )  # fmt: skip


def compare_conserved(one: Majority) -> None:
    """Raise Wrong unless the sums of all rounds, and what is left, contain each gradient once."""
    want = total(one.n, one.gradients)
    _, right, wanted = replay(one)
    lefts = [
        vector(one.returned(machine)[1], one.n, f"{one.called(machine)}: what is left") for machine in range(one.p)
    ]
    for machine in range(one.p):
        called, rounds = one.called(machine), one.returned(machine)[0]
        sums = sum(
            (vector(each, one.n, f"{called}: the sum of round {number}") for number, each in enumerate(rounds)),
            start=np.zeros(one.n),
        )
        expect.array(
            sums + sum(lefts), want,
            f"{called}: its sums together, and what is left on all machines, against the sum of all "
            f"{len(one.gradients)} gradients",
            rtol=ROUNDING, atol=ROUNDING * len(one.gradients),
            mistakes={
                "After the last round, gradients go on coming: receive until the empty array.": np.sum(right, axis=0)
            },
        )  # fmt: skip
        expect.array(
            lefts[machine], wanted[machine], f"{called}: what is left", rtol=ROUNDING, atol=ROUNDING,
            mistakes={
                "This is what is left on all machines: each returns its own.": np.sum(wanted, axis=0),
                "The gradients of the last round are in it once more.": wanted[machine] + right[-1],
            },
        )  # fmt: skip


def compare_times(one: Majority) -> None:
    """Raise Wrong unless each round begins as soon as the drawn machine is ready, and then waits for nobody."""
    wanted, _, _ = replay(one)
    for machine in range(one.p) if one.p > 1 else ():
        rounds = [
            each for each in one.run.collectives[machine] if each.operation in ("all_reduce", "all_gather")
        ]  # an all-reduce may be a reduce-scatter and an all-gather
        if len(rounds) != len(wanted):
            raise Wrong(
                f"{one.called(machine)}: expected {counted(len(wanted), 'all-reduce')}, one in each round, got "
                f"{len(rounds)}."
            )
        for number, (each, want) in enumerate(zip(rounds, wanted, strict=True)):
            if abs(each.ended - want) > A_MOMENT:
                raise Wrong(
                    f"{one.called(machine)}: expected the sum of round {number} at {want:g} s, when machine "
                    f"{one.drawn[number]} has a gradient that is in no round; it was there at {each.ended:g} s.",
                    why_time(one, number, each.ended),
                )


def why_time(one: Majority, number: int, at: float) -> str:
    """The likely cause of a round at another time."""
    seconds, _, _ = replay(one)
    begin = seconds[number - 1] if number else 0.0
    if at < seconds[number]:
        return f"Machine {one.drawn[number]} had nothing to add yet. It is drawn, so the round waits for it."
    firsts = [
        next((each.at for each in one.gradients if each.machine == machine and each.at > begin), np.inf)
        for machine in range(one.p)
    ]
    if any(abs(at - first) < A_MOMENT for first in firsts):
        late = next(machine for machine, first in enumerate(firsts) if abs(at - first) < A_MOMENT)
        return f"The round has waited for machine {late}, which was not ready: such a machine adds zeros."
    return "A machine that waits for its own gradient cannot see that the round has begun: wait for both messages."


def compare_activation(one: Majority) -> None:
    """Raise Wrong unless every machine is activated within 3 ceil(lg p) messages, one after the other."""
    compare_sums(one)
    most = 3 * (one.p - 1).bit_length()
    for number, ready in enumerate(replay(one)[0]):
        came = ready + 1
        begun = [made[number].begun - came if len(made) > number else np.inf for made in one.run.collectives[: one.p]]
        last = int(np.argmax(begun))
        expect.true(
            begun[last] <= most + A_MOMENT,
            f"{one.called(last)}, a message takes a second: expected this machine in the all-reduce of round {number} "
            f"within {most} s after machine {one.drawn[number]} had its gradient, got {begun[last]:g} s.",
            "In a tree, all machines that are active activate others at once; in a chain each waits for one.",
        )


def compare_messages(one: Majority) -> None:
    """Raise Wrong unless a round has one all-reduce of n words, and at most ceil(lg p) empty messages of a machine."""
    rounds, most = len(one.drawn), (one.p - 1).bit_length()
    for machine in range(one.p):
        called = one.called(machine)
        activations = sum(one.run.traffic[machine].get(name, (0, 0))[0] for name in ("send", "isend", "sendrecv"))
        nbytes = sum(one.run.traffic[machine].get(name, (0, 0))[1] for name in ("send", "isend", "sendrecv"))
        expect.true(
            nbytes == 0,
            f"{called}: its messages, without the all-reduces, have {nbytes} bytes; expected empty arrays.",
            "A message that activates a machine says all by coming: np.zeros(0).",
        )
        expect.true(
            activations <= rounds * most,
            f"{called}: expected at most {counted(most, 'empty message')} in each of {counted(rounds, 'round')}, got "
            f"{activations}.",
            "No machine activates all others: along the tree, those that are active activate further ones.",
        )
        if one.p > 1:
            count, names = all_reduces(one.run, machine)
            others = [name for name in names if name not in ("send", "isend", "recv", "irecv", "sendrecv")]
            if others:
                raise Wrong(
                    f"{called}: expected an all-reduce in each round, and no comm.{others[0]}.",
                    WHY_NOT.get(others[0], ""),
                )
            expect.true(
                count == rounds,
                f"{called}: expected {counted(rounds, 'all-reduce')}, one in each round, got {count}.",
            )
    sent = sum(one.run.nbytes[: one.p]) / 8
    limit = rounds * words_sent(one.p, one.n)
    expect.true(
        one.p == 1 or sent <= limit,
        f"{one.called(0)}: expected {counted(rounds, 'all-reduce')} of {counted(one.n, 'word')}, at most "
        f"{counted(limit, 'word')} sent by all machines; got {sent:g}.",
        "What is added up are the gradients, n words.",
    )
    compare_sums(one)
