"""The line of progress: redrawn on a terminal of any width, now and then a line elsewhere, and when a run will end."""

from __future__ import annotations

import io
import itertools
import re

import pytest
from rich.console import Console

from minidl.cli import display, mpi_job
from minidl.cli.display import LiveBar, left_text

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Screen(io.StringIO):
    """A terminal that remembers all that was written to it."""

    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        return [line for line in re.split(r"[\r\n]+", CONTROL.sub("", self.getvalue())) if line.strip()]


@pytest.fixture(autouse=True)
def _four_seconds_between_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "monotonic", itertools.count(1000.3, 4.1).__next__)


def shown(console: Console, begin: int = 0, total: int = 30) -> None:
    with LiveBar(console, "running") as bar:
        for done in range(begin, total + 1):
            bar.show(done, total, f"run {done} of {total}", "synchronous:compressor=ef(top_k(0.01)) on infiniband")


def on_screen(width: int, **changes: str) -> Screen:
    screen = Screen()
    shown(Console(file=screen, width=width, _environ={"TERM": "xterm"} | changes))
    return screen


def test_without_a_terminal_a_line_is_printed_at_most_every_ten_seconds_with_the_time_left(capsys):
    shown(Console(file=io.StringIO()))
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert len(lines) == 31 // 3  # a call every 4.1 seconds
    assert lines[0] == "run 2 of 30      7% done       synchronous:compressor=ef(top_k(0.01)) on infiniband, 2 min left"
    assert [line.rpartition(", ")[2] for line in lines[-3:]] == ["29 s left", "16 s left", "4 s left"]


@pytest.mark.parametrize("begin", [0, 18])
def test_the_time_left_of_a_resumed_run_counts_what_was_done_since_then(begin, capsys):
    shown(Console(file=io.StringIO()), begin)
    line = next(line for line in capsys.readouterr().err.splitlines() if line.startswith("run 23 "))
    assert line.endswith(", 29 s left")  # seven calls


@pytest.mark.parametrize("width", [24, 40, 79, 80, 131])
def test_on_a_terminal_of_any_width_it_is_one_line_that_ends_with_the_time_left(width):
    lines = on_screen(width).lines
    assert len(lines) > 30
    assert max(map(len, lines)) <= width
    assert ("━" in lines[5]) == (width >= display.NARROWEST)
    assert "".join(lines[5].split()).endswith(",2minleft")
    assert "…" not in "".join(lines)


def test_the_line_is_gone_at_the_end_and_results_stay_above_it():
    screen = Screen()
    with LiveBar(Console(file=screen, width=80, _environ={"TERM": "xterm"}), "running") as bar:
        bar.show(1, 3, "first", "step")
        bar.say("a result [bold]")
        bar.show(2, 3, "second", "step")
    written = screen.getvalue()
    assert written.endswith("\x1b[1A\x1b[2K")
    assert [line.split()[0] for line in screen.lines] == ["running", "first", "a", "first", "second", "second"]
    assert "a result [bold]\n" in CONTROL.sub("", written)


def test_a_terminal_that_cannot_go_back_and_a_file_get_no_control_characters(capsys):
    dumb, file = on_screen(80, TERM="dumb"), io.StringIO()
    shown(Console(file=file, _environ={"FORCE_COLOR": "1"}))
    assert (dumb.getvalue(), file.getvalue()) == ("", "")
    assert len(capsys.readouterr().err.splitlines()) == 2 * (31 // 3)


def test_a_quiet_command_and_the_other_copies_under_mpiexec_show_nothing(monkeypatch, capsys):
    shown(Console(quiet=True))
    monkeypatch.setattr(mpi_job, "is_silent", lambda: True)
    shown(Console(file=io.StringIO()))
    assert on_screen(80).getvalue() == ""
    assert capsys.readouterr() == ("", "")


def test_what_is_done_twice_is_no_progress(capsys):
    """An elastic run repeats an epoch; the rows of an asynchronous one come at its end, from the first."""
    with LiveBar(Console(file=io.StringIO()), "running") as bar:
        for done in (1, 2, 5, 3, 4, 6, 7):
            bar.show(done, 10, f"step {done}", "one")
    assert [" ".join(line.split()) for line in capsys.readouterr().err.splitlines()] == [
        "step 5 50% done one, 10 s left",
        "step 6 60% done one, 16 s left",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.3, "0 s"),
        (89.4, "89 s"),
        (89.6, "90 s"),
        (91, "2 min"),
        (3570, "1 h 0 min"),
        (35_000, "9 h 43 min"),
        (1e6, "278 h"),
    ],
)
def test_a_duration_is_rough(seconds, text):
    assert left_text(seconds) == text
