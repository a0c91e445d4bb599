"""Groups: split and mesh; what holds for all ranks holds within a group, and groups do not disturb each other."""

from __future__ import annotations

import numpy as np

from minidl import cluster
from minidl.cluster import Communicator
from tests.cluster.conformance import cases_collectives
from tests.cluster.conformance.cases_all_reduce import ALGORITHMS, check
from tests.cluster.conformance.registry import case


@case()
def split_numbers_the_ranks_of_each_color_by_key(comm: Communicator) -> tuple[int, int, list[int]]:
    group = comm.split(comm.rank % 2, key=-comm.rank)
    assert group is not None
    members = sorted((rank for rank in range(comm.size) if rank % 2 == comm.rank % 2), reverse=True)
    assert group.size == len(members)
    assert [group.world_rank(rank) for rank in range(group.size)] == members
    assert members[group.rank] == comm.rank
    same_keys = comm.split(0)
    assert same_keys is not None
    assert same_keys.rank == comm.rank
    return group.rank, group.size, members


@case()
def a_rank_without_a_color_is_in_no_group(comm: Communicator) -> None:
    group = comm.split(None if comm.rank == 0 else 7)
    if comm.rank == 0:
        assert group is None
    else:
        assert group is not None
        assert group.all_reduce(1) == comm.size - 1


@case()
def every_collective_within_groups(comm: Communicator) -> None:
    group = comm.split(comm.rank % 2, key=-comm.rank)
    assert group is not None
    for collective in cases_collectives.EVERY:
        collective(group)


@case()
def every_algorithm_within_groups(comm: Communicator) -> None:
    group = comm.split(comm.rank // 3)
    assert group is not None
    for algorithm in ALGORITHMS:
        check(group, 37, "float64", "sum", algorithm)
    check(group, 20_001, "float32", "mean", "auto")


@case(at_most=6)
def collectives_beside_the_program_within_groups(comm: Communicator) -> None:
    group = comm.split(comm.rank % 2)
    assert group is not None
    for collective in cases_collectives.EVERY:
        collective(group, async_op=True)
    for algorithm in ALGORITHMS:
        check(group, 500, "float64", "sum", algorithm, async_op=True)


@case()
def several_groups_of_the_same_ranks_do_not_mix(comm: Communicator) -> None:
    groups = [comm, comm.split(0), comm.split(1, key=-comm.rank), comm.split(0)]
    works = []
    for number, group in enumerate(groups):
        assert group is not None
        works.append((group, group.all_reduce(np.full(100, 10.0**number), async_op=True)))
    for number, (group, work) in reversed(list(enumerate(works))):
        assert (work.wait() == group.size * 10.0**number).all()
    for number, (group, _) in enumerate(works):
        group.send(number, (group.rank + 1) % group.size)
    for number, (group, _) in reversed(list(enumerate(works))):
        assert group.recv((group.rank - 1) % group.size) == number


@case(at_least=2)
def messages_within_a_group_are_addressed_by_its_ranks(comm: Communicator) -> None:
    group = comm.split(comm.rank % 2, key=-comm.rank)
    assert group is not None
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    assert group.sendrecv(comm.rank, right, left) == group.world_rank(left)
    assert group.last_source == left
    if group.rank == 0:
        sources = set()
        for _ in range(1, group.size):
            assert group.recv(cluster.ANY, tag=2) == group.world_rank(group.last_source)
            sources.add(group.last_source)
        assert sources == set(range(1, group.size))
    else:
        group.send(comm.rank, 0, tag=2)


@case(at_least=4)
def a_group_can_be_split_again(comm: Communicator) -> tuple[int, list[int]]:
    half = comm.split(comm.rank < comm.size // 2)
    assert half is not None
    quarter = half.split(half.rank % 2)
    assert quarter is not None
    ranks = quarter.all_gather(comm.rank)
    assert ranks == [quarter.world_rank(rank) for rank in range(quarter.size)]
    assert all((rank < comm.size // 2) == (comm.rank < comm.size // 2) for rank in ranks)
    assert comm.all_reduce(1) == comm.size
    return quarter.rank, ranks
