"""search: every arrangement of a model on a machine, with its seconds and its memory, the fastest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product
from math import gcd
from typing import NamedTuple

from minidl.arguments import whole_number
from minidl.parallel.memory.node_memory import NodeMemory
from minidl.parallel.planner.arrangement import RECOMPUTE, Arrangement
from minidl.parallel.planner.costs import PlannedModel
from minidl.parallel.planner.machine import Machine
from minidl.parallel.planner.memory import memory
from minidl.parallel.planner.step_time import StepTime, step_time
from minidl.parallel.tensor.hybrid import AXES
from minidl.plots.style import bytes_text

TIE = 0.05
"""Arrangements whose seconds differ by less than this share are a tie: the formula does not tell them apart."""

MOST_SAMPLES = 32
MOST_CHUNKS = 4
MOST_SHARDS = 8
"""Along "tp", where a node has no more accelerators."""

FURTHEST = 3
"""Arrangements that need more than this multiple of the memory are left out."""

REORDERED = 200
"""The number of the fastest that are given their best order of the axes: of those that fit, and of the others."""


class Planned(NamedTuple):
    """An arrangement, what its step takes, and what its fullest rank holds.

    fits  whether that is at most the memory of an accelerator
    """

    arrangement: Arrangement
    time: StepTime
    memory: NodeMemory
    fits: bool

    @property
    def seconds(self) -> float:
        """Of a step."""
        return self.time.total


def search(model: PlannedModel, machine: Machine, batch: int) -> list[Planned]:
    """Return the arrangements of the model on all accelerators, the fastest first; then those that do not fit.

    Tried are extents of "dp", "pp", "tp" (at most 8, or the accelerators of a node) and "ep"; micro-batches of at most
    32 samples; 1f1b, interleaved (at most 4 chunks a stage) and zero-bubble schedules; recomputation; slices
    of positions; what replicas share out; the orders of the axes, for the fastest ones. What needs more than three
    times the memory is left out. Where nothing fits, the error says how many bytes are missing.

    Parameters
        batch  samples of a minibatch

    Raises
        TypeError, ValueError  batch is no whole number; nothing divides by the number of accelerators; nothing fits

    >>> from minidl.parallel.planner import MACHINES, Transformer
    >>> gpt = Transformer(layers=24, width=2304, heads=24, context=2048)
    >>> plans = search(gpt, MACHINES["a100x8"], batch=64)
    >>> plans[0].seconds <= plans[1].seconds
    True
    """
    batch = whole_number("search: batch", batch, at_least=1)
    found: list[Planned] = []
    least: tuple[int, Arrangement] | None = None
    for arrangement in _arrangements(model, machine, batch):
        holds = memory(model, arrangement)
        if least is None or holds.total < least[0]:
            least = holds.total, arrangement
        if holds.total <= FURTHEST * machine.memory:
            try:
                time = step_time(model, arrangement, machine)
            except ValueError:  # no closed form: zero bubble if weights' gradients take longer than the rest
                continue
            found.append(Planned(arrangement, time, holds, holds.total <= machine.memory))
    if least is None:
        raise ValueError(
            f"no dp, pp and tp whose product is {machine.world}, the number of accelerators, divide a minibatch of "
            f"{batch}, {model.layers} layers and {model.heads} heads: choose a minibatch that is a multiple of "
            f"{machine.world}, or another number of nodes"
        )
    if least[0] > machine.memory:
        need, there, missing = map(bytes_text, (least[0], machine.memory, least[0] - machine.memory))
        raise ValueError(
            f"no arrangement fits: {least[1]} needs least, {need} on the fullest of {machine.world} accelerators, of "
            f"which each has {there}, so {missing} are missing: take more nodes"
        )
    found.sort(key=_order)
    for start in (0, sum(each.fits for each in found)):
        fastest = slice(start, start + REORDERED)
        found[fastest] = [_in_best_order(model, machine, each) for each in found[fastest]]
    return sorted(found, key=_order)


def _order(each: Planned) -> tuple[bool, float, int]:
    return not each.fits, each.seconds, each.memory.total


def _in_best_order(model: PlannedModel, machine: Machine, planned: Planned) -> Planned:
    """The same with the fastest order of the axes; the default one if it is as fast as any."""
    best, seen = planned, set()
    for axes in permutations(AXES):
        made = replace(planned.arrangement, axes=axes)
        inner = tuple(axis for axis in axes if getattr(made, axis) > 1)
        if inner not in seen:
            seen.add(inner)
            time = step_time(model, made, machine)
            best = planned._replace(arrangement=made, time=time) if time.total < best.seconds else best
    return best


def _divisors(number: int, most: int | None = None) -> list[int]:
    return [each for each in range(1, min(number, most or number) + 1) if number % each == 0]


def _arrangements(model: PlannedModel, machine: Machine, batch: int) -> Iterator[Arrangement]:
    """Those that divide the model, in the default order of the axes."""
    world = machine.world
    for tp in _divisors(world, min(model.heads, max(MOST_SHARDS, machine.accelerators))):
        for pp in _divisors(world // tp, model.layers):
            dp = world // tp // pp
            if batch % dp:
                continue
            for ep, micro in product(_divisors(gcd(dp, model.experts)), _divisors(batch // dp, MOST_SAMPLES)):
                base = Arrangement(batch, dp, pp, tp, ep, micro)
                for schedule, chunks in _schedules(base):
                    kinds = RECOMPUTE[:1] if schedule.startswith("zb") else RECOMPUTE
                    for recompute, sequence in product(kinds, (False, True)):
                        made = replace(base, schedule=schedule, chunks=chunks, recompute=recompute, sequence=sequence)
                        try:
                            model.check(made)
                        except ValueError:  # something does not divide, or does nothing
                            continue
                        for shard in range(4) if dp > 1 else (0,):
                            if shard != 2 or base.micro_batches == 1:  # else gradients are whole, as with 1
                                yield replace(made, shard=shard)


def _schedules(base: Arrangement) -> Iterator[tuple[str, int]]:
    """The schedules that the micro-batches suffice for, with their chunks."""
    yield "1f1b", 1
    pp, m = base.pp, base.micro_batches
    if pp > 1 and m % pp == 0:
        yield from (("interleaved", chunks) for chunks in range(2, MOST_CHUNKS + 1))
    if pp > 1 and m >= pp:
        yield "zb-h1", 1
    if pp > 1 and m >= 2 * pp - 1:
        yield "zb-h2", 1
