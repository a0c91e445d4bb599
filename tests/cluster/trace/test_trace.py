"""The trace: who did what, when; its ledger, shares, picture and Chrome file."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from minidl import cluster
from minidl.cluster.trace.recorder import Recorder
from tests.cluster.blocked import wait_until_blocked

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def run() -> cluster.Run:
    """Rank 1 sends when rank 0 waits for it; then both reduce a large array."""

    def program(comm: cluster.Communicator) -> float:
        comm.mark("forward")
        if comm.rank == 1:
            wait_until_blocked(comm, 0)
            comm.send(np.ones(1000), 0)
        else:
            comm.recv(1)
        comm.mark("backward")
        comm.all_reduce(np.ones(100_000), algorithm="ring")
        return comm.now()

    return cluster.launch(program, nodes=2)


def test_the_events_of_a_rank_follow_one_another_without_gap_or_overlap(run: cluster.Run) -> None:
    for rank in range(2):
        events = [event for event in run.trace.events if event.rank == rank]
        assert all(before.end == after.start for before, after in pairwise(events))
        assert all(event.start <= event.end for event in events)
        assert events[0].start >= 0
        assert run.results[rank] <= events[-1].end


def test_a_receive_is_waiting_until_the_sender_was_there_and_transfer_after_that(run: cluster.Run) -> None:
    wait, receive = (e for e in run.trace.events if e.rank == 0 and e.operation == "recv")
    (send,) = (e for e in run.trace.events if e.rank == 1 and e.operation == "send")
    assert (wait.kind, receive.kind) == ("wait", "receive")
    assert wait.end > wait.start
    assert wait.end == receive.start
    assert send.start <= wait.end <= send.end  # the sender posted within its send: one clock for all ranks
    assert (receive.peer, receive.nbytes, wait.peer) == (1, 8000, 1)


def test_a_large_send_waits_until_the_receiver_was_there() -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 0:
            comm.send(np.ones(100_000), 1)
        else:
            wait_until_blocked(comm, 0)
            comm.recv(0)

    trace = cluster.launch(program, nodes=2).trace
    events = [e for e in trace.events if e.rank == 0 and e.operation == "send"]
    assert [e.kind for e in events] == ["send", "wait", "send"]
    assert events[1].end > events[1].start
    assert trace.ledger()[0]["send"].messages == 1


def test_compute_carries_the_label_of_the_last_mark(run: cluster.Run) -> None:
    computes = [event for event in run.trace.events if event.rank == 1 and event.kind == "compute"]
    assert sum(event.end - event.start for event in computes if event.label == "forward") > 0
    assert "backward" in {event.label for event in computes}
    assert {e.label for e in run.trace.events if e.operation == "all_reduce"} == {"backward"}
    assert {e.kind for e in run.trace.events if e.operation == "all_reduce"} >= {"send", "receive", "reduce"}


def test_shares_add_up_to_one_and_agree_with_the_events(run: cluster.Run) -> None:
    for rank in (0, 1, None):
        shares = run.trace.shares(rank)
        assert sum(shares) == pytest.approx(1)
        events = [event for event in run.trace.events if rank is None or event.rank == rank]
        total = sum(event.end - event.start for event in events)
        waiting = sum(event.end - event.start for event in events if event.kind == "wait")
        assert shares.waiting == pytest.approx(waiting / total)


def test_beyond_the_bound_only_ledger_and_shares_go_on_and_the_trace_says_so() -> None:
    def program(comm: cluster.Communicator) -> None:
        for _ in range(100):
            comm.sendrecv(np.ones(1), 1 - comm.rank, 1 - comm.rank)
        comm.compute(seconds=0.01)

    trace = cluster.launch(program, nodes=2, on=cluster.Processes(trace_events=50)).trace
    assert len(trace.events) == 100
    assert trace.dropped >= 300
    assert f"the last {trace.dropped} events were not kept" in repr(trace)
    assert trace.ledger()[1]["sendrecv"] == (100, 800, 100, 800, 100)
    assert trace.shares().compute > 0


def names(figure: Figure) -> set[str]:
    return {text.get_text() for text in figure.legends[0].get_texts()}


def test_the_picture_is_drawn_and_saved_and_the_critical_path_outlined_on_demand(
    run: cluster.Run, tmp_path: Path
) -> None:
    figure = run.trace.plot(tmp_path / "timeline.png", start=0.0, end=0.05, title="a title")
    assert (tmp_path / "timeline.png").read_bytes().startswith(b"\x89PNG")
    assert names(figure) == {event.kind for event in run.trace.events if event.start < min(event.end, 0.05)}
    assert "critical path" not in names(run.trace.plot())
    assert "critical path" in names(run.trace.plot(critical_path=True))


def test_two_runs_are_drawn_one_above_the_other(run: cluster.Run) -> None:
    again = cluster.launch(lambda comm: comm.barrier(), nodes=3, on="simulation", network="1gbe").trace
    upper, lower = cluster.plot_traces([run.trace, again], titles=["first", "second"], end=0.01).axes
    assert upper.get_title(loc="left").startswith("measured: first")
    assert lower.get_title(loc="left").startswith("simulated: second")
    assert upper.get_xlim() == lower.get_xlim()
    with pytest.raises(ValueError, match="one for each of the 2 traces, got 1"):
        cluster.plot_traces([run.trace, again], titles=["first"])


def test_collectives_beside_the_program_are_events_in_a_lane_of_their_own() -> None:
    def program(comm: cluster.Communicator) -> None:
        work = comm.all_reduce(np.ones(50_000), algorithm="ring", async_op=True)
        comm.compute(seconds=0.01, label="beside")
        work.wait()

    trace = cluster.launch(program, nodes=2).trace
    for rank in range(2):
        beside = {e.kind for e in trace.events if e.rank == rank and e.lane == 1}
        assert {"send", "receive", "reduce"} <= beside
        assert "compute" not in beside
        assert "beside" in {e.label for e in trace.events if e.rank == rank and e.lane == 0 and e.kind == "compute"}
    assert trace.critical_path().note == ""


def test_a_recorder_needs_no_engine_only_a_clock() -> None:
    times = iter([0.0, 2.0, 2.5, 6.0, 7.0])
    recorder = Recorder(lambda: next(times), max_events=10)
    recorder.mark("early")  # nothing has a label up to here
    recorder.enter("recv")  # at 2.5
    recorder.received(8, peer=3, posted=2.5, peer_posted=4.0)  # at 6
    recorder.leave()
    recording = recorder.close()
    assert [(kind, start, end, place[0]) for kind, start, end, *_, place in recording.rows] == [
        (0, 0.0, 2.0, ""),
        (0, 2.0, 2.5, "early"),
        (4, 2.5, 4.0, "early"),
        (2, 4.0, 6.0, "early"),
        (0, 6.0, 7.0, "early"),
    ]
    assert recorder.shares() == pytest.approx((3.5 / 7, 2.0 / 7, 1.5 / 7))


def test_compute_after_a_failed_call_belongs_to_no_operation() -> None:
    times = iter([0.0, 1.0, 2.0, 3.0, 4.0])
    recorder = Recorder(lambda: next(times), max_events=10)
    recorder.enter("recv", "dp")  # raises, so that nobody calls `leave`
    recorder.enter("send", "tp")
    recorder.sent(8, peer=1, posted=2.0)
    recorder.leave()
    places = [place for *_, place in recorder.close().rows]
    assert places == [("", "", 0, 0, ""), ("", "", 1, 0, "dp"), ("", "send", 2, 0, "tp"), ("", "", 2, 0, "")]
