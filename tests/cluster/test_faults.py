"""Faults on purpose: each fires where it was planned, in every engine, and shows in the trace."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.faults import FaultPlan

pytestmark = pytest.mark.timeout(300)

Program = Callable[[cluster.Communicator], Any]
ENGINES = ["processes", "simulation"]


def steps(comm: cluster.Communicator) -> list[float]:
    x = np.full(6, comm.rank + 1.0)
    for _ in range(3):
        comm.all_reduce(x)
    comm.barrier()
    return [float(value) for value in x]


def fired(trace: cluster.Trace | None) -> list[tuple[int, str]]:
    assert trace is not None
    return [(event.rank, event.label) for event in trace.faults]


@pytest.mark.parametrize(
    ("on", "at", "call"),
    [
        ("processes", ("all_reduce", 3), 3),
        *(("simulation", *case) for case in [("all_reduce", 1), (("all_reduce", 3), 3), (2, 2), ("barrier", 4)]),
    ],
)
def test_a_rank_is_killed_in_the_call_that_was_planned(on: str, at: Any, call: int) -> None:
    with pytest.raises(cluster.RankFailed) as caught:
        cluster.launch(steps, nodes=3, on=on, faults=FaultPlan().kill(1, at=at))
    assert caught.value.rank == 1
    said = {"processes": "the process was killed by SIGKILL", "simulation": "the rank was killed (a planned fault)"}
    assert str(caught.value).startswith(f"{said[on]}\nrank 1 of 3")
    operation, line = ("barrier", 4) if call == 4 else ("all_reduce", 3)
    place = f"{__file__}:{steps.__code__.co_firstlineno + line}"
    assert f"in {operation} (call {call}), at {place}" in str(caught.value)
    assert caught.value.operation == operation
    assert fired(caught.value.trace) == [(1, f"kill in {operation} (call {call})")]
    assert caught.value.trace is not None
    ledger = caught.value.trace.ledger()[1]  # what it had done until then is known too
    assert set(ledger) == {"all_reduce", "barrier"} if call == 4 else {"all_reduce"}


def test_a_rank_is_killed_in_its_first_call_after_a_second_and_a_message_is_lost_once() -> None:
    def program(comm: cluster.Communicator) -> int:
        for done in range(5):
            comm.compute(seconds=0.7)
            if comm.now() > 3:
                return done
            comm.barrier()
        return -1

    plan = FaultPlan().kill(1, at=("seconds", 1.9))
    run = cluster.launch(program, nodes=2, on="simulation", faults=plan, on_failure="continue")
    assert fired(run.trace) == [(1, "kill in barrier (call 3)")]  # calls begin at 0.7, 1.4 and 2.1 s

    def talks(comm: cluster.Communicator) -> list[int]:
        sent = [comm.isend(number, 1) for number in range(3)] if comm.rank == 0 else []
        assert len(sent) in (0, 3)
        return [comm.recv(0) for _ in range(2)] if comm.rank else []

    lost = cluster.launch(talks, nodes=2, on="simulation", faults=FaultPlan().drop(0, at=("seconds", 0.0)))
    assert lost.results[1] == [1, 2]


@pytest.mark.parametrize("on", ENGINES)
def test_a_run_can_go_on_without_a_killed_rank(on: str) -> None:
    def program(comm: cluster.Communicator) -> list[int]:
        if comm.rank:
            for _ in range(3):
                comm.send(comm.rank, 0)
            return []
        heard = []
        try:
            while True:
                heard.append(comm.recv(cluster.ANY))
        except (cluster.RankFailed, cluster.Deadlock):
            return sorted(heard)

    run = cluster.launch(program, nodes=4, on=on, on_failure="continue", faults=FaultPlan().kill(2, at=("send", 2)))
    assert run.results == [[1, 1, 1, 2, 3, 3, 3], [], None, []]
    assert list(run.failures) == [2]
    assert isinstance(run.failures[2], cluster.RankFailed)
    assert fired(run.trace) == [(2, "kill in send (call 2)")]


@pytest.mark.parametrize("on", ENGINES)
def test_a_lost_message_is_missed_by_its_receiver(on: str) -> None:
    def program(comm: cluster.Communicator) -> Any:
        if comm.rank == 0:
            for number in range(3):
                comm.send(number, 1)
            return None
        return [comm.recv(0), comm.recv(0)]

    run = cluster.launch(program, nodes=2, on=on, faults=FaultPlan().drop(0, at=("send", 2)))
    assert run.results[1] == [0, 2]
    assert fired(run.trace) == [(0, "drop a message to rank 1 (call 2)")]


@pytest.mark.parametrize(("on", "algorithm"), [("processes", "auto"), ("simulation", "ring")])
def test_a_collective_from_which_a_message_is_lost_ends_in_a_deadlock(on: str, algorithm: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.all_reduce(np.ones(6), algorithm=algorithm)

    with pytest.raises(cluster.Deadlock) as caught:
        cluster.launch(program, nodes=3, on=on, faults=FaultPlan().drop(1, at="all_reduce"), timeout=50)
    faults = fired(caught.value.trace)
    assert faults
    assert all(rank == 1 and label.startswith("drop a message to rank ") for rank, label in faults)


def test_only_messages_to_the_rank_that_was_named_are_lost() -> None:
    def scatter(comm: cluster.Communicator) -> Any:
        return comm.scatter([1, 2, 3] if comm.rank == 0 else None)

    run = cluster.launch(
        scatter, nodes=3, on_failure="continue", faults=FaultPlan().drop(0, at="scatter", dst=1), timeout=50
    )
    assert run.results == [1, None, 3]
    assert isinstance(run.failures[1], cluster.Deadlock)


def corrupted(on: Any, seed: int, algorithm: str = "auto") -> tuple[list[list[float]], list[tuple[int, str]]]:
    def program(comm: cluster.Communicator) -> list[float]:
        x = np.arange(6.0) + comm.rank
        return [float(value) for value in comm.all_reduce(x, algorithm=algorithm)]

    run = cluster.launch(program, nodes=2, on=on, faults=FaultPlan(seed).corrupt(1, at="all_reduce"))
    return run.results, fired(run.trace)


def test_corruption_is_the_same_for_a_seed_in_every_engine_and_every_time() -> None:
    right = [[1.0, 3.0, 5.0, 7.0, 9.0, 11.0]] * 2
    ring, auto = (corrupted("processes", 1, algorithm) for algorithm in ("ring", "auto"))
    for results, faults in (ring, auto):
        assert results != right
        assert set(faults) == {(1, "corrupt a message to rank 0 (call 1)")}
    assert corrupted("processes", 1) == auto
    others = [corrupted("simulation", seed, "ring") for seed in (1, 2)]
    assert others[0] == ring
    assert others[0][0] != others[1][0]


def test_one_bit_of_each_message_is_flipped_in_a_copy() -> None:
    def program(comm: cluster.Communicator) -> Any:
        payloads = [np.zeros(5), np.zeros((4, 4), np.uint8)[:, ::2], 0.0, 0, {"a": np.zeros(3)}]
        if comm.rank == 0:
            for payload in payloads:
                comm.send(payload, 1)
            return [int(np.abs(payload).sum()) for payload in payloads[:2]]
        heard = [comm.recv(0) for _ in payloads]
        values = [heard[0], heard[1], np.array(heard[2]), np.array(heard[3]), heard[4]["a"]]
        return [sum(byte.bit_count() for byte in np.ascontiguousarray(value).tobytes()) for value in values]

    plan = FaultPlan(seed=3)
    for call in range(1, 6):
        plan = plan.corrupt(0, at=call)
    run = cluster.launch(program, nodes=2, faults=plan)
    assert run.results == [[0, 0], [1] * 5]
    assert len(fired(run.trace)) == 5


@pytest.mark.parametrize("on", ENGINES)
def test_a_slow_rank_takes_as_many_times_as_long_to_compute(on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.compute(seconds=0.1)
        comm.barrier()

    run = cluster.launch(program, nodes=2, on=on, faults=FaultPlan().slow(1, 5.0))
    computed = sum(e.end - e.start for e in run.trace.events if (e.rank, e.kind) == (1, "compute"))
    assert computed >= 5 * 0.1 - 1e-9
    assert on == "processes" or run.seconds == pytest.approx(0.5, rel=1e-12)


# The plan


def test_a_plan_is_a_value_that_grows_by_copies_and_travels() -> None:
    empty = FaultPlan(seed=4)
    plan = empty.kill(0, at=3).stop(1, at="barrier").slow(2, 2).drop(3, at=("send", 2), dst=1).corrupt(3, at=5)
    assert empty == FaultPlan(4)
    assert len(plan.faults) == 4
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert (plan.slowdown(2), plan.slowdown(0), plan.spoils_messages, empty.spoils_messages) == (2.0, 1.0, True, False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda plan: plan.kill(-1, at=1), "rank must be at least 0, got -1"),
        (lambda plan: plan.kill(0, at=0), "got 0"),
        (lambda plan: plan.kill(0, at=("send", 0)), r"got \('send', 0\)"),
        (lambda plan: plan.stop(0, at=1.5), "got 1.5"),
        (lambda plan: plan.kill(0, at=("seconds", -0.5)), "at: seconds must be at least 0, got -0.5"),
        (lambda plan: plan.kill(0, at="all_reduec"), "at must be .* got 'all_reduec': did you mean 'all_reduce'"),
        (lambda plan: plan.slow(0, 0.5), "factor must be at least 1, got 0.5"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(make: Callable[[FaultPlan], FaultPlan], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(FaultPlan())


@pytest.mark.parametrize("plan", [FaultPlan().kill(2, at=1), FaultPlan().slow(2, 2), FaultPlan().drop(0, at=1, dst=2)])
def test_a_plan_for_a_rank_that_the_run_does_not_have_is_refused(plan: FaultPlan) -> None:
    with pytest.raises(ValueError, match="the fault plan names rank 2, but the run has ranks 0 to 1"):
        cluster.launch(steps, nodes=2, faults=plan)


def test_what_is_no_fault_plan_is_refused() -> None:
    with pytest.raises(TypeError, match=r"faults must be a cluster\.FaultPlan, got 'kill 1'"):
        cluster.launch(steps, nodes=2, faults="kill 1")  # type: ignore[arg-type]
