"""What a check sees of an answer that ran on simulated ranks, each in a process of its own."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from course.judging import Answer, Builds
from minidl import cluster
from minidl.cluster import Communicator, Node
from tests.course.student_on_ranks import A_SECOND_A_MESSAGE

pytestmark = pytest.mark.timeout(300)

NOT_EAGER = 10_000


def pass_on(comm: Communicator, x: np.ndarray) -> np.ndarray:
    """Down the chain 0, 1, 2, ...; every rank adds one to what it passes on."""
    if comm.rank > 0:
        x[...] = comm.recv(comm.rank - 1)
    x += 1
    if comm.rank + 1 < comm.size:
        comm.send(x, comm.rank + 1)
    return x.sum()


# What is seen


def test_a_rank_run_has_results_and_arguments_of_each_rank(student):
    seen = student.on_ranks(pass_on, [(np.zeros(2),) for _ in range(3)])
    assert seen.results == [2.0, 4.0, 6.0]
    assert [x.tolist() for (x,) in seen.arguments] == [[1, 1], [2, 2], [3, 3]]


def test_an_array_that_was_given_to_several_ranks_is_each_rank_s_own(student):
    shared = np.zeros(2)
    seen = student.on_ranks(pass_on, [(shared,)] * 3)
    assert [x.tolist() for (x,) in seen.arguments] == [[1, 1], [2, 2], [3, 3]]
    assert shared.tolist() == [0, 0]


def test_another_run_of_the_same_ranks_takes_few_new_pages_of_memory(student):
    program = "import resource\ndef program(comm): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt"
    first = student.on_ranks(program, [()] * 2)
    second = Answer("program", student.session).on_ranks([()] * 2)
    for before, after in zip(first.results, second.results, strict=True):
        assert after - before < 1000  # of 4 KiB each


def test_a_rank_that_uses_up_the_memory_can_still_say_so(student):
    program = "def program(comm):\n    kept = []\n    while True: kept.append(bytes(10**6))"
    assert "raised MemoryError on rank 0 of 1" in student.failure(program, nodes=1)


def test_messages_and_bytes_are_counted_by_rank_and_operation(student):
    program = inspect.getsource(pass_on) + (
        "def program(comm):\n    pass_on(comm, np.zeros(4))\n    comm.all_reduce(np.zeros(3), algorithm='ring')\n"
    )
    seen = student.on_ranks(program, [()] * 3)
    assert seen.traffic[0] == {"send": (1, 32), "all_reduce": (4, 32)}
    assert seen.traffic[2] == {"recv": (0, 0), "all_reduce": (4, 32)}
    assert seen.messages == [5, 5, 4]
    assert seen.nbytes == [64, 64, 32]
    assert seen.received == [32, 64, 64]
    assert seen.operations[1] == ["all_reduce", "recv", "send"]
    assert seen.destinations(0) == {1}


def test_with_messages_of_one_second_the_seconds_of_a_run_are_its_rounds(student):
    assert student.on_ranks(pass_on, [(np.zeros(1),)] * 5).seconds == 4.0
    assert student.on_ranks("def program(comm): comm.barrier()", [()] * 5).seconds == 3.0


def test_a_run_lists_each_message_once_in_order_of_time(student):
    for n, taken in ((1, [0.0, 1.0]), (NOT_EAGER, [1.0, 2.0])):
        seen = student.on_ranks(pass_on, [(np.zeros(n),)] * 3)
        assert [send[:4] for send in seen.sends] == [(0, 1, 8 * n, 0.0), (1, 2, 8 * n, 1.0)]
        assert [send[4] for send in seen.sends] == taken


def test_a_message_that_waits_for_its_receiver_is_taken_when_that_is_there(student):
    def program(comm: Communicator) -> None:
        if comm.rank == 0:
            comm.send(np.zeros(10_000), 1)
        else:
            comm.compute(seconds=5.0)
            comm.recv(0)

    seen = student.on_ranks(program, [()] * 2)
    assert seen.sends == [(0, 1, 8 * NOT_EAGER, 0.0, 6.0)]
    assert ("compute", 0.0, 5.0) in [event[1:4] for event in seen.events if event[0] == 1]
    assert ("wait", 0.0, 5.0) in [event[1:4] for event in seen.events if event[0] == 0]


def test_calls_that_a_rank_began_and_did_not_wait_for_are_counted(student):
    program = """
