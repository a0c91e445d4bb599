"""Computation that ends when a message arrives: `comm.until`."""

from itertools import pairwise

import numpy as np
import pytest

from minidl import Tensor, cluster

pytestmark = pytest.mark.timeout(300)

NETWORK = cluster.Network(alpha=0.25, beta=0.0)
COUNTING = cluster.Simulation(node=cluster.Node(1e3, np.inf))


def two_seconds():
    """Arithmetic of 2,000 flops."""
    a = Tensor(np.ones((10, 10)))
    a @ a


def launched(work, sent_at=1.0, **launch):
    """Rank 1 does `work(comm)` until a message arrives that rank 0 sends at that time: what became of it, and when."""

    def program(comm):
        if comm.rank == 0:
            comm.compute(seconds=sent_at)
            comm.send("stop", 1)
            return None
        news = comm.irecv(0)
        with comm.until(news) as block:
            work(comm)
        ended = comm.now()
        return block.interrupted, ended, news.wait(), comm.now()

    return cluster.launch(program, nodes=2, **({"on": "simulation", "network": NETWORK} | launch))


def outcome(*args, **launch):
    return launched(*args, **launch).results[1]


def test_stated_work_ends_at_the_moment_when_the_message_arrives_if_it_is_not_over_before():
    assert outcome(lambda comm: comm.compute(seconds=10)) == (True, 1.25, "stop", 1.25)
    assert outcome(lambda comm: comm.compute(seconds=0.5)) == (False, 0.5, "stop", 1.25)


def test_counted_arithmetic_ends_at_the_moment_when_the_message_arrives():
    def products(comm):
        two_seconds()
        comm.mark("here it looks")
        raise AssertionError("the message came before")

    assert outcome(products, on=COUNTING) == (True, 1.25, "stop", 1.25)
    with pytest.raises(cluster.RankFailed, match="the message came before"):
        outcome(products, sent_at=3.0, on=COUNTING)


def test_arithmetic_at_the_end_of_the_block_belongs_to_it():
    assert outcome(lambda comm: two_seconds(), on=COUNTING) == (True, 1.25, "stop", 1.25)
    assert outcome(lambda comm: two_seconds(), sent_at=3, on=COUNTING) == (False, 2.0, "stop", 3.25)


def test_every_call_of_the_communicator_and_a_look_leave_the_block_once_the_message_is_here():
    def waiting(comm):
        with pytest.raises(BaseException, match="a message has arrived") as left:
            comm.compute(seconds=10)
        for call in (comm.now, comm.barrier, lambda: comm.mark("x"), lambda: comm.send(1, 0), block_of(left).look):
            two_seconds()
            with pytest.raises(type(left.value)):
                call()

    def block_of(left):
        return left.value.until

    assert outcome(waiting, on=COUNTING) == (True, 1.25, "stop", 1.25)


def test_a_block_takes_no_time_when_the_message_has_come_before():
    def program(comm):
        if comm.rank == 0:
            comm.send("stop", 1)
            return None
        news = comm.irecv(0)
        comm.compute(seconds=1)
        with comm.until(news) as block:
            two_seconds()
            block.look()
        return block.interrupted, comm.now()

    assert cluster.launch(program, nodes=2, on=COUNTING).results[1] == (True, 1.0)


def test_the_programs_own_handlers_do_not_notice():
    def careful(comm):
        try:
            comm.compute(seconds=10)
        except Exception as error:
            raise AssertionError("it is no error") from error

    assert outcome(careful)[:2] == (True, 1.25)


def test_the_trace_has_the_work_that_was_done_under_its_label():
    def labelled(comm):
        comm.mark("forward")
        two_seconds()
        comm.mark("backward")

    for work, label in ((labelled, "forward"), (lambda comm: comm.compute(seconds=10, label="stated"), "stated")):
        events = [event for event in launched(work, on=COUNTING).trace.events if event.rank == 1]
        assert all(before.end == after.start for before, after in pairwise(events))
        assert all(event.start <= event.end for event in events)
        (done,) = [event for event in events if event.kind == "compute" and event.end > event.start]
        assert (done.start, done.end, done.label) == (0.0, 1.25, label)


def test_helpers_have_the_core_of_a_rank_whose_work_has_ended():
    def program(comm):
        if comm.rank == 0:
            comm.compute(seconds=1)
            comm.send("stop", 1)
        news = comm.irecv(0) if comm.rank else None
        if news is not None:
            with comm.until(news):
                comm.compute(seconds=100)
        work = comm.all_reduce(np.ones(10), algorithm="ring", async_op=True)
        comm.compute(seconds=10)
        work.wait()
        return comm.now()

    reducing = cluster.Network(alpha=0.0, beta=0.0, gamma=0.1 / 40)  # 0.1 s a chunk of five numbers
    results = cluster.launch(program, nodes=2, on="simulation", network=reducing).results
    assert results == pytest.approx([11.1, 11.1], abs=1e-12)


def test_another_message_does_not_end_the_work():
    def program(comm):
        if comm.rank == 0:
            comm.send("first", 1)
            comm.compute(seconds=1)
            comm.send("other", 1, tag=1)
            return None
        first, other, never = comm.irecv(0), comm.irecv(0, tag=1), comm.irecv(0, tag=2)
        with comm.until(other) as begun:
            comm.compute(seconds=0.5)
        with comm.until(never) as block:
            comm.compute(seconds=4)
        return begun.interrupted, block.interrupted, comm.now(), first.wait(), other.wait()

    assert cluster.launch(program, nodes=2, on="simulation").results[1] == (False, False, 4.5, "first", "other")


def test_an_error_in_the_block_goes_its_way_and_another_block_may_follow():
    def program(comm):
        if comm.rank == 0:
            return comm.send("stop", 1)
        news = comm.irecv(0)
        with pytest.raises(KeyError), comm.until(news):
            raise KeyError("own")
        with comm.until(news) as block:
            comm.compute(seconds=1)
        return block.interrupted

    assert cluster.launch(program, nodes=2, on="simulation").results[1] is True


def test_only_a_receive_ends_work_and_blocks_do_not_stand_in_each_other():
    def program(comm):
        news = comm.irecv(1 - comm.rank)
        with pytest.raises(ValueError, match=r"comm\.until takes what irecv returns, got a send of"):
            comm.until(comm.isend(1, 1 - comm.rank))
        comm.compute(seconds=1)
        comm.barrier()
        never = comm.irecv(1 - comm.rank)
        with comm.until(never), pytest.raises(RuntimeError, match="cannot stand inside another one"), comm.until(news):
            pass

    cluster.launch(program, nodes=2, on="simulation")


def test_a_rank_that_is_slow_on_purpose_leaves_the_block_too():
    faults = cluster.FaultPlan().slow(1, 20)  # half a second of work takes 10 s
    run = launched(lambda comm: comm.compute(seconds=0.5), 0.6, on="processes", network=None, faults=faults)
    assert run.results[1][0] is True
