"""What a check is told of an exception that ended an answer."""

from __future__ import annotations

import pytest

from course.checking.sources import Sources
from course.checking.student_error import described
from minidl import cluster

NODES = 3


@pytest.mark.parametrize("early", [0, 1, 2])
def test_a_rank_that_returns_early_leaves_the_line_that_waits_for_it_as_the_place(early: int) -> None:
    text = f"def program(comm):\n    if comm.rank == {early}:\n        return\n    comm.recv({early})\n"
    sources, names = Sources(), {}
    sources.add("<cell early>", "cell early", text)
    exec(compile(text, "<cell early>", "exec"), names)
    with pytest.raises(cluster.Deadlock) as caught:
        cluster.launch(names["program"], nodes=NODES, on="simulation")
    seen = described(caught.value, sources)
    assert seen["rank"] == early
    assert seen["place"].startswith("cell early, line 4")


def test_of_several_tracebacks_that_of_the_rank_at_fault_has_the_place() -> None:
    sources = Sources()
    sources.add("<cell>", "cell", "first\nsecond\n")
    tracebacks = {rank: f'  File "<cell>", line {rank + 1}, in program' for rank in range(2)}
    error = cluster.ClusterError("failed", rank=1, cause=ValueError("failed"), tracebacks=tracebacks)
    assert described(error, sources)["place"].startswith("cell, line 2")
