"""The page of a player holds every event, is complete and inert, and is the same for the same run."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.trace import trace as trace_module
from minidl.cluster.trace.trace import Trace, play_traces
from minidl.parallel import pipeline
from minidl.plots.player import page as player_page
from minidl.plots.player.columns import Played, Run
from minidl.plots.player.page import Player
from tests.plots.player.decoded import meta_of, runs_of, script

NASTY = "</script><script>alert(1)</script><b>&\u2028 \U0001f600 \ud800 grün"


def program(comm: cluster.Communicator) -> None:
    """Three steps with a slow rank, a concurrent reduction, and a label that would break out of the page."""
    for _ in range(3):
        comm.mark("forward")
        comm.compute(seconds=2e-3 * (1 + (comm.rank == 3)))
        work = comm.all_reduce(np.ones(3_000), async_op=True)
        comm.mark(NASTY)
        comm.compute(seconds=1.7e-3)
        work.wait()
        comm.all_reduce(np.ones(30_001), algorithm="ring")


@pytest.fixture(scope="module")
def trace() -> Trace:
    faults = cluster.FaultPlan().slow(1, 1.3)
    return cluster.launch(program, nodes=5, on="simulation", network="10gbe", faults=faults).trace


@pytest.fixture(scope="module")
def page(trace: Trace) -> str:
    return trace.player("A run").html


def one_run(*events: Played, **options: object) -> Player:
    ranks = 1 + max((event.rank for event in events), default=0)
    return Player([Run(events, **{"ranks": ranks, "source": "measured", **options})])  # type: ignore[arg-type]


def test_the_page_has_every_event_with_its_times_to_1e_minus_9(trace: Trace, page: str) -> None:
    [(found, _)] = runs_of(page)
    assert len(found) == len(trace.events) > 300
    given, [run] = sorted(trace.events, key=lambda e: (e.rank, e.lane, e.start)), trace.player().runs
    expected = sorted(run.events, key=lambda e: (e.rank, e.lane, e.start))
    for read, played, event in zip(found, expected, given, strict=True):
        for name in ("rank", "lane", "kind", "nbytes", "peer", "label", "operation", "call", "axis"):
            assert getattr(read, name) == getattr(played, name) == getattr(event, name)
        assert (played.start, played.end) == (event.start, event.end)
        assert (read.start, read.end, read.ready) == pytest.approx((event.start, event.end, played.ready), rel=1e-9)
        if played.cause >= 0:
            assert found[read.cause][:2] == run.events[played.cause][:2]  # rank and kind


def test_the_ends_of_a_message_name_each_other_and_a_wait_names_what_it_waited_for(page: str) -> None:
    [(found, _)] = runs_of(page)
    linked = [(event, found[event.cause]) for event in found if event.cause >= 0]
    for event, cause in linked:
        assert (event.peer, event.operation) == (cause.rank, cause.operation)
        if event.kind in ("send", "receive"):
            assert cause.kind == ("receive" if event.kind == "send" else "send")
            assert event.nbytes in (cause.nbytes, 0)  # 0: the delivery of a send that was posted before
        if event.kind == "receive":
            assert found[cause.cause] is event
    received = [event for event in found if event.kind == "receive"]
    assert all(event.cause >= 0 and event.start <= event.ready <= event.end for event in received)
    waits = [(event, cause) for event, cause in linked if event.kind == "wait" and event.lane == 0]
    assert len(waits) > 5
    assert all(cause.start <= event.end + 1e-12 for event, cause in waits)


def test_the_critical_path_of_the_page_is_that_of_the_trace(trace: Trace, page: str) -> None:
    [(_, path)] = runs_of(page)
    expected = [(event.rank, event.lane, event.start, event.end) for event in trace.critical_path()]
    assert [place[:2] for place in path] == [place[:2] for place in expected]
    np.testing.assert_allclose([place[2:] for place in path], [place[2:] for place in expected], rtol=1e-9, atol=1e-14)
    assert trace.critical_path().summary().splitlines()[0] in page


def test_the_page_needs_nothing_else_and_its_script_is_small(page: str) -> None:
    assert len(script(page, "module").encode()) <= 60_000
    assert not re.search(r"https?:|//\w+\.\w+|@import|url\(|\bimport\b|\beval\b|innerHTML", page)
    assert "default-src 'none'" in page


def test_labels_and_titles_are_text_and_never_markup(trace: Trace) -> None:
    page = play_traces([trace], [NASTY], title=NASTY).html
    assert NASTY in meta_of(page)["strings"]
    assert page.count("</script>") == 3
    assert "<b>" not in page
    embedded = trace.player(NASTY)._repr_html_()
    assert embedded.count("<") == 2  # the frame alone


def test_the_same_run_gives_the_same_bytes(page: str, trace: Trace, tmp_path: Path) -> None:
    trace.to_html(tmp_path / "run.html", "A run")
    assert (tmp_path / "run.html").read_text(encoding="utf-8") == page


def test_a_thousand_alike_ranks_are_stored_once() -> None:
    ring = [Played(rank, "receive", 0.25, 1.75, 96, (rank - 1) % 1000, cause=(rank - 1) % 1000) for rank in range(1000)]
    page = one_run(*ring).html
    [run] = meta_of(page)["runs"]
    assert (len(run["rows"]), run["tracks"], {look for *_, look in run["rows"]}) == (1000, [1], {0})
    [(events, _)] = runs_of(page)
    assert [(event.peer, event.cause) for event in events] == [(e.peer, e.peer) for e in ring]


@pytest.mark.parametrize("times", [(0.0, math.inf), (math.nan, 1.0), (0.0, math.nan), (-1.0, 1.0), (2.0, 1.0)])
def test_impossible_times_are_refused(times: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match=r"needs events that start at 0 or later.* for event 1, 'wait' of rank 0"):
        _ = one_run(Played(0, "wait", 0.0, 1.0), Played(0, "wait", *times)).html


def test_runs_without_events_and_with_moments_alone_have_a_page() -> None:
    assert runs_of(one_run().html) == [([], [])]
    [(events, _)] = runs_of(one_run(Played(0, "fault", 0.0, 0.0, label="killed")).html)
    assert [(event.label, event.start, event.end) for event in events] == [("killed", 0.0, 0.0)]


def test_no_run_several_units_and_a_rank_too_many_are_refused() -> None:
    with pytest.raises(ValueError, match="got no run"):
        Player([])
    with pytest.raises(ValueError, match=r"one unit of time, got \['s', 'units'\]"):
        Player([Run((), 1, "measured"), Run((), 1, "measured", unit="units")])
    with pytest.raises(ValueError, match=r"of a rank below 2, got .* for event 0, 'wait' of rank 2"):
        _ = one_run(Played(2, "wait", 0.0, 1.0), ranks=2).html
    with pytest.raises(ValueError, match="titles must have one for each of the 0 traces, got 1"):
        play_traces([], ["one"])


def test_a_run_with_too_many_events_is_cut_and_says_so(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "MOST_EVENTS", 140)
    two = play_traces([trace, trace], ["one", "other"])
    assert two.runs[0].note in two.html
    events, note = two.runs[0].events, two.runs[0].note
    assert len(events) <= 70
    assert note.startswith(f"the first {len(events)} of {len(trace.events)} events, which start before")


def test_a_notebook_refuses_a_large_page_with_a_sentence(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player_page, "MOST_IN_A_CELL", 1000)
    assert re.search(
        r"^<p>This player has 0\.\d MB, more than .* \.save", re.sub("<code>", "", trace.player()._repr_html_())
    )


def test_the_table_in_words_has_the_shares_of_each_rank(trace: Trace, page: str) -> None:
    run = cluster.launch(lambda comm: comm.compute(seconds=1.0 + comm.rank), nodes=2, on="simulation")  # 0 ends early
    for each, text in ((trace, page), (run.trace, run.trace.player().html)):
        for rank in range(each.size):
            cells = re.findall(rf"<th scope=row>{rank}</th>((?:<td>[^<]*</td>)+)", text)
            found = [float(share) for share in re.findall(r"<td>([\d.]+)%", cells[0])]
            compute, _, waiting = each.shares(rank)
            assert (found[0], found[-1]) == pytest.approx((100 * compute, 100 * waiting), abs=0.051)


@pytest.mark.parametrize(
    ("kind", "message"), [(pipeline.OneFOneB(4, 7), 0.3), (pipeline.ZeroBubbleV(3, 6, 2), 1.7)], ids=["1f1b", "zb-v"]
)
def test_a_schedule_is_played_as_simulated_each_action_after_the_one_it_needs(
    kind: pipeline.Schedule, message: float
) -> None:
    timeline = pipeline.simulate(kind, pipeline.Times(message=message))
    [(events, path)] = runs_of(timeline.player().html)
    bars = [(b.stage, kind.text(b.action), b.start, b.end) for s in range(kind.stages) for b in timeline.of(s)]
    assert [(e.rank, e.label) for e in events] == [bar[:2] for bar in bars]
    np.testing.assert_allclose([(e.start, e.end) for e in events], [bar[2:] for bar in bars], rtol=1e-9)
    for event in events:
        if event.kind != "update" and event.start > 0 and not event.label.startswith(("F", "0F")):
            assert event.cause >= 0
            needed = events[event.cause]
            assert needed.end + message * (needed.rank != event.rank) <= event.start + 1e-9
    assert path[0][2] == 0.0
    assert path[-1][3] == pytest.approx(timeline.makespan)
    for before, after in pairwise(path):  # without a pause, but for a message from another stage
        assert after[2] - before[3] == pytest.approx(message * (before[0] != after[0]), abs=1e-9)
