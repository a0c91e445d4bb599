"""Which rank holds which sums in a collective: after a run (`table`), or step by step as its rounds say.

For a run, every rank's array has one number per chunk that encodes its contributions: bit r means that rank r's number
was added, and the multiple of 256 is the chunk. So each number shows which ranks it is the sum of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy

import numpy as np
import numpy.typing as npt

from minidl.cluster.collectives import rounds
from minidl.plots.chunks import Arrow, Cell, Panel

EXCHANGES = ("ring", "recursive_doubling", "rabenseifner")
LETTERS = "ABCDEFGH"  # names of ranks; there are eight bits below 256
Numbers = npt.NDArray[np.int64]


def coded(rank: int, nodes: int) -> Numbers:
    """A rank's array: one number for each of `nodes` chunks, nodes <= 8.

    >>> coded(1, 2) + coded(0, 2)
    array([  3, 771])
    """
    return np.array([(1 << rank) * (1 + 256 * chunk) for chunk in range(nodes)])


def decoded(number: int) -> tuple[set[int], int]:
    """The ranks whose numbers were summed, and the chunk.

    >>> decoded(771)
    ({0, 1}, 1)
    """
    bits = int(number) % 256
    return {rank for rank in range(8) if bits & 1 << rank}, int(number) // 256 // bits


def table(title: str, rows: Iterable[Iterable[int | None]]) -> Panel:
    """A panel of what each rank holds: coded numbers, or None; each cell also shows its chunk's number."""
    cells = [[Cell("", 0.0) if number is None else _cell(*decoded(number)) for number in row] for row in rows]
    return Panel(title, [[Cell(text, share / len(cells)) for text, share in row] for row in cells])


def step_by_step(algorithm: str, nodes: int = 4) -> list[Panel]:
    """The panels of an all-reduce: before it, and after each step, with an arrow for each received chunk.

    algorithm: one in which every rank exchanges with one other in each step: "ring", or "recursive_doubling" or
    "rabenseifner" with a power of two nodes, at most 8. ValueError for others.
    """
    if algorithm not in EXCHANGES or nodes > 8 or (algorithm != "ring" and nodes & (nodes - 1)):
        raise ValueError(
            f"{algorithm!r} on {nodes} nodes cannot be drawn step by step: choose one of {', '.join(EXCHANGES)}, on at "
            "most 8 nodes, for the latter two 2, 4 or 8"
        )
    bounds, all_rounds = rounds.all_reduce(algorithm, nodes, nodes, itemsize=1)
    state = [[{rank} for _ in range(nodes)] for rank in range(nodes)]
    panels = [Panel("start", _cells(state))]
    for step, (sources, ranks, numbers, _) in enumerate(all_rounds, 1):
        before = deepcopy(state)
        arrows = [
            Arrow(source, rank, chunk)
            for source, rank, number in zip(sources.tolist(), ranks.tolist(), numbers.tolist(), strict=True)
            for chunk in range(*bounds[number])
        ]
        for source, rank, chunk in arrows:
            state[rank][chunk] |= before[source][chunk]
        panels.append(Panel(f"step {step}: {_fraction(len(arrows) // nodes, nodes)} each", _cells(state), arrows))
    return panels


def _cell(ranks: set[int], chunk: int) -> tuple[str, int]:
    return _letters(ranks) + str(chunk), len(ranks)


def _cells(state: Sequence[Sequence[set[int]]]) -> list[list[Cell]]:
    return [[Cell(_letters(ranks), len(ranks) / len(state)) for ranks in row] for row in state]


def _letters(ranks: set[int]) -> str:
    return "".join(LETTERS[rank] for rank in sorted(ranks))


def _fraction(parts: int, of: int) -> str:
    """The fraction parts/of of n in lowest terms: n, n/2, 3n/4."""
    divisor = int(np.gcd(parts, of))
    above, below = parts // divisor, of // divisor
    return ("n" if above == 1 else f"{above}n") + ("" if below == 1 else f"/{below}")
