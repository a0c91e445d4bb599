"""Stores whose shards log their commands, the direction of L-BFGS on one node, and what known mistakes give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.plural import counted
from course.probes.faults_and_batch_methods import Remote, Shard
from minidl.random import Purpose, stream

Array = NDArray[Any]

Case = tuple[tuple[int, ...], str]
"""(elements of each shard, a sign for each pair, the oldest first: s·y is positive, negative or, for o, zero)"""

COMMANDS = ("dot", "axpy", "scale", "copy", "get", "put")


def two_loops(
    g: Array,
    pairs: Sequence[tuple[Array, Array]],
    *,
    gamma: str = "newest",
    second: int = 1,
    sign: float = 1.0,
    swapped: bool = False,
    again: bool = False,
) -> Array:
    """The oracle: minus the inverse Hessian's estimate times g (Nocedal & Wright, algorithm 7.4); options: mistakes.

    gamma: the scaling between the loops. second: the order of the second loop, -1 for that of the first one. sign: of
    beta. swapped: beta is s·d, not y·d. again: the first loop computes each alpha from g.
    """
    d, alphas = g.copy(), [0.0] * len(pairs)
    for i in reversed(range(len(pairs))):
        s, y = pairs[i]
        alphas[i] = (s @ (g if again else d)) / (s @ y)
        d -= alphas[i] * y
    if pairs and gamma != "none":
        s, y = pairs[0 if gamma == "oldest" else -1]
        d *= {"inverted": (y @ y) / (s @ y), "other": (s @ s) / (s @ y)}.get(gamma, (s @ y) / (y @ y))
    for i in range(len(pairs))[::second]:
        s, y = pairs[i]
        beta = ((s if swapped else y) @ d) / (s @ y)
        d += (alphas[i] - sign * beta) * s
    return -d


class Stored:
    """A run of an answer on a store, and what is right."""

    def __init__(self, answer: Answer, case: Case, seed: int) -> None:
        self.sizes, signs = case
        rng = stream(Purpose.MANUAL, seed, "history", *self.sizes, signs)
        n, self.m = sum(self.sizes), len(signs)
        self.vectors = {"g": rng.normal(size=n), "d": rng.normal(size=n)}
        basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
        hessian = basis * np.exp(rng.uniform(-1, 1, n)) @ basis.T
        for i, sign in enumerate(signs):
            s = rng.normal(size=n)
            y = hessian @ s
            if sign == "o":  # each element is zero in one of the two
                s[::2], y[1::2] = 0.0, 0.0
            self.vectors |= {f"s{i}": s, f"y{i}": -y if sign == "-" else y}
        self.used = [i for i, sign in enumerate(signs) if sign == "+"]
        self.called = f"lbfgs_direction(shards, {self.m}), shards of {', '.join(map(str, self.sizes))} elements"
        if len(self.used) < self.m:
            self.called += f", s·y <= 0 in {', '.join(f'pair {i}' for i in range(self.m) if i not in self.used)}"
        self.log: list[list[str]] = [[] for _ in self.sizes]
        self.shards = [Shard(**{name: of[k] for name, of in self._cut().items()}) for k in range(len(self.sizes))]
        answer([Remote(**self._methods(answer, k)) for k in range(len(self.sizes))], self.m)

    def _cut(self) -> dict[str, list[Array]]:
        return {name: np.split(of, np.cumsum(self.sizes)[:-1]) for name, of in self.vectors.items()}

    def _methods(self, answer: Answer, k: int) -> dict[str, Any]:
        def logged(name: str) -> Any:
            def command(*arguments: Any) -> Any:
                self.log[k].append(name)
                return getattr(self.shards[k], name)(*arguments)

            return answer.offered(command, name)

        return {name: logged(name) for name in COMMANDS}

    @cached_property
    def mistakes(self) -> dict[str, Array]:
        """Directions that known mistakes give; equal ones to the right one are left out."""
        g, everything = self.vectors["g"], [(self.vectors[f"s{i}"], self.vectors[f"y{i}"]) for i in range(self.m)]
        pairs = [everything[i] for i in self.used]
        begins = np.concatenate([np.arange(n) == 0 for n in self.sizes if n])
        first = np.cumsum(begins) == 1
        with np.errstate(all="ignore"):
            found = {
                "The direction goes down: d = -H g.": -self.right,
                "This is the steepest descent: the pairs were not used.": -g,
                "d begins as a copy of g; what was in d before does not count.": two_loops(self.vectors["d"], pairs),
                "Between the loops, d is multiplied by s·y / y·y of the newest pair.": two_loops(
                    g, pairs, gamma="none"
                ),
                "Between the loops: s·y / y·y of the newest pair, not of the oldest.": two_loops(
                    g, pairs, gamma="oldest"
                ),
                "Between the loops: s·y / y·y, not y·y / s·y.": two_loops(g, pairs, gamma="inverted"),
                "Between the loops: s·y / y·y, not s·s / s·y.": two_loops(g, pairs, gamma="other"),
                "The first loop goes from the newest pair to the oldest, the second one back.": two_loops(
                    g, pairs, second=-1
                ),
                "The first loop begins with the newest pair, the second one with the oldest.": two_loops(
                    g, pairs[::-1]
                ),
                "Second loop: d += (alpha - beta) s.": two_loops(g, pairs, sign=-1.0),
                "Second loop: beta = y·d / s·y, with y.": two_loops(g, pairs, swapped=True),
                "Each alpha is computed from d as it is then, not from g.": two_loops(g, pairs, again=True),
                "A pair with s·y <= 0 is left out.": two_loops(g, [(s, y) for s, y in everything if s @ y]),
                "Left out is only a pair with s·y <= 0, not all older ones, too.": two_loops(g, self._newest()),
                "A dot product is the sum of what all shards return.": two_loops(
                    g, [(np.where(first, s, 0.0), y) for s, y in pairs]
                ),
            }
        return {text: d for text, d in found.items() if not np.allclose(d, self.right, rtol=1e-6)}

    def _newest(self) -> list[tuple[Array, Array]]:
        """The pairs behind the last one that is left out."""
        out = max((i for i in range(self.m) if i not in self.used), default=-1)
        return [(self.vectors[f"s{i}"], self.vectors[f"y{i}"]) for i in self.used if i > out]

    @cached_property
    def right(self) -> Array:
        return two_loops(self.vectors["g"], [(self.vectors[f"s{i}"], self.vectors[f"y{i}"]) for i in self.used])

    @cached_property
    def got(self) -> Array:
        """What the store has as d after the call."""
        return np.concatenate([shard.vectors["d"] for shard in self.shards])

    def gives(self, d: Array) -> bool:
        """Whether the answer gave this direction, to 1e-10 of its largest element."""
        return expect.close(self.got, d, 0.0, 1e-10 * float(np.abs(d).max()))

    def compare_commands(self) -> None:
        """Raise Wrong unless only scalars went over the network, in few commands, and nothing but d was changed."""
        for name, of in self._cut().items():
            for k, shard in enumerate(self.shards):
                if name != "d" and shard.vectors[name].tobytes() != of[k].tobytes():
                    raise Wrong(
                        f"{self.called}: {name} was changed on shard {k}.",
                        "axpy(a, x, y) writes into y, and scale(a, x) into x: work on d.",
                    )
        most = self.m + 4 * len(self.used) + 5
        for k, log in enumerate(self.log):
            count = Counter(log)
            for name in ("get", "put"):
                expect.true(
                    not count[name],
                    f"{self.called}: {name} sent a vector of {self.sizes[k]} elements to or from shard {k}.",
                    "Vectors stay in the store: dot, axpy, scale and copy are all that is needed.",
                )
            expect.true(
                len(log) <= most,
                f"{self.called}: shard {k} got {counted(len(log), 'command')} "
                f"({', '.join(f'{number} {name}' for name, number in count.items())}), expected at most "
                f"m + 4 k + 5 = {most}.",
                "Keep each s·y of the first loop for the second one."
                if count["dot"] > self.m + 2 * len(self.used) + 1
                else "Two axpy for each pair that is used."
                if count["axpy"] > 2 * len(self.used)
                else "Only s·y of each pair and four commands for each pair that is used grow with the history.",
            )


def compare_directions(group: Sequence[Stored]) -> None:
    """Raise Wrong unless d is the direction in all runs. A mistake is named if it explains every run of the group."""
    for one in group:
        mistakes = {
            sentence: d
            for sentence, d in one.mistakes.items()
            if all(other.gives(other.mistakes.get(sentence, other.right)) for other in group)
            or all(other.gives(other.right) for other in group)
        }
        atol = 1e-10 * float(np.abs(one.right).max())
        expect.array(one.got, one.right, f"{one.called}: d", rtol=0.0, atol=atol, mistakes=mistakes)
