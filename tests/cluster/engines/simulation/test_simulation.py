"""The simulated engine: a virtual clock, turns in the order of time and rank, ranks that share nothing."""

import contextvars
import math
import sys
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, cluster, kernels, random
from minidl import functional as F

pytestmark = pytest.mark.timeout(300)

NETWORK = cluster.Network(alpha=1e-3, beta=1e-6)
BIG = 100_000  # bytes, more than is sent eagerly


def simulate(program: Any, nodes: int = 2, **keywords: Any) -> cluster.Run:
    settings = {key: keywords.pop(key) for key in ("network", "node", "trace") if key in keywords}
    return cluster.launch(program, nodes=nodes, on=cluster.Simulation(**settings), **keywords)


# What a message takes


def test_a_large_message_takes_alpha_and_n_beta_from_the_moment_both_sides_have_posted_it() -> None:
    def program(comm: cluster.Communicator) -> tuple[float, float]:
        if comm.rank == 0:
            comm.compute(seconds=0.5)
            posted = comm.now()
            comm.send(np.zeros(BIG, np.uint8), 1)
            return posted, comm.now()
        comm.compute(seconds=2.0)
        posted = comm.now()
        assert comm.recv(0).nbytes == BIG
        return posted, comm.now()

    run = simulate(program, network=NETWORK)
    assert run.results == [(0.5, pytest.approx(2.101, rel=1e-12)), (2.0, pytest.approx(2.101, rel=1e-12))]
    assert run.seconds == run.results[1][1]


def test_a_short_message_is_copied_and_its_send_is_done_at_once() -> None:
    def program(comm: cluster.Communicator) -> Any:
        if comm.rank == 0:
            x = np.ones(4)
            comm.send(x, 1)
            x[:] = 7
            return comm.now()
        comm.compute(seconds=1.0)
        return comm.recv(0).tolist(), comm.now()

    sender, (received, when) = simulate(program, network=NETWORK).results
    assert sender == 0
    assert received == [1, 1, 1, 1]
    assert when == pytest.approx(1 + 1e-3 + 32e-6, rel=1e-12)  # the transfer begins when the receive is posted


def test_without_a_network_messages_take_no_time() -> None:
    assert simulate(lambda comm: comm.all_reduce(comm.rank + 1.0), nodes=5).seconds == 0


def test_the_clock_stays_in_double_precision_when_work_is_stated_in_single() -> None:
    def program(comm: cluster.Communicator) -> float:
        comm.compute(seconds=1e6)
        comm.compute(seconds=np.float32(0.5))  # type: ignore[arg-type]
        comm.compute(seconds=1e-6)
        return comm.now()

    assert simulate(program, nodes=1).results == [1e6 + 0.5 + 1e-6]


def test_ports_are_full_duplex() -> None:
    def program(comm: cluster.Communicator) -> float:
        comm.sendrecv(np.zeros(BIG, np.uint8), 1 - comm.rank, 1 - comm.rank)
        return comm.now()

    assert simulate(program, network=NETWORK).results == [pytest.approx(0.101)] * 2


def test_a_port_carries_one_message_at_a_time() -> None:
    def program(comm: cluster.Communicator) -> float:
        if comm.rank == 0:
            for work in [comm.irecv(src) for src in (1, 2, 3)]:
                work.wait()
        else:
            comm.send(np.zeros(BIG, np.uint8), 0)
        return comm.now()

    assert simulate(program, nodes=4, network=NETWORK).results == pytest.approx([0.303, 0.101, 0.202, 0.303])


def test_ports_that_become_free_at_the_same_instant_do_so_together() -> None:
    def program(comm: cluster.Communicator) -> float:
        x = np.zeros(BIG, np.uint8)
        if comm.rank == 0:  # to 2, then (ready at 0.01) to 3 and (ready at 0.02) to 4
            for work in [comm.isend(x, dst) for dst in (2, 3, 4)]:
                work.wait()
        elif comm.rank == 1:
            comm.send(x, 3)
        elif comm.rank == 3:  # from 1, until the very moment at which rank 0 is done with 2
            first = comm.irecv(1)
            comm.compute(seconds=0.01)
            comm.recv(0)
            first.wait()
        else:
            comm.compute(seconds=0.02 * (comm.rank == 4))
            comm.recv(0)
        return comm.now()

    assert simulate(program, nodes=5, network=NETWORK).results == pytest.approx([0.303, 0.101, 0.101, 0.202, 0.303])


