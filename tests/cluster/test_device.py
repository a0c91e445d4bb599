"""Two tiers of memory: transfers between device and host, work of the host, and the bytes that a device holds."""

import math

import numpy as np
import pytest

from minidl import Tensor, cluster, kernels
from minidl.cluster.trace.bars import bars
from minidl.cluster.trace.recording import HOST

pytestmark = pytest.mark.timeout(300)

MEMORY = cluster.Memory(device=700_000, link=(0.3, 90_000.0), host=0.4)
X = np.arange(27_000, dtype=np.float32)  # 108,000 bytes: 1.5 s


def simulated(program, nodes=1, memory=MEMORY, node=None):
    return cluster.launch(program, nodes=nodes, on=cluster.Simulation(memory=memory, node=node))


def test_each_direction_transfers_one_array_after_the_other_and_both_at_the_same_time():
    def program(comm):
        lanes = [comm.split(0) for _ in range(3)]
        works = [
            lanes[0].background(lambda inside: inside.device.fetch(X)),
            lanes[1].background(lambda inside: inside.device.fetch(X[:9_000])),  # waits until the link is free
            lanes[2].background(lambda inside: inside.device.send_back(X)),
        ]
        ends = []
        comm.compute(seconds=1.1)
        for work in works[::2]:
            assert (work.wait() == X).all()
            ends.append(comm.now())
        works[1].wait()
        return [*ends, comm.now()], comm.device.use, comm.bytes_sent

    run = simulated(program, nodes=2)
    for ends, use, _ in run.results:
        assert ends == pytest.approx([1.5, 1.5, 1.5 + 0.3 + 0.4], rel=1e-12)
        assert (use.fetched, use.sent_back) == (144_000, 108_000)
    assert run.results[0][2] < 200  # the splits: a transfer is no message
    transfers = [e for e in run.trace.events if e.rank == 1 and e.peer == HOST and e.kind != "wait"]
    assert [(e.kind, e.lane, e.nbytes) for e in sorted(transfers, key=lambda e: e.lane)] == [
        ("receive", 1, 108_000), ("receive", 2, 36_000), ("send", 3, 108_000)
    ]  # fmt: skip
    waits = [e for e in run.trace.events if e.rank == 1 and e.peer == HOST and e.kind == "wait"]
    assert [(e.lane, e.start, e.end) for e in waits] == [(2, 0.0, pytest.approx(1.5))]
    assert {bar.label for bar in bars(run.trace.events) if "host" in bar.label} == {
        "from host\n108 KB", "from host\n36 KB", "to host\n108 KB"
    }  # fmt: skip


def test_what_is_fetched_is_a_copy_or_fills_an_array():
    def program(comm):
        out = np.empty_like(X)
        copied, filled = comm.device.fetch(X), comm.device.fetch(X, out=out)
        return np.shares_memory(copied, X), filled is out, (out == X).all(), comm.now()

    shared, is_out, equal, seconds = simulated(program).results[0]
    assert (shared, is_out, equal) == (False, True, True)
    assert seconds == pytest.approx(3.0, rel=1e-12)


@pytest.mark.parametrize(
    ("transfer", "error", "text"),
    [
        (lambda device: device.fetch(3.5), TypeError, "fetch transfers an array, got float"),
        (lambda device: device.send_back(Tensor(X)), TypeError, "send_back takes an array, not a Tensor"),
        (lambda device: device.fetch(X, out=np.empty((3, X.size), np.float32)), ValueError, "out must have the shape"),
        (lambda device: device.fetch(X, out=np.empty(X.size)), ValueError, "got (27000,) and float64"),
    ],
)
def test_what_cannot_be_transferred_is_refused(transfer, error, text):
    with pytest.raises(cluster.RankFailed) as refused:
        simulated(lambda comm: transfer(comm.device))
    assert isinstance(refused.value.cause, error)
    assert text in str(refused.value.cause)


def test_an_array_that_is_being_reduced_cannot_be_transferred():
    def program(comm):
        x = np.ones(50_000)
        work = comm.all_reduce(x, async_op=True)
        with pytest.raises(RuntimeError, match=r"send_back uses an array that all_reduce at .* still writes"):
            comm.device.send_back(x)
        work.wait()

    simulated(program, nodes=2)


