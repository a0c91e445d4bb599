"""New arguments for a hidden test, of the same kind as the old ones.

A case is worth testing because of how its numbers relate: no element, a single rank, p not a power of two, n not
divisible by p, more ranks than elements, a message too long to be sent at once. New numbers are drawn that keep

- 0, 1 and 2 (limits), strings, truth values and None;
- the order of the numbers, and which are equal;
- which is a power of two, and which divides which (and whether 8, the bytes of a number, divides the quotient);
- the magnitude: 0.6 to 1.5 times. From 1000 on, where numbers are bytes, at most a quarter more, and the quotient by a
  smaller number does not decrease;
- fractions: 0.5 to 2 times. Between 0.5 and 1 the distance from 1 is scaled instead.

A list is a list of cases unless it contains only numbers; a tuple is one case. An argument whose name begins with
"seed" is a seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

LIMITS = (0, 1, 2)
MOST_CANDIDATES = 6000
MOST_STEPS = 20_000
TRIES = 20


def drawn(name: str, value: Any, rng: np.random.Generator) -> Any:
    """A new value of the argument `name`, of the same kind as `value`.

    >>> drawn("sizes", [(1, 2), (7, 0), (13, 9)], np.random.default_rng(0))
    [(1, 2), (9, 0), (11, 10)]
    """
    if name.startswith("seed"):
        return seeds(value, rng)
    if not isinstance(value, list) or not any(isinstance(item, list | tuple) for item in value):
        return drawn_case(value, rng)
    new: list[Any] = []
    for case in value:
        for _ in range(TRIES):
            other = drawn_case(case, rng)
            if other not in new and other != case:
                break
        else:  # no further case was drawn
            other = case if case not in new else other
        new.append(other)
    return new


def seeds(value: Any, rng: np.random.Generator) -> Any:
    """New seeds, as many as before."""
    if isinstance(value, list | tuple):
        return type(value)(int(seed) for seed in rng.choice(900_000, len(value), replace=False) + 1000)
    return int(rng.integers(1000, 901_000))


def drawn_case(case: Any, rng: np.random.Generator) -> Any:
    """The case with new numbers; the same case if none are found."""
    numbers = list(numbers_in(case))
    found = solved(numbers, rng)
    return put_back(case, iter(found))


def numbers_in(case: Any) -> Iterator[float]:
    """The numbers in tuples and lists, in order."""
    if isinstance(case, list | tuple):
        for item in case:
            yield from numbers_in(item)
    elif isinstance(case, int | float) and not isinstance(case, bool):
        yield case


def put_back(case: Any, numbers: Iterator[float]) -> Any:
    """The case with its numbers replaced."""
    if isinstance(case, list | tuple):
        return type(case)(put_back(item, numbers) for item in case)
    return next(numbers) if isinstance(case, int | float) and not isinstance(case, bool) else case


def solved(old: Sequence[float], rng: np.random.Generator) -> list[float]:
    """New numbers with the same relations as the old ones, found by backtracking; the old ones if there are none."""
    candidates = [candidates_for(number, rng) for number in old]
    chosen: list[float] = []
    places = [0] * len(old)
    for _ in range(MOST_STEPS):
        place = len(chosen)
        if place == len(old):
            return chosen
        fitting = next(
            (
                index
                for index in range(places[place], len(candidates[place]))
                if all(
                    lies_alike((old[before], old[place]), (chosen[before], candidates[place][index]))
                    for before in range(place)
                )
            ),
            None,
        )
        if fitting is not None:
            places[place] = fitting + 1
            chosen.append(candidates[place][fitting])
        elif place == 0:
            break
        else:
            places[place] = 0
            chosen.pop()
    return list(old)


def candidates_for(number: int | float, rng: np.random.Generator) -> list[float]:
    """The numbers that may replace a number, in random order."""
    if number in LIMITS or number < 0 or not math.isfinite(number):
        return [number]
    if isinstance(number, float):
        return fractions(number, rng)
    if is_power_of_two(number):
        powers = [number // 2, number, number * 2] if number <= 8 else [number // 2, number]
        return [int(power) for power in rng.permutation([power for power in powers if power not in LIMITS])]
    low, high = (number, number * 5 // 4) if number >= 1000 else (max(3, -(-number * 3 // 5)), number * 3 // 2)
    if high - low < MOST_CANDIDATES:
        those = rng.permutation(np.arange(low, high + 1))
    else:
        those = rng.integers(low, high + 1, MOST_CANDIDATES)
    return [int(each) for each in those if not is_power_of_two(int(each))]


def fractions(number: float, rng: np.random.Generator) -> list[float]:
    """Numbers near a fraction, with three digits."""
    if number > 1:
        scaled = number * np.exp(rng.uniform(-math.log(2), math.log(2), 40))
    elif number > 0.5:
        scaled = 1 - (1 - number) * rng.uniform(0.6, 1.5, 40)
    else:
        scaled = number * rng.uniform(0.5, 1.9, 40)
    return [float(f"{each:.3g}") for each in scaled if float(f"{each:.3g}") not in (0.0, 1.0)]


def is_power_of_two(number: float) -> bool:
    """Whether it is 1, 2, 4, 8, ..."""
    return isinstance(number, int) and number > 0 and number & (number - 1) == 0


def lies_alike(old: tuple[float, float], new: tuple[float, float]) -> bool:
    """Whether two new numbers have the same relations as two old ones."""
    if (old[0] < old[1], old[0] == old[1]) != (new[0] < new[1], new[0] == new[1]):
        return False
    if not all(isinstance(number, int) for number in old):
        return True
    small, large = (0, 1) if old[0] <= old[1] else (1, 0)
    if old[small] < 1:
        return True
    if old[large] >= 1000 and new[large] * old[small] < old[large] * new[small]:
        return False
    divides = old[large] % old[small] == 0
    if divides != (new[large] % new[small] == 0):
        return False
    return not divides or (old[large] // old[small] % 8 == 0) == (new[large] // new[small] % 8 == 0)
