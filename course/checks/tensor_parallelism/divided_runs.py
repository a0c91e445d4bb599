"""An answer's run on p ranks: the returned arrays, compared with those of one node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.judging.ranks.rank_run import RankRun

Array = NDArray[Any]
Named = dict[str, Any]

ROUNDING = 1e-10


@dataclass(frozen=True)
class Rank:
    """The arguments of one rank, and its right results.

    Attributes
        given      the arguments, by name
        wanted     the right results, by name
        mistakes   for each result, by name: the values that known mistakes give, by the sentence that explains each
    """

    given: Named
    wanted: Named
    mistakes: Mapping[str, Named]


@dataclass
class Divided:
    """A run of an answer on ranks, made when it is first used; if it raises, it is made again at the next use."""

    answer: Answer
    sizes: str
    ranks: list[Rank]

    @cached_property
    def run(self) -> RankRun:
        return self.answer.on_ranks([tuple(rank.given.values()) for rank in self.ranks])

    @property
    def p(self) -> int:
        return len(self.ranks)

    def called(self, rank: int) -> str:
        return f"{self.answer.name} on rank {rank} of {self.p}, {self.sizes}"

    def returned(self, rank: int) -> Named:
        """The results of a rank, by name."""
        names, got = list(self.ranks[rank].wanted), self.run.results[rank]
        if len(names) == 1:
            return {names[0]: got}
        if not isinstance(got, (tuple, list)) or len(got) != len(names):
            length = f" of {len(got)}" if isinstance(got, (tuple, list)) else ""
            raise Wrong(
                f"{self.called(rank)}: expected ({', '.join(names)}), got "
                f"{f'a {type(got).__name__}{length}' if length else expect.shown(got)}.",
                expect.not_a_value(got),
            )
        return dict(zip(names, got, strict=True))


def compare(one: Divided, names: Iterable[str]) -> None:
    """Raise Wrong unless each rank returned the right values of the results with these names."""
    for name in names:
        for number, rank in enumerate(one.ranks):
            want = rank.wanted[name]
            scale = ROUNDING * (1 + float(np.max(np.abs(want), initial=0.0)))
            slips = {
                sentence: value
                for sentence, value in rank.mistakes.get(name, {}).items()
                if np.shape(value) != np.shape(want) or not np.allclose(value, want)
            }
            called, got = f"{one.called(number)}: {name}", one.returned(number)[name]
            if isinstance(want, float):
                if isinstance(got, np.ndarray) and got.shape == (1,):
                    raise Wrong(f"{called}: expected a number, got an array of one element.")
                expect.number(got, want, called, rtol=0.0, atol=scale, mistakes=slips)
            else:
                expect.array(got, want, called, rtol=0.0, atol=scale, mistakes=slips, dtype=np.float64)


def compare_runs(
    run: Callable[[Any], Divided], cases: Iterable[Sequence[int]], *comparisons: Callable[[Divided], None]
) -> None:
    """Make each comparison with the run of each case."""
    for case in cases:
        for comparison in comparisons:
            comparison(run(tuple(case)))


def returned(*names: str) -> Callable[[Divided], None]:
    """The comparison of the results with these names."""
    return partial(compare, names=names)


def shards(n: int, p: int) -> list[slice]:
    """Consecutive shards of n indices for p ranks, as np.array_split makes them."""
    ends = [sum(len(part) for part in np.array_split(range(n), p)[: rank + 1]) for rank in range(p)]
    return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def uneven_shards(n: int, p: int, seed: int) -> list[slice]:
    """Consecutive shards of n indices for p ranks, each of at least one index, of random sizes."""
    inner = np.sort(np.random.default_rng((seed, n, p)).permutation(np.arange(1, n))[: p - 1])
    edges = [0, *(int(edge) for edge in inner), n]
    return [slice(start, end) for start, end in pairwise(edges)]