def program(comm, waits):
    works = [comm.isend(np.zeros(n), 1 - comm.rank) for n in (1, 10_000)]
    for _ in works:
        comm.recv(1 - comm.rank)
    comm.barrier()
    for work in works[:waits]:
        work.wait()
    if waits > 2:
        while not works[1].is_completed():
            pass
"""
    assert student.on_ranks(program, [(0,), (1,)]).unfinished == [2, 1]
    assert student.on_ranks(program, [(2,), (3,)]).unfinished == [0, 0]


def test_a_rank_that_starts_late_delays_the_others(student):
    late = student.on_ranks(pass_on, [(np.zeros(1),)] * 2, starts=[0.5, 0.0])
    assert late.seconds == 1.5


def test_a_value_that_a_rank_cannot_return_is_named_by_its_type(student):
    seen = student.on_ranks("def program(comm): return comm.irecv(1 - comm.rank)", [()] * 2)
    assert [str(result) for result in seen.results] == ["a Work", "a Work"]


def test_events_are_sorted_by_time_and_omit_work_of_zero_seconds(student):
    def program(comm: Communicator) -> None:
        comm.mark("forward")
        comm.compute(seconds=comm.rank + 1.0)
        comm.all_reduce(np.zeros(2), algorithm="ring")

    events = student.on_ranks(program, [()] * 2).events
    assert [event[3] for event in events] == sorted(event[3] for event in events)
    work = [event for event in events if event[1] == "compute"]
    assert [(rank, end - start, label) for rank, _, start, end, _, _, label, _ in work] == [
        (0, 1.0, "forward"),
        (1, 2.0, "forward"),
    ]
    assert {event[7] for event in events if event[1] == "receive"} == {"all_reduce"}


def test_collectives_are_listed_one_by_one_with_their_begin_and_bytes(student):
    def program(comm: Communicator) -> None:
        works = []
        for n in (10_000, 20_000):
            comm.compute(seconds=3.0)
            works.append(comm.all_reduce(np.zeros(n), algorithm="ring", async_op=True))
        for work in works:
            work.wait()
        comm.barrier()

    for own in student.on_ranks(program, [()] * 2).collectives:
        assert [one.operation for one in own] == ["all_reduce", "all_reduce", "barrier"]
        assert [one.begun for one in own] == [3.0, 6.0, 8.0]
        assert [(one.messages, one.nbytes, one.ended) for one in own[:2]] == [(2, 80_000, 5.0), (2, 160_000, 8.0)]


def test_what_ranks_print_comes_in_their_order(student):
    student.on_ranks("def program(comm): print('I am', comm.rank); comm.barrier(); print('done')", [()] * 2)
    assert student.session.output.text == "[rank 0] I am 0\n[rank 0] done\n[rank 1] I am 1\n[rank 1] done\n"


def test_a_rank_that_has_closed_or_replaced_its_output_goes_on_and_prints_in_the_next_run(student):
    program = """
import os, sys
def program(comm, silent):
    print("before", end=" ")
    if silent:
        sys.stdout.close(); sys.stdout = sys.stderr = None
        os.closerange(0, 3)
    print("after")
    return comm.all_reduce(1)
