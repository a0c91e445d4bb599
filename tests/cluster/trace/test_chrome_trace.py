"""The Chrome trace obeys the rules of the Trace Event Format, checked on the decimal numbers that stand in the file."""

import gzip
import json
import tracemalloc
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.trace import chrome_trace
from minidl.cluster.trace.recording import Event

pytestmark = pytest.mark.timeout(300)

Entry = dict[str, Any]


def check(document: Entry) -> dict[tuple[int, int], list[Entry]]:
    """Assert what Perfetto needs of a trace; returns the slices of each thread."""
    entries = document["traceEvents"]
    threads = {(e["pid"], e["tid"]) for e in entries if e["ph"] == "M" and e["name"] == "thread_name"}
    orders = [e["args"]["sort_index"] for e in entries if e["name"] == "thread_sort_index"]
    assert len(set(orders)) == len(orders) == len(threads)
    assert [e["args"]["name"] for e in entries if e["name"] == "process_name"]
    slices: dict[tuple[int, int], list[Entry]] = {thread: [] for thread in threads}
    last: dict[tuple[int, int], Decimal] = {}
    ends: dict[str, dict[int, Entry]] = {"s": {}, "f": {}}
    for entry in entries:
        assert entry["ph"] in {"X", "M", "i", "s", "f"}
        assert isinstance(entry["name"], str)
        if entry["ph"] == "M":
            continue
        thread = entry["pid"], entry["tid"]
        assert thread in threads
        assert isinstance(entry["cat"], str)
        begin = Decimal(entry["ts"])
        assert begin >= last.get(thread, Decimal(0))
        last[thread] = begin
        if entry["ph"] == "X":
            assert Decimal(entry["dur"]) >= 0
            assert isinstance(entry["args"], dict)
            slices[thread].append(entry)
        elif entry["ph"] == "i":
            assert entry["s"] == "t"
        else:
            assert entry["id"] not in ends[entry["ph"]]
            ends[entry["ph"]][entry["id"]] = entry
    for members in slices.values():
        check_nesting(members)
    assert ends["s"].keys() == ends["f"].keys()
    for number, begin in ends["s"].items():
        end = ends["f"][number]
        assert end["bp"] == "e"
        assert (begin["name"], begin["cat"]) == (end["name"], end["cat"])
        assert Decimal(begin["ts"]) <= Decimal(end["ts"])
        assert begin["tid"] != end["tid"]
    return slices


def check_nesting(slices: list[Entry]) -> None:
    """In the order of the file, a slice lies wholly inside the one that is open, or begins when that has ended."""
    open_until: list[Decimal] = []
    for entry in slices:
        begin = Decimal(entry["ts"])
        end = begin + Decimal(entry["dur"])
        while open_until and open_until[-1] <= begin:
            open_until.pop()
        assert not open_until or end <= open_until[-1]
        open_until.append(end)


def document_of(events: list[Event], ranks: int) -> Entry:
    text = json.dumps({"traceEvents": list(chrome_trace.entries(lambda: iter(events), ranks, "simulated"))})
    return json.loads(text, parse_float=Decimal)  # type: ignore[no-any-return]


def written(trace: cluster.Trace, path: Path) -> Entry:
    trace.to_chrome(path)
    return json.loads(path.read_text(), parse_float=Decimal)  # type: ignore[no-any-return]


