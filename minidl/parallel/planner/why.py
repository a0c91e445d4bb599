"""why: what decides about the best arrangement, in three sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from minidl.parallel.planner.costs import PlannedModel
from minidl.parallel.planner.machine import Machine
from minidl.parallel.planner.search import FURTHEST, Planned, search
from minidl.parallel.planner.step_time import utilisation
from minidl.plots.style import bytes_text, seconds_text

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
    A step would take 0.0% less with twice the rate within a node, 0.0% less with twice the memory.
    """
    best = plans[0]
    seconds, shares = best.seconds, best.time.shares
    where = ", ".join(f"{share:.0%} {NAMES[name]}" for name, share in shares.items() if share >= 0.01)
    mfu = utilisation(model, best.arrangement, machine, seconds)
    return [
        f"{best.arrangement}: {seconds_text(seconds)} a step, {mfu:.0%} of the peak ({where}).",
        limit(machine, plans),
        _help(model, machine, best),
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
        f"that needs at most {bytes_text(FURTHEST * machine.memory)} is faster."
    )


def _help(model: PlannedModel, machine: Machine, best: Planned) -> str:
    """How much less time the best arrangement would take on a machine that has twice of one thing."""
    kinds = {"between": "rate between nodes", "inside": "rate within a node", "memory": "memory"}
    of_several = {"between": machine.nodes, "inside": machine.accelerators}
    said = []
    for name, text in kinds.items():
        if of_several.get(name, 2) > 1:
            better = replace(machine, **{name: 2 * getattr(machine, name)})
            seconds = search(model, better, best.arrangement.batch)[0].seconds
            said.append(f"{1 - seconds / best.seconds:.1%} less with twice the {text}")
    return f"A step would take {', '.join(said)}."
