"""Links of a machine against its ranks, gone through one by one, also where groups and nodes do not fit together."""

from __future__ import annotations

from itertools import product

import pytest

from minidl.parallel.planner import Machine

INSIDE, BETWEEN = 7.3e9, 3.1e9


def groups(world: int, stride: int, size: int) -> list[list[int]]:
    """The ranks of each ring."""
    starts = [rank for rank in range(world) if rank // stride % size == 0]
    return [[start + i * stride for i in range(size)] for start in starts]


def divisions(accelerators: int, nodes: int) -> list[tuple[int, int]]:
    """All strides and sizes of rings that cover the ranks."""
    world = accelerators * nodes
    pairs = product(range(1, world + 1), range(2, world + 1))
    return [(stride, size) for stride, size in pairs if world % (stride * size) == 0]


@pytest.mark.parametrize(("accelerators", "nodes"), [(1, 6), (3, 4), (4, 3), (6, 2), (6, 4), (8, 2)])
def test_links_carry_what_leaves_the_busiest_node(accelerators, nodes):
    machine = Machine(accelerators, 1e12, 1e9, 1e12, inside=INSIDE, between=BETWEEN, nodes=nodes)
    for stride, size in divisions(accelerators, nodes):
        rings, exchanges = [0] * nodes, [0] * nodes
        for group in groups(machine.world, stride, size):
            places = [rank // accelerators for rank in group]
            for i, here in enumerate(places):
                rings[here] += places[(i + 1) % size] != here
                exchanges[here] += sum(there != here for there in places)
        for found, leaving in (
            (machine.link(stride, size), max(rings)),
            (machine.exchange(stride, size), max(exchanges) / (size - 1)),
        ):
            latency = machine.between_latency if leaving else machine.inside_latency
            rate = min(INSIDE, BETWEEN / leaving) if leaving else INSIDE
            assert found == (latency, pytest.approx(1 / (0.8 * rate)))


def test_nothing_leaves_a_single_node():
    machine = Machine(6, 1e12, 1e9, 1e12, inside=INSIDE, between=BETWEEN)
    assert machine.link(1, 4) == machine.exchange(1, 4) == (machine.inside_latency, 1 / (0.8 * INSIDE))
