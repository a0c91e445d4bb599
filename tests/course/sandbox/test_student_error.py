"""The description of an exception that ended an answer."""

from __future__ import annotations

import pytest

from course.sandbox.errors.sources import Sources
from course.sandbox.errors.student_error import described
from minidl import cluster


def test_a_rank_that_returns_early_leaves_the_line_that_waits_for_it_as_the_place() -> None:
    for early in range(3):
        text = f"def program(comm):\n    if comm.rank == {early}:\n        return\n    comm.recv({early})\n"
        sources, names = Sources(), {}
        sources.add("<cell early>", "cell early", text)
        exec(compile(text, "<cell early>", "exec"), names)
        with pytest.raises(cluster.Deadlock) as caught:
            cluster.launch(names["program"], nodes=3, on="simulation")
        seen = described(caught.value, sources)
        assert seen["rank"] == early
        assert seen["place"].startswith("cell early, line 4")


def test_of_several_tracebacks_that_of_the_rank_at_fault_has_the_place() -> None:
    sources = Sources()
    sources.add("<cell>", "cell", "first\nsecond\n")
    tracebacks = {rank: f'  File "<cell>", line {rank + 1}, in program' for rank in range(2)}
    error = cluster.ClusterError("failed", rank=1, cause=ValueError("failed"), tracebacks=tracebacks)
    assert described(error, sources)["place"].startswith("cell, line 2")


GIVEN = 'raise NotImplementedError("write the body of this function")'
KINDS = {
    "as it was handed out": (f'def f(x, *more, y=1):\n    """Says what."""\n    {GIVEN}\n', "not attempted"),
    "an empty one": ("def f(x):\n    raise NotImplementedError\n", "not attempted"),
    "one case of two": (f"def f(x):\n    if x > 1:\n        return x\n    {GIVEN}\n", "raised"),
    "the line left behind the answer": (f"def f(x):\n    y = 2 * x\n    {GIVEN}\n    return y\n", "raised"),
    "another function": (f"def helper(x):\n    {GIVEN}\ndef f(x):\n    return helper(x)\n", "raised"),
}


def test_not_attempted_is_only_a_function_that_does_nothing_but_raise() -> None:
    for what, (text, kind) in KINDS.items():
        sources, names = Sources(), {}
        sources.add("<cell f>", "cell f", text)
        exec(compile(text, "<cell f>", "exec"), names)
        with pytest.raises(NotImplementedError) as caught:
            names["f"](1)
        seen = described(caught.value, sources)
        assert seen["kind"] == kind, what
        assert seen["place"].startswith("cell f, line"), what
        assert "raise NotImplementedError" in seen["place"], what


def test_students_whose_cells_have_the_same_name_keep_their_own_lines() -> None:
    first, second = Sources(), Sources()
    first.add("<cell f>", "cell f", "def f():\n    return one\n")
    second.add("<cell f>", "cell f", "def f():\n    return another\n    # more\n")
    assert first.line("<cell f>", 2) == "cell f, line 2: return one"
    assert first.line("<cell f>", 3) == "cell f, line 3"
    assert second.line("<cell f>", 2) == "cell f, line 2: return another"


def test_a_place_names_the_function_unless_its_cell_has_that_name() -> None:
    sources = Sources()
    sources.add("<cell f>", "cell f", "def f():\n    g()\ndef g():\n    1 / 0\n")
    assert sources.place([("<cell f>", 2, "f")]) == "cell f, line 2: g()"
    assert sources.place([("<cell f>", 2, "f"), ("<cell f>", 4, "g")]) == "cell f, line 4 in g: 1 / 0"
