"""why: what decides about the best arrangement, in three sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from minidl.parallel.planner.costs import PlannedModel
from minidl.parallel.planner.machine import Machine
from minidl.parallel.planner.search import FURTHEST, Planned
from minidl.parallel.planner.step_time import step_time, utilisation
from minidl.plots.style import bytes_text

TRIED = 300
"""The fastest of these are looked at again on a better machine."""

NAMES = {
    "products": "products of matrices",
    "elementwise": "other reading and writing of memory",
    "tensor": "messages along tp",
    "experts": "messages along ep",
    "pipeline": "messages along pp",
    "bubble": "the pipeline's bubble",
    "data": "messages along dp that nothing hides",
    "optimizer": "the update",
}


def why(model: PlannedModel, machine: Machine, plans: Sequence[Planned]) -> list[str]:
    """Three sentences: where the time of the best arrangement goes, which limit binds, and what would help.

    Parameters
        plans  what `search` has returned

    >>> from minidl.parallel.planner import MACHINES, Transformer, search
    >>> gpt = Transformer(layers=24, width=2304, heads=24, context=2048)
    >>> for sentence in why(gpt, MACHINES["a100x8"], search(gpt, MACHINES["a100x8"], batch=64)):
    ...     print(sentence.split(":")[0])
    dp=8,shard=3
    Memory does not bind
    A step would take less
    """
    best = plans[0]
    seconds, shares = best.seconds, best.time.shares
    where = ", ".join(f"{share:.0%} {NAMES[name]}" for name, share in shares.items() if share >= 0.01)
    mfu = utilisation(model, best.arrangement, machine, seconds)
    return [
        f"{best.arrangement}: {seconds:.4g} s a step, {mfu:.0%} of the peak ({where}).",
        limit(machine, plans),
        _help(model, machine, plans),
    ]


def limit(machine: Machine, plans: Sequence[Planned]) -> str:
    """What binds: the memory, if a faster arrangement needs more than there is."""
    best, size = plans[0], bytes_text(machine.memory)
    faster = min((each for each in plans if not each.fits), key=lambda each: each.seconds, default=None)
    if faster is not None and faster.seconds < best.seconds:
        return (
            f"Memory binds: {faster.arrangement} would take {1 - faster.seconds / best.seconds:.1%} less, but needs "
            f"{bytes_text(faster.memory.total)} of {size}."
        )
    return (
        f"Memory does not bind: the fullest accelerator holds {bytes_text(best.memory.total)} of {size}, and no plan "
        f"that needs at most {FURTHEST} times as much is faster."
    )


def _help(model: PlannedModel, machine: Machine, plans: Sequence[Planned]) -> str:
    """How much faster the best arrangement on a machine would be that has twice of one thing."""
    best, fitting = plans[0].seconds, [each for each in plans if each.fits][:TRIED]
    gains = {}
    for name, text in (("between", "between nodes"), ("inside", "within a node")):
        better = replace(machine, **{name: 2 * getattr(machine, name)})
        gains[f"twice the rate {text}"] = min(step_time(model, each.arrangement, better).total for each in fitting)
    roomy = [each.seconds for each in plans if each.memory.total <= 2 * machine.memory]
    gains["twice the memory"] = min(roomy)
    said = ", ".join(f"{1 - seconds / best:.1%} with {what}" for what, seconds in gains.items())
    return f"A step would take less: {said}."