def test_a_busy_port_is_given_to_whoever_was_ready_first_and_can_start() -> None:
    def program(comm: cluster.Communicator) -> float:
        x = np.zeros(BIG, np.uint8)
        if comm.rank == 0:  # its port is taken by rank 1, then comes 2, which was ready before 3
            for work in [comm.irecv(src) for src in (1, 3, 2)]:
                work.wait()
        elif comm.rank in (1, 2):
            comm.compute(seconds=0.01 * (comm.rank - 1))
            comm.send(x, 0)
        elif comm.rank == 3:
            comm.compute(seconds=0.02)
            work = comm.isend(x, 0)
            comm.send(x, 4)  # and this one, ready after the other, need not wait for it
            between = comm.now()
            work.wait()
            return between
        else:
            comm.recv(3)
        return comm.now()

    run = simulate(program, nodes=5, network=NETWORK)
    assert run.results == pytest.approx([0.303, 0.101, 0.202, 0.121, 0.121])


# Whose turn it is


def test_a_receive_from_any_takes_what_was_sent_first_in_virtual_time() -> None:
    def program(comm: cluster.Communicator) -> Any:
        if comm.rank == 0:
            comm.compute(seconds=10)
            sources = []
            for _ in range(3):
                comm.recv(cluster.ANY)
                sources.append(comm.last_source)
            return sources
        comm.compute(seconds=(0.3, 0.1, 0.2)[comm.rank - 1])
        return comm.send("here", 0)

    assert simulate(program, nodes=4).results[0] == [2, 3, 1]


def test_calls_at_the_same_time_take_effect_in_the_order_of_the_ranks() -> None:
    def program(comm: cluster.Communicator) -> Any:
        if comm.rank == 3:
            return [(comm.recv(cluster.ANY), comm.last_source)[1] for _ in range(3)]
        comm.compute(seconds=1.0)
        return comm.send(None, 3)

    assert simulate(program, nodes=4).results[3] == [0, 1, 2]


def test_work_is_charged_before_a_call_takes_effect() -> None:
    def program(comm: cluster.Communicator) -> Any:
        x = comm.shared_array("x", 1)
        if comm.rank == 0:
            comm.compute(seconds=2.0)
            x[0] = 5  # at two seconds
            return None
        before = float(x[0])
        comm.compute(seconds=1.0)
        between = float(x[0])
        comm.compute(seconds=1.5)
        return before, between, float(x[0])

    assert simulate(program).results[1] == (0.0, 0.0, 5.0)


def test_an_asynchronous_program_is_the_same_every_time_and_follows_the_seed() -> None:
    def program(comm: cluster.Communicator) -> Any:
        if comm.rank == 0:
            log = []
            for _ in range(60):
                value = comm.recv(cluster.ANY)
                log.append((comm.last_source, value, comm.now()))
            return log
        for _ in range(20):
            comm.compute(seconds=float(comm.rng.exponential()))
            comm.send(float(comm.rng.random()), 0)
        return None

    node = cluster.Node(1e9, 1e9, jitter=0.3)
    runs = [simulate(program, nodes=4, network=NETWORK, node=node, seed=seed) for seed in (1, 1, 2)]
    assert runs[0].results == runs[1].results
    assert runs[0].trace.events == runs[1].trace.events
    assert runs[0].results != runs[2].results


def test_the_first_receive_that_matches_gets_the_message() -> None:
    def program(comm: cluster.Communicator) -> Any:
        if comm.rank == 0:
            works = [comm.irecv(cluster.ANY), comm.irecv(2), comm.irecv(1)]
            return [work.wait() for work in works]
        comm.compute(seconds=comm.rank)
        comm.send(comm.rank, 0)
        if comm.rank == 1:
            comm.send("again", 0)
        return None

    assert simulate(program, nodes=3).results[0] == [1, 2, "again"]


# Computing


def test_work_takes_the_longer_of_arithmetic_and_memory() -> None:
    node = cluster.Node(flops_per_s=1e9, bytes_per_s=1e8)

    def program(comm: cluster.Communicator) -> list[float]:
        times = []
        for work in ({"flops": 2e9, "nbytes": 1e8}, {"flops": 1e8, "nbytes": 3e8}, {"seconds": 0.5}):
            before = comm.now()
            comm.compute(**work)
            times.append(comm.now() - before)
        return times

    assert simulate(program, nodes=1, node=node).results[0] == pytest.approx([2.0, 3.0, 0.5])


def test_speeds_hold_for_all_that_a_rank_computes() -> None:
    def program(comm: cluster.Communicator) -> tuple[float, float]:
        comm.compute(flops=1e9)
        first = comm.now()
        comm.compute(seconds=1.0)
        return first, comm.now()

    slow = cluster.Node(1e9, math.inf, speeds={1: 0.5})
    assert simulate(program, node=slow).results == [(1, 2), (2, 4)]
    assert simulate(program, node=cluster.Node(1e9, math.inf, speeds=[1, 0.5])).results == [(1, 2), (2, 4)]
    assert simulate(program, node=cluster.Node(1e9, math.inf, speeds=np.array([1, 0.5]))).results == [(1, 2), (2, 4)]
    with pytest.raises(ValueError, match="3 speeds, but the run has 2 ranks"):
        simulate(program, node=cluster.Node(1e9, 1e9, speeds=[1, 1, 1]))
    with pytest.raises(ValueError, match="speed for rank 2"):
        simulate(program, node=cluster.Node(1e9, 1e9, speeds={2: 1}))