def test_the_file_of_a_real_run_has_a_thread_a_rank_and_a_lane_with_calls_around_their_messages(tmp_path: Path) -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.mark("forward")
        for n in (0, 1, 10, 20_000):
            work = comm.all_reduce(np.ones(n), algorithm="ring", async_op=True)
            comm.sendrecv(np.ones(n), (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size)
            work.wait()
            comm.barrier()

    run = cluster.launch(program, nodes=3)
    document = written(run.trace, tmp_path / "trace.json")
    slices = check(document)
    assert document["otherData"]["source"] == "measured"
    names = [e["args"]["name"] for e in document["traceEvents"] if e["name"] == "thread_name"]
    assert names == [f"rank {rank}{lane}" for rank in range(3) for lane in ("", ", concurrent (1)")]
    for rank in range(3):
        assert {"sendrecv", "barrier", "all_reduce", "forward"} <= {e["name"] for e in slices[0, rank]}
        assert {"all_reduce", "send", "receive"} <= {e["name"] for e in slices[0, rank + 3]}
    arrows = [e for e in document["traceEvents"] if e["ph"] == "s"]
    assert len(arrows) == sum(traffic.messages for rank in run.trace.ledger() for traffic in rank.values())


def test_times_that_no_decimal_meets_still_nest() -> None:
    events, time = [], 0.1
    for call in range(2000):
        edges = [time + x for x in np.cumsum(np.random.default_rng(call).exponential(1e-9, 3)).tolist()]
        events += [
            Event(0, "wait", time, edges[0], 0, 1, "", "recv", call),
            Event(0, "receive", edges[0], edges[1], 8, 1, "", "recv", call),
            Event(0, "compute", edges[1], edges[2], 0, -1, "", "", call),
        ]
        time = edges[2]
    (slices,) = check(document_of(events, 1)).values()
    assert len(slices) >= 6000


def test_a_fault_is_an_instant_and_messages_of_one_moment_keep_their_order() -> None:
    def message(rank: int, kind: str, start: float, nbytes: int, peer_posted: float | None) -> Event:
        return Event(rank, kind, start, start + 1, nbytes, 1 - rank, "", kind, 1, 0, 0.0, peer_posted)

    events = [
        message(0, "send", 0.0, 1, None),
        Event(0, "fault", 0.5, 0.5, 0, -1, "dropped", "send", 1),
        message(0, "send", 1.0, 2, None),
        message(1, "receive", 1.0, 1, 0.0),
        message(1, "receive", 2.0, 2, 0.0),
        message(1, "receive", 3.0, 3, 0.0),  # its send is not there
    ]
    document = document_of(events, 2)
    check(document)
    entries = document["traceEvents"]
    assert [(e["name"], e["ts"]) for e in entries if e["ph"] == "i"] == [("dropped", Decimal("500000.0"))]
    begins = {e["id"]: e["ts"] for e in entries if e["ph"] == "s"}
    ends = {e["id"]: e["ts"] for e in entries if e["ph"] == "f"}
    assert [(begins[n], ends[n]) for n in sorted(begins)] == [(0, 10**6), (10**6, 2 * 10**6)]


def ring(comm: cluster.Communicator, times: int) -> None:
    for _ in range(times):
        comm.all_reduce(cluster.Phantom(1 << 20), algorithm="ring")


def test_a_long_trace_is_written_in_little_memory(tmp_path: Path) -> None:
    trace = cluster.launch(ring, args=(3,), nodes=16, on="simulation", network="10gbe").trace
    events = len(trace.events)
    del trace.__dict__["events"]
    tracemalloc.start()
    try:
        trace.to_chrome(tmp_path / "trace.json")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert events > 2_500
    assert peak < 150 * events  # with a document of all entries in memory: more than 1,000
    assert (tmp_path / "trace.json").stat().st_size > 200 * events


def test_a_name_that_ends_with_gz_gives_the_same_trace_compressed(tmp_path: Path) -> None:
    trace = cluster.launch(ring, args=(1,), nodes=4, on="simulation", network="10gbe").trace
    document = written(trace, tmp_path / "trace.json")
    check(document)
    trace.to_chrome(tmp_path / "trace.json.gz")
    with gzip.open(tmp_path / "trace.json.gz", "rt", encoding="utf-8") as file:
        assert json.load(file, parse_float=Decimal) == document
    assert document["otherData"] == {"source": "simulated", "note": ""}


def test_a_trace_without_events_is_a_valid_file(tmp_path: Path) -> None:
    document = written(cluster.Trace([None, None], "measured"), tmp_path / "trace.json")
    assert check(document) == {(0, 0): [], (0, 1): []}
    assert document["otherData"]["note"] == "nothing came from rank 0, 1"