def test_the_host_works_at_its_own_speed_and_beside_the_program():
    def updated(array):
        p = np.zeros_like(array)
        kernels.current().sgd(p, array, None, 0.1, 0.0, 0.0, 0.0, False)

    def program(comm, is_on_host):
        began = comm.now()
        if is_on_host:
            lane = comm.split(0)

            def work(inside):
                with inside.device.on_host():
                    updated(X)

            begun = lane.background(work)
            comm.compute(seconds=0.2)
            seen = comm.now() - began
            begun.wait()
            return seen, comm.now() - began
        updated(X)
        return comm.now() - began

    node = cluster.Node(1e4, math.inf)
    on_device = cluster.launch(program, (False,), 1, cluster.Simulation(memory=MEMORY, node=node)).results[0]
    seen, whole = cluster.launch(program, (True,), 1, cluster.Simulation(memory=MEMORY, node=node)).results[0]
    assert on_device > 1
    assert seen == pytest.approx(0.2, rel=1e-12)  # the core was free
    assert whole == pytest.approx(on_device / 0.4, rel=1e-12)


def test_the_peak_is_that_of_the_moment_with_most_bytes():
    def program(comm):
        device = comm.device
        device.holds("at first", {"weights": 11, "gradients": 7})
        device.holds("then", {"weights": 11, "gradients": 19, "buffers": 0})
        device.holds("at last", {"weights": 29})
        return device.use

    use = simulated(program).results[0]
    assert (use.peak, use.moment, use.at_peak["gradients"]) == (30, "then", 19)


def test_more_bytes_than_the_device_has_are_an_error_that_says_how_many_are_needed():
    def program(comm):
        if comm.rank == 1:
            comm.device.holds("in forward", {"weights": 700_000, "optimizer": 0, "activations": 1})

    with pytest.raises(cluster.RankFailed) as failed:
        simulated(program, nodes=2)
    text = (
        "the device of rank 1 needs 700,001 bytes in forward (weights 700,000, activations 1), and has 700,000: give "
        "it more memory, a smaller minibatch, or less to keep"
    )
    assert isinstance(failed.value.cause, cluster.DeviceError)
    assert str(failed.value.cause) == text


def test_a_simulated_node_has_one_tier_unless_a_memory_is_given():
    def program(comm):
        return comm.memory is None or comm.device

    assert cluster.launch(program, nodes=1, on="simulation").results == [True]
    with pytest.raises(cluster.RankFailed, match=r"have one tier of memory.*Simulation\(memory="):
        cluster.launch(lambda comm: comm.device, nodes=1, on="simulation")


def test_on_processes_the_same_program_runs_and_counts():
    def program(comm):
        with comm.device.on_host():
            down = comm.background(lambda inside: inside.device.send_back(X[:500] * 2))
        return (down.wait() == X[:500] * 2).all(), comm.device.use.sent_back

    assert cluster.launch(program, nodes=2, deadline=150).results == [(True, 2000)] * 2


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"device": 0}, ValueError, "device (bytes) must be above 0"),
        ({"device": "2MB"}, TypeError, "device (bytes)"),
        ({"link": 16e9}, TypeError, "link must be (latency in seconds, bytes per second), such as (10e-6, 16e9)"),
        ({"link": (-1e-6, 16e9)}, ValueError, "link: latency (seconds) must be at least 0"),
        ({"link": (0.0, 0.0)}, ValueError, "link: bytes per second must be above 0"),
        ({"host": 0}, ValueError, "host must be above 0"),
    ],
)
def test_a_memory_that_cannot_be_is_refused(settings, error, text):
    with pytest.raises(error) as refused:
        cluster.Memory(**settings)
    assert text in str(refused.value)


def test_the_memory_of_a_simulation_is_a_memory():
    with pytest.raises(TypeError, match=r"memory must be a cluster\.Memory, got float"):
        cluster.Simulation(memory=2e6)
