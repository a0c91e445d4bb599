"""A mesh: groups along every selection of its axes, their numbers, coordinates, and what a mesh costs."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from minidl import cluster
from minidl.cluster import Communicator, Mesh
from minidl.cluster.trace.recording import Traffic
from tests.tiers import exhaustively

NAMES = ("dp", "pp", "spatial", "tp")
ON = cluster.Simulation(network=cluster.Network(1e-5, 1e-9))


def simulated(program: Any, nodes: int, **settings: Any) -> cluster.Run:
    return cluster.launch(program, nodes=nodes, on=ON, **settings)


def factorisations(p: int, axes: int) -> Iterator[tuple[int, ...]]:
    """All shapes of so many axes with p ranks in all."""
    return (shape for shape in itertools.product(range(1, p + 1), repeat=axes) if math.prod(shape) == p)


def selections(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [some for count in range(len(names) + 1) for some in itertools.combinations(names, count)]


def members(shape: tuple[int, ...], rank: int, axes: tuple[int, ...]) -> list[int]:
    """The ranks of a group, read from an array of all ranks."""
    ranks = np.arange(math.prod(shape)).reshape(shape)
    at = np.unravel_index(rank, shape)
    return [int(r) for r in ranks[tuple(slice(None) if axis in axes else at[axis] for axis in range(len(shape)))].flat]


def every_collective(group: Communicator, ranks: list[int], me: int) -> None:
    assert [group.world_rank(rank) for rank in range(group.size)] == ranks
    assert group.rank == ranks.index(me)
    assert group.all_gather(me) == ranks
    assert group.all_reduce(me) == sum(ranks)
    assert group.broadcast(me, src=group.size - 1) == ranks[-1]
    assert group.all_to_all([(me, other) for other in ranks]) == [(other, me) for other in ranks]
    np.testing.assert_array_equal(group.reduce_scatter(np.full(group.size, float(me))), np.full(1, float(sum(ranks))))
    assert group.scatter(ranks if group.rank == 0 else None) == me
    assert group.gather(me) == (ranks if group.rank == 0 else None)
    assert group.reduce(me, op="max") == (max(ranks) if group.rank == 0 else None)
    group.barrier()


def all_selections(comm: Communicator, shape: tuple[int, ...], order: int) -> int:
    """Use the groups of all selections, first one after the other, then at once and in another order on every rank."""
    names = NAMES[: len(shape)]
    mesh = comm.mesh(shape, names)
    everything = selections(names)
    groups = {}
    for index in np.random.default_rng((order, comm.rank)).permutation(len(everything)):  # groups are made in any order
        names_of_it = everything[index]
        groups[names_of_it] = mesh[tuple(reversed(names_of_it))]
    for some in everything:
        ranks = members(shape, comm.rank, tuple(names.index(name) for name in some))
        assert groups[some] is mesh[some]
        every_collective(groups[some], ranks, comm.rank)
    assert all(mesh[name] is groups[name,] for name in names)
    own = [some for some in everything if mesh[some]._calls is not comm._calls]
    works = {}
    for index in np.random.default_rng((order, 1 + comm.rank)).permutation(len(own)):
        works[own[index]] = mesh[own[index]].all_reduce(np.full(5, 1.0 + comm.rank), async_op=True)
    for some, work in works.items():
        ranks = members(shape, comm.rank, tuple(names.index(name) for name in some))
        np.testing.assert_array_equal(work.wait(), np.full(5, float(len(ranks) + sum(ranks))))
    return len({id(group._calls) for group in groups.values()})


@pytest.mark.parametrize(
    ("p", "most"), [(6, 3), *exhaustively((4, 4), (1, 3), (5, 3), (8, 4), (12, 4))], ids=lambda number: f"{number}"
)
def test_every_selection_of_axes_is_a_group_of_its_own_with_every_collective(p: int, most: int) -> None:
    def program(comm: Communicator) -> None:
        for axes in range(1, most + 1):
            for number, shape in enumerate(factorisations(p, axes)):
                all_selections(comm, shape, number)

    simulated(program, p)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("on", ["processes", *exhaustively("mpi")])
def test_a_mesh_on_other_engines_has_the_same_groups(on: str) -> None:
    if on == "mpi":
        pytest.importorskip("mpi4py", exc_type=ImportError)

    def program(comm: Communicator) -> int:
        return all_selections(comm, (2, 1, 3), 0)

    assert cluster.launch(program, nodes=6, on=on, timeout=60).results == [7] * 6  # of 8, two are of all ranks


# Cost


def messages(run: cluster.Run) -> dict[str, int]:
    """The messages of all ranks together, by operation."""
    total: dict[str, int] = {}
    for rank in run.trace.ledger():
        for operation, traffic in rank.items():
            total[operation] = total.get(operation, 0) + traffic.messages
    return total


@pytest.mark.parametrize("shape", [(3, 1, 4, 1), (8, 4, 10)])
def test_a_mesh_costs_one_all_reduce_of_a_number_and_its_groups_nothing(shape: tuple[int, ...]) -> None:
    def program(comm: Communicator) -> None:
        names = NAMES[: len(shape)]
        mesh = comm.mesh(shape, names)
        assert all(mesh[some].size > 0 for some in selections(names))

    p = math.prod(shape)
    run = simulated(program, p)
    tree = simulated(lambda comm: comm.all_reduce(np.array([1]), op="max", algorithm="tree"), p)
    assert messages(run) == {"mesh": 2 * (p - 1)}
    assert run.seconds == tree.seconds


@pytest.mark.parametrize("shape", [(6,), (6, 1, 1, 1), (1, 6, 1)])
def test_a_mesh_with_one_axis_of_several_ranks_is_the_communicator_and_costs_nothing(shape: tuple[int, ...]) -> None:
    def program(comm: Communicator) -> None:
        names = NAMES[: len(shape)]
        mesh = comm.mesh(shape, names)
        for name, extent in zip(names, shape, strict=True):
            assert (mesh[name]._calls is comm._calls) == (extent == 6)
            assert mesh[name].size == extent
        assert mesh[names] is comm

    run = simulated(program, 6)
    assert (messages(run), run.seconds) == ({}, 0.0)
    assert run.trace.events == simulated(lambda comm: None, 6).trace.events


def test_a_split_sends_as_many_bytes_a_message_on_many_ranks_as_on_two() -> None:
    def bytes_of_a_message(p: int) -> float:
        traffic = simulated(lambda comm: comm.split(0).size, p).trace.ledger()[0]["split"]
        return traffic.nbytes / traffic.messages

    assert bytes_of_a_message(300) == bytes_of_a_message(2)


# Numbers of groups: no two with a common rank may have the same


def assert_apart(groups: list[Communicator | None]) -> None:
    """The groups of one rank have different numbers, and messages in one do not reach another.

    groups: in the same order on all ranks; None for a group that this rank is not in.
    """
    mine = {id(group._calls): (place, group) for place, group in enumerate(groups) if group is not None}.values()
    assert len({group._group.number for _, group in mine}) == len(mine)
    works = [group.all_reduce(np.full(3, 1.0 + place), async_op=True) for place, group in mine]
    for (place, group), work in reversed(list(zip(mine, works, strict=True))):
        np.testing.assert_array_equal(work.wait(), np.full(3, group.size * (1.0 + place)))


@st.composite
def steps(draw: st.DrawFn) -> tuple[int, list[Any]]:
    """A number of ranks, and groups to be made: splits of a group, meshes of it, its first ranks; by number."""
    p = draw(st.integers(2, 9))
    kinds = st.tuples(st.sampled_from(["split", "mesh", "first"]), st.integers(0, 10**6), st.integers(0, 10**6))
    return p, draw(st.lists(kinds, min_size=1, max_size=7))


@settings(max_examples=25)
@given(steps())
def test_any_groups_have_numbers_apart_and_do_not_disturb_each_other(planned: tuple[int, list[Any]]) -> None:
    p, todo = planned

    def program(comm: Communicator) -> None:
        groups: list[Communicator | None] = [comm]
        for kind, which, how in todo:
            base = groups[which % len(groups)]
            if base is None:
                groups += [None, None]
                continue
            if kind == "split":
                colors = np.random.default_rng((which, how)).integers(-1, 3, comm.size)
                color = int(colors[comm.rank])
                groups += [base.split(None if color < 0 else color), None]
            elif kind == "first":
                count = 1 + how % base.size
                groups += [base.first_ranks(count) if base.rank < count else None, None]
            else:
                shapes = list(factorisations(base.size, 2))
                mesh = base.mesh(shapes[how % len(shapes)], ("a", "b"))
                groups += [mesh["a"], mesh["b"]]
        assert_apart(groups)

    simulated(program, p)


def test_the_first_ranks_are_a_group_without_a_message_that_the_others_do_not_make() -> None:
    def program(comm: Communicator) -> tuple[int, ...] | None:
        assert comm.first_ranks(comm.size) is comm
        if comm.rank == 4:
            return None
        nodes = comm.first_ranks(4)
        assert nodes is comm.first_ranks(4)
        assert nodes is nodes.first_ranks(4)
        if comm.rank < 2:
            assert nodes.first_ranks(2) is comm.first_ranks(2)
        mesh = nodes.mesh((4, 1), ("dp", "tp"))
        assert mesh["dp"]._calls is nodes._calls
        return nodes.size, mesh["tp"].size

    run = simulated(program, 5)
    assert run.results == [(4, 1)] * 4 + [None]
    assert (messages(run), run.seconds) == ({}, 0.0)


def test_first_ranks_are_refused_to_a_rank_that_is_not_one_of_them() -> None:
    def program(comm: Communicator) -> str:
        for count in (0, comm.rank, comm.size + 1):
            with pytest.raises(ValueError, match=rf"^count must be .*, got {count}: rank {comm.rank} is to be one"):
                comm.first_ranks(count)
        return ""

    simulated(program, 3)


@pytest.mark.parametrize("on", ["simulation", "processes"])
@pytest.mark.timeout(300)
def test_background_work_makes_no_groups_and_uses_those_that_the_program_made(on: str) -> None:
    def program(comm: Communicator) -> int:
        row = comm.mesh((2, 2), ("dp", "tp"))["tp"]

        def work(inside: Communicator) -> int:
            for make in (lambda: inside.split(0), lambda: inside.mesh((2,), ("a",)), lambda: inside.first_ranks(2)):
                with pytest.raises(RuntimeError, match="background work cannot: make it before"):
                    make()
            return int(inside.all_reduce(1 + inside.rank))

        return int(row.background(work).wait())

    assert cluster.launch(program, on=on).results == [3] * 4


def test_numbers_of_groups_that_no_longer_fit_into_a_tag_are_refused() -> None:
    def program(comm: Communicator) -> None:
        comm._owner.take_groups(2**30 - 6, 1)
        comm.mesh((2, 1), ("dp", "tp"))
        with pytest.raises(RuntimeError, match="too many communicators"):
            comm.mesh((2, 1), ("dp", "tp"))

    simulated(program, 2)


# Coordinates


@settings(max_examples=30)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(lambda shape: math.prod(shape) <= 16), st.data())
def test_rank_at_and_coordinates_of_are_inverses(shape: list[int], drawn: st.DataObject) -> None:
    names, p = NAMES[: len(shape)], math.prod(shape)
    some = drawn.draw(st.sets(st.sampled_from(names)))

    def program(comm: Communicator) -> None:
        mesh = comm.mesh(shape, names)
        assert mesh.coordinates == mesh.coordinates_of(comm.rank)
        assert mesh.rank_at() == comm.rank
        for rank in range(p):
            at = mesh.coordinates_of(rank)
            assert tuple(at.values()) == np.unravel_index(rank, shape)
            assert mesh.rank_at(**at) == rank
            partly = {**mesh.coordinates, **{name: at[name] for name in some}}
            assert mesh.rank_at(**{name: at[name] for name in some}) == np.ravel_multi_index(
                tuple(partly.values()), shape
            )

    simulated(program, p)


def of_rank_4(check: Any) -> None:
    """Call `check(mesh)` on rank 4 of a mesh of 2 by 3."""

    def program(comm: Communicator) -> None:
        mesh = comm.mesh((2, 3), ("dp", "tp"))
        if comm.rank == 4:
            check(mesh)

    simulated(program, 6)


def test_a_mesh_says_what_it_is() -> None:
    def check(mesh: Mesh[Communicator]) -> None:
        assert (mesh.shape, mesh.names, mesh.comm.size) == ((2, 3), ("dp", "tp"), 6)
        assert (list(mesh), len(mesh), "tp" in mesh, "pp" in mesh) == (["dp", "tp"], 2, True, False)
        assert repr(mesh) == "<Mesh: dp 1 of 2, tp 1 of 3>"
        assert mesh.ranks_along(("tp",)) == [3, 4, 5]

    of_rank_4(check)


WRONG = [
    (lambda mesh: mesh.rank_at(dp=2), ValueError, "^dp must be .*, got 2: <Mesh: .*> has ranks 0 to 1 along it$"),
    (lambda mesh: mesh.rank_at(tp=-1), ValueError, "^tp must be .*, got -1: "),
    (lambda mesh: mesh.rank_at(tp=1.0), TypeError, "^tp must be a whole number"),
    (lambda mesh: mesh.rank_at(pp=0), ValueError, "^this mesh has no axis 'pp': choose one of dp, tp$"),
    (lambda mesh: mesh.coordinates_of(6), ValueError, "^rank must be .*, got 6"),
    (lambda mesh: mesh["dp", "pp"], KeyError, "this mesh has no axis 'pp': choose one of dp, tp"),
    (lambda mesh: mesh["dp", "dp"], KeyError, r"each axis of a mesh is named once, got \('dp', 'dp'\)"),
]


def test_what_a_mesh_does_not_have_is_refused() -> None:
    def check(mesh: Mesh[Communicator]) -> None:
        for wrong, error, text in WRONG:
            with pytest.raises(error, match=text):
                wrong(mesh)

    of_rank_4(check)


# Wrong programs, and ranks that die


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (lambda comm: comm.mesh((4, 1), ("dp", "tp")), r"mesh\(shape=\(4, 1\), axes=\('dp', 'tp'\)\)"),
        (lambda comm: comm.mesh((2, 2), ("dp", "tp")), r"mesh\(shape=\(2, 2\), axes=\('dp', 'tp'\)\)"),
        (lambda comm: comm.mesh((1, 4), ("pp", "tp")), r"mesh\(shape=\(1, 4\), axes=\('pp', 'tp'\)\)"),
        (lambda comm: comm.barrier(), "barrier"),
        (lambda comm: comm.split(0), "split"),
    ],
)
def test_a_rank_that_makes_another_mesh_or_another_call_is_told_apart(other: Any, text: str) -> None:
    def program(comm: Communicator) -> None:
        if comm.rank == 2:
            other(comm)
        else:
            comm.mesh((1, 4), ("dp", "tp"))
        comm.barrier()

    with pytest.raises(cluster.CollectiveMismatch, match=text) as caught:
        simulated(program, 4)
    assert "mesh(shape=(1, 4), axes=('dp', 'tp'))" in str(caught.value)


def test_the_ledger_adds_up_by_axis_and_timelines_name_it(tmp_path: Path) -> None:
    def program(comm: Communicator) -> None:
        mesh = comm.mesh((2, 2, 2), ("dp", "pp", "tp"))
        comm.compute(seconds=1e-5)
        mesh["tp"].all_reduce(np.ones(10))
        mesh["tp"].all_reduce(np.ones(10), async_op=True).wait()
        if mesh["pp"].rank == 0:
            mesh["pp"].isend(np.ones(3), 1).wait()
        else:
            mesh["pp"].irecv(0).wait()
        mesh["dp", "tp"].barrier()
        mesh["dp"].split(0).all_gather(1)
        comm.barrier()

    trace = simulated(program, 8).trace
    assert trace.axes == ("", "dp", "dp,tp", "pp", "tp")
    assert [ledger["all_reduce"].calls for ledger in trace.ledger("tp")] == [2] * 8
    assert [ledger["all_reduce"].nbytes for ledger in trace.ledger("tp")] == [2 * 80] * 8
    assert [sum(traffic.calls for traffic in ledger.values()) for ledger in trace.ledger("pp")] == [1] * 8
    assert set(trace.ledger("dp")[0]) == {"split", "all_gather"}
    for rank, whole in enumerate(trace.ledger()):
        for operation, traffic in whole.items():
            parts = [trace.ledger(axis)[rank].get(operation, Traffic()) for axis in trace.axes]
            assert Traffic.total(parts) == traffic
    axes = {event.operation: event.axis for event in trace.events if event.operation not in ("", "barrier", "mesh")}
    assert axes == {"all_reduce": "tp", "isend": "pp", "irecv": "pp", "split": "dp", "all_gather": "dp"}
    figure = trace.plot(by="axis")
    assert [text.get_text() for text in figure.legends[0].get_texts()][:4] == ["compute", "no axis", "dp", "dp,tp"]
    trace.to_chrome(tmp_path / "trace.json")
    calls = [each for each in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if each["ph"] == "X"]
    assert {each["args"]["axis"] for each in calls if each["name"] == "all_reduce"} == {"tp"}
    with pytest.raises(ValueError, match="no communicator along the axis 'sp' was used; axes of this run: '', 'dp'"):
        trace.ledger("sp")
    with pytest.raises(ValueError, match="by must be 'activity' or 'axis', got 'axes'"):
        trace.plot(by="axes")


def test_an_axis_with_all_ranks_has_its_name_in_the_ledger() -> None:
    def program(comm: Communicator) -> None:
        mesh = comm.mesh((1, 4), ("dp", "tp"))
        for group in (mesh["tp"], comm, mesh["dp"]):  # the last of one rank alone
            group.all_reduce(np.ones(10))
        mesh["tp"].background(lambda inside: inside.all_reduce(np.ones(10))).wait()

    trace = simulated(program, 4).trace
    assert [[ledger["all_reduce"].calls for ledger in trace.ledger(axis)] for axis in ("tp", "")] == [[2] * 4] * 2