def test_jitter_has_mean_one_and_a_stream_of_its_own() -> None:
    def program(comm: cluster.Communicator) -> tuple[float, float]:
        for _ in range(4000):
            comm.compute(seconds=1.0)
        return comm.now() / 4000, comm.rng.random()

    jitter = simulate(program, node=cluster.Node(1e9, 1e9, jitter=0.5)).results
    plain = simulate(program).results
    assert [mean for mean, _ in jitter] == pytest.approx([1, 1], abs=0.04)
    assert jitter[0][0] != jitter[1][0]
    assert [draw for _, draw in jitter] == [draw for _, draw in plain]


def test_what_kernels_do_is_counted_and_charged_at_the_next_call() -> None:
    def program(comm: cluster.Communicator) -> float:
        F.linear(Tensor(np.ones((8, 100), np.float32)), Tensor(np.ones((50, 100), np.float32)))
        return comm.now()

    flops = 2 * 8 * 100 * 50
    assert simulate(program, node=cluster.Node(1e6, math.inf)).results == [flops / 1e6] * 2
    nbytes = 4 * (8 * 100 + 50 * 100 + 8 * 50)
    assert simulate(program, node=cluster.Node(math.inf, 1e6)).results == [nbytes / 1e6] * 2
    assert simulate(program).results == [0, 0]


# Beside the program


def test_a_collective_that_was_begun_goes_on_while_the_program_computes() -> None:
    def program(comm: cluster.Communicator) -> tuple[float, float]:
        x = np.ones(BIG)
        work = comm.all_reduce(x, algorithm="ring", async_op=True)
        begun = comm.now()
        comm.compute(seconds=5.0)
        work.wait()
        assert x[0] == comm.size
        return begun, comm.now()

    assert simulate(program, nodes=4, network=NETWORK).results == [(0.0, 5.0)] * 4
    run = simulate(program, nodes=4, network=cluster.Network(1e-3, 1e-5))
    seconds = cluster.cost.all_reduce("ring", 4, 8 * BIG, 1e-3, 1e-5, itemsize=8)
    assert seconds > 5
    assert run.results == [(0.0, pytest.approx(seconds, rel=1e-9))] * 4


def test_reductions_beside_the_program_take_the_core_from_it() -> None:
    network = cluster.Network(1e-3, 0, gamma=1e-6)

    def program(comm: cluster.Communicator) -> float:
        work = comm.all_reduce(np.ones(BIG), algorithm="ring", async_op=True)
        comm.compute(seconds=5.0)
        computed = comm.now()
        work.wait()
        return computed

    reduced = 3 * 8 * (BIG // 4) * 1e-6  # three chunks of a quarter
    assert simulate(program, nodes=4, network=network).results == pytest.approx([5 + reduced] * 4)


# Ranks share nothing


def test_arguments_results_and_messages_are_copies() -> None:
    mine = np.zeros(3)

    def program(comm: cluster.Communicator, x: np.ndarray[Any, Any], items: list[int]) -> Any:
        x += comm.rank
        items.append(comm.rank)
        if comm.rank == 0:
            comm.send(items, 1)
            items.append(99)
        else:
            assert comm.recv(0) == [0]
        comm.barrier()
        return x, items

    results = simulate(program, args=(mine, [])).results
    assert [x.tolist() for x, _ in results] == [[0, 0, 0], [1, 1, 1]]
    assert [items for _, items in results] == [[0, 99], [1]]
    assert mine.tolist() == [0, 0, 0]


def test_ambient_state_belongs_to_the_rank() -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=-1)
    state = contextvars.copy_context()

    def program(comm: cluster.Communicator) -> Any:
        random.manual_seed(comm.rank)
        if comm.rank == 1:
            kernels.use("numpy")
        comm.barrier()
        return random.generator().integers(1 << 30), kernels.active()

    with kernels.use("numba"):
        first, second = simulate(program).results
        assert kernels.active() == "numba"
    assert (first[1], second[1]) == ("numba", "numpy")
    assert [first[0], second[0]] == [random.manual_seed(seed).integers(1 << 30) for seed in (0, 1)]
    assert variable not in state


def test_a_rank_that_redirects_its_output_does_not_get_that_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    def program(comm: cluster.Communicator) -> str:
        import contextlib
        import io

        if comm.rank == 1:
            with contextlib.redirect_stdout(io.StringIO()) as text:
                comm.barrier()
                print("kept")
                comm.barrier()
            return text.getvalue()
        comm.barrier()
        print("shown")
        comm.barrier()
        return ""

    before = sys.stdout
    assert simulate(program).results == ["", "kept\n"]
    assert capsys.readouterr().out == "[rank 0] shown\n"
    assert sys.stdout is before