"""
    assert student.on_ranks(program, [(False,), (True,)]).results == [2, 2]
    assert student.session.output.text == "[rank 0] before after\n[rank 1] before \n"
    student.session.begin_check()
    seen = Answer("program", student.session).on_ranks([(False,)] * 2)
    assert seen.results == [2, 2]
    assert student.session.output.text == "[rank 0] before after\n[rank 1] before after\n"


def test_ranks_are_forked_again_for_a_check_with_other_refusals(student):
    def program(comm):
        return comm.rank

    assert student.on_ranks(program, [()] * 2).results == [0, 1]
    for size, module in (
        (4, "minidl.cluster.cost.formulas"),
        (3, "minidl.cluster.collectives"),
        (6, "minidl.optim"),
    ):
        student.session.begin_check(("an exercise", Builds(module, instead="numpy")))
        assert Answer("program", student.session).on_ranks([()] * size).results == list(range(size))
    student.session.end_check()


def test_a_rank_s_process_that_cannot_start_reports_why(student):
    cell = "import tempfile\ntempfile.gettempdir = lambda: 1 / 0\ndef program(comm): return 1"
    message = student.failure(cell)
    assert "its process on rank 0 of 2 could not be prepared: ZeroDivisionError: division by zero" in message


def test_the_work_of_kernels_takes_virtual_time_on_a_node(student):
    def program(comm: Communicator) -> float:
        from minidl import Tensor

        Tensor(np.ones((10, 10))) @ Tensor(np.ones((10, 10)))
        comm.barrier()
        return comm.now()

    seen = student.on_ranks(program, [()] * 2, None, node=Node(flops_per_s=1000.0, bytes_per_s=1e12))
    assert seen.results == [pytest.approx(2.0)] * 2


# The communicator


def test_every_call_of_a_communicator_works_as_in_a_launch(student):
    def program(comm: Communicator) -> list[Any]:
        me, p = comm.rank, comm.size
        x = np.full((2, 3), me + 1.0)
        got = [comm.all_reduce(x) is x, x.copy(), comm.all_reduce(me), comm.all_reduce(np.float32(me)), repr(comm)]
        view = np.arange(12.0).reshape(3, 4)[:, 1]
        got += [comm.all_reduce(view, op="max", algorithm="ring"), comm.reduce(np.ones(3), dst=1)]
        got += [comm.reduce_scatter(np.arange(7)), comm.all_gather({"rank": me}), comm.all_gather(np.ones(me))]
        got += [comm.gather("abc"[me], dst=2), comm.scatter([[i, None] for i in range(p)] if me == 0 else None)]
        got += [comm.all_to_all([me * 10 + i for i in range(p)]), comm.broadcast(x if me == 1 else None, src=1)]
        room = np.zeros((2, 3))
        got += [comm.broadcast(x if me == 0 else room) is (x if me == 0 else room), room]
        got += [comm.sendrecv((me, "text"), (me + 1) % p, (me - 1) % p), comm.last_source]
        if me == 0:
            got += [[comm.recv(-1, tag=5), comm.last_source, comm.recv({1, 2}, 5)]]
        else:
            comm.compute(seconds=me)
            comm.send(np.int16(me), 0, 5)
        out = np.zeros(2)
        coming, going = comm.irecv((me + 1) % p, out=out), comm.isend(np.full(2, float(me)), (me - 1) % p)
        work = comm.all_reduce(np.ones(2), async_op=True)
        got += [coming.wait() is out, out, going.wait(), work.wait(), work.is_completed()]
        half = comm.split(me % 2, key=-me)
        got += [half.rank, half.size, half.world_rank(0), half.all_reduce(me), comm.split(None)]
        mesh, half = comm.mesh((1, 3), ("dp", "tp")), comm.split(me == 2)
        square = half.mesh((1, half.size), ("plain", "number"))
        got += [mesh["tp"].all_reduce(1), mesh["dp"].all_reduce(me), mesh.rank_at(tp=1), mesh["tp", "dp"].size]
        got += [square["plain"].size, square["number"].all_gather(me), comm.first_ranks(3).all_reduce(me)]
        got += [comm.first_ranks(2).all_reduce(me) if me < 2 else None, comm.bytes_sent, comm.rng.integers(1000)]
        a = np.ones(3)
        comm.reduce_into(a, a)
        return [*got, a, comm.network.alpha, round(sum(comm.shares()), 9)]

    want = cluster.launch(program, nodes=3, on="simulation", network=A_SECOND_A_MESSAGE)
    seen = student.on_ranks(program, [()] * 3)
    for got, expected in zip(seen.results, want.results, strict=True):
        np.testing.assert_equal(got, expected)
    assert seen.seconds == want.seconds
    assert seen.nbytes == [sum(traffic.nbytes for traffic in row.values()) for row in want.trace.ledger()]


@pytest.mark.parametrize("p", [2, 4, 5])
def test_lists_of_arrays_are_scattered_and_exchanged_on_any_number_of_ranks(student, p):
    def program(comm: Communicator) -> list[Any]:
        items = [np.arange(3.0) + 10 * comm.rank + i for i in range(comm.size)]
        return [comm.scatter(items if comm.rank == 1 else None, src=1), comm.all_to_all(items)]

    for rank, got in enumerate(student.on_ranks(program, [()] * p).results):
        here = [np.arange(3.0) + 10 * source + rank for source in range(p)]
        np.testing.assert_equal(got, [here[1], here])
