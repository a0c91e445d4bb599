"""Filters of three weights by Winograd's F(2, 3): the right outputs, and the multiplications that an answer makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.plural import counted
from course.probes.operators import filtered_counted
from minidl.random import Purpose, stream

Array = NDArray[Any]

Signal = tuple[list[float], list[float]]
"""(x, w)"""

MOST_OF_FILTER = 4


def signal(n: int, seed: int, size: float = 1.0) -> Signal:
    """n numbers and three weights of about this size."""
    rng = stream(Purpose.MANUAL, seed, "signal", n)
    return [float(each) for each in size * rng.normal(size=n)], [float(each) for each in rng.normal(size=3)]


def filtered(x: Sequence[float], w: Sequence[float]) -> Array:
    """The oracle: y[i] = w[0] x[i] + w[1] x[i + 1] + w[2] x[i + 2]."""
    return np.array([sum(w[k] * x[i + k] for k in range(3)) for i in range(len(x) - 2)])


def by_tiles(x: Sequence[float], w: Sequence[float], change: str) -> Array:
    """The outputs of F(2, 3) with a known mistake, for an even number of outputs."""
    d = np.array([x[i : i + 4] for i in range(0, len(x) - 2, 2)]).T
    half = 1.0 if change == "no halves" else 0.5
    m1 = (d[0] - d[2]) * w[0]
    m2 = (d[1] + d[2]) * (w[0] + w[1] + w[2]) * half
    m3 = (d[2] - d[1]) * (w[0] - w[1] + w[2]) * half
    m4 = (d[3] - d[1] if change == "m4" else d[1] - d[3]) * w[2]
    first, second = m1 + m2 + m3, m2 + m3 - m4 if change == "m3" else m2 - m3 - m4
    return np.array([second, first] if change == "order" else [first, second]).T.ravel()


def mistakes_of(x: Sequence[float], w: Sequence[float]) -> dict[str, Any]:
    """Known mistakes, by the sentence that explains each."""
    known: dict[str, Any] = {"The filter was turned round: here w[0] meets x[i].": filtered(x, w[::-1])}
    if len(x) > 3:
        known["A last output that is left over has no tile of its own; it is missing here."] = filtered(x, w)[
            : (len(x) - 2) // 2 * 2
        ]
    if len(x) > 3 and len(x) % 2 == 0:
        known |= {
            "The transformed weights 1 and 2 have a factor 1 / 2.": by_tiles(x, w, "no halves"),
            "The fourth product is (x[1] - x[3]) w[2], and is subtracted.": by_tiles(x, w, "m4"),
            "The third product is subtracted in the second output.": by_tiles(x, w, "m3"),
            "The two outputs of each tile are interchanged.": by_tiles(x, w, "order"),
        }
    return known


def compare(got: Any, x: Sequence[float], w: Sequence[float], called: str) -> None:
    """Raise Wrong unless `got` has the outputs, up to the rounding of sums of products."""
    want = filtered(x, w)
    atol = 1e-13 * float(np.max(np.abs(x), initial=0.0) * np.sum(np.abs(w)))
    got = expect.listed(got.tolist() if isinstance(got, np.ndarray) else got, called, "a list of numbers")
    strange = [expect.shown(each) for each in got if not isinstance(each, int | float | np.number)]
    if strange:
        raise Wrong(f"{called}: expected a list of numbers, got {strange[0]} among them.")
    got = np.array(got, float)
    expect.array(got, want, called, rtol=0.0, atol=atol, mistakes=mistakes_of(x, w))


def called(x: Sequence[float]) -> str:
    return f"winograd of {counted(len(x), 'number')}"


def judge_outputs(answer: Answer, x: list[float], w: list[float]) -> None:
    """Raise Wrong unless the answer's outputs are right."""
    compare(answer(list(x), list(w)), x, w, called(x))


def most(n: int) -> int:
    """Multiplications of numbers from x that an answer may make."""
    return 4 * (max(0, n - 1) // 2)


def run(answer: Answer, x: list[float], w: list[float]) -> dict[str, int]:
    """The multiplications with and without x; raises Wrong unless the outputs are right."""
    seen = answer.run(filtered_counted, x, w)
    if not isinstance(seen, dict) or not all(isinstance(seen.get(name), int) for name in ("with_x", "without_x")):
        raise Wrong(f"{called(x)}: its multiplications cannot be seen.")
    compare(seen["y"], x, w, called(x))
    return seen


def compare_products(x: Sequence[float], seen: dict[str, int]) -> None:
    """Raise Wrong if the outputs took more than 4 multiplications for two, or fewer than is possible."""
    got, outputs = seen["with_x"], len(x) - 2
    if outputs > 0 and got < len(x):
        raise Wrong(
            f"{called(x)}: {counted(got, 'multiplication')} counted, which cannot be: {outputs} outputs need {len(x)}.",
            "Multiply the numbers of x as they are given; converted to another type, they do not count.",
        )
    cause = "A sum such as x[1] + x[2] is multiplied once, by a transformed weight."
    if got == 3 * outputs:
        cause = (
            "These are as many as the direct sum needs, three for each output. A product that is halved counts twice."
        )
    elif got == 8 * (outputs // 2) + 3 * (outputs % 2):
        cause = "The outputs of a tile share its four products."
    expect.true(
        got <= most(len(x)),
        f"{called(x)}: expected at most {counted(most(len(x)), 'multiplication')} or divisions of numbers that depend "
        f"on x for {counted(outputs, 'output')}, got {got}.",
        cause,
    )


def compare_transformation(x: Sequence[float], seen: dict[str, int]) -> None:
    """Raise Wrong if the filter was transformed more than once."""
    expect.true(
        seen["without_x"] <= MOST_OF_FILTER,
        f"{called(x)}: expected at most {MOST_OF_FILTER} multiplications or divisions without a number from x, "
        f"got {seen['without_x']}.",
        "The weights are the same for all tiles: transform them once, before the loop.",
    )