def test_a_listener_hears_copies_while_the_run_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[Any] = []

    def listener(rank: int, told: Any) -> None:
        print("heard")
        heard.append((rank, told))

    def program(comm: cluster.Communicator) -> None:
        comm.compute(seconds=1 - comm.rank / 2)
        comm.tell([comm.rank, comm.now()])

    simulate(program, listener=listener)
    assert heard == [(1, [1, 0.5]), (0, [0, 1.0])]
    assert capsys.readouterr().out == "heard\nheard\n"


# A message without contents


def test_a_phantom_is_counted_and_timed_by_its_size_in_every_all_reduce() -> None:
    def program(comm: cluster.Communicator, x: Any) -> Any:
        seen = []
        for algorithm in ("auto", *cluster.comm.collectives.ALL_REDUCE):
            seen.append((comm.all_reduce(x, "mean", algorithm=algorithm).nbytes, comm.bytes_sent, comm.now()))
        return seen

    network = cluster.Network(1e-3, 1e-9, gamma=1e-10)
    real = simulate(program, nodes=6, network=network, args=(np.zeros(1001, np.float32),))
    phantom = simulate(program, nodes=6, network=network, args=(cluster.Phantom(4004),))
    assert phantom.results == real.results
    assert phantom.trace.ledger() == real.trace.ledger()


def test_a_phantom_goes_through_every_collective() -> None:
    def program(comm: cluster.Communicator) -> Any:
        x = cluster.Phantom(800, np.float64)
        comm.broadcast(x)
        comm.reduce(x)
        return (
            comm.reduce_scatter(x).nbytes,
            [item.nbytes for item in comm.all_gather(x)],
            [item.nbytes for item in comm.all_to_all([x] * comm.size)],
            comm.sendrecv(x, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size).nbytes,
        )

    results = simulate(program, nodes=3, network=NETWORK).results
    assert results == [(size, [800] * 3, [800] * 3, 800) for size in (272, 264, 264)]
    with pytest.raises(ValueError, match="nbytes must be a multiple of 4, the size of float32, got 6"):
        cluster.Phantom(6)
    with pytest.raises(TypeError, match="no items"):
        cluster.Phantom(8)[0]  # type: ignore[index]


# The trace


def test_a_ledger_trace_has_the_bytes_and_shares_of_a_full_one() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.compute(seconds=0.1 * comm.rank)
        comm.all_reduce(np.ones(1000), algorithm="ring")

    full, ledger = (simulate(program, nodes=4, network=NETWORK, trace=trace).trace for trace in ("full", "ledger"))
    assert full.events
    assert not ledger.events
    assert full.ledger() == ledger.ledger()
    assert full.shares() == ledger.shares()
    assert ledger.ledger()[1]["all_reduce"].messages == 6


def test_the_shares_of_a_rank_are_those_of_its_virtual_time() -> None:
    def program(comm: cluster.Communicator) -> Any:
        if comm.rank == 0:
            comm.compute(seconds=3.0)
            comm.send(np.zeros(10**6, np.uint8), 1)
        else:
            comm.compute(seconds=1.0)
            comm.recv(0)

    run = simulate(program, network=cluster.Network(0, 1e-6))
    assert run.trace.shares(0) == pytest.approx((0.75, 0.25, 0))
    assert run.trace.shares(1) == pytest.approx((0.25, 0.25, 0.5))


# What is given


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: cluster.Simulation(trace="none"), ValueError, "trace must be 'full' or 'ledger', got 'none'"),
        (lambda: cluster.Simulation(node=1e9), TypeError, r"node must be a cluster\.Node"),
        (lambda: cluster.Simulation("7gbe"), ValueError, "network must be"),
        (lambda: cluster.Node(0, 1), ValueError, r"flops_per_s must be above 0, got 0: math\.inf means no limit"),
        (lambda: cluster.Node(1, 1, speeds=[0.0]), ValueError, "each of speeds must be above 0"),
        (lambda: cluster.Node(1, 1, speeds=0.5), TypeError, "speeds must have a speed for each rank, as a list"),
        (lambda: cluster.Node(1, 1, jitter=-1), ValueError, "jitter"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_the_network_may_be_given_to_the_launch_or_to_the_engine_but_not_two() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.barrier()

    inside = simulate(program, network="1gbe")
    assert cluster.launch(program, nodes=2, on="simulation", network="1gbe").seconds == inside.seconds > 0
    with pytest.raises(ValueError, match="two networks were given"):
        cluster.launch(program, nodes=2, on=cluster.Simulation("1gbe"), network="10gbe")
