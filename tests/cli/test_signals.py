"""A signal that arrives while an object is freed, where Python drops exceptions, ends the command all the same."""

import signal
import subprocess
import sys

import pytest

from tests.cli.command import environment, with_default_signals
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

PROGRAM = """
import signal, sys, time
from minidl.cli.signals import answer_signals

class Freed:
    def __del__(self):
        {happens}

answer_signals()
try:
    for _ in range({times}):
        Freed()
    time.sleep({rest})
    sys.exit("nothing came")
except KeyboardInterrupt:
    sys.exit(130)
"""

FAILING = """
import signal, typer
from minidl.cli import display, mpi_job  # imported before, so that the error is printed at once
from minidl.cli.ending import ending
from minidl.cli.signals import answer_signals

class Freed:
    def __del__(self):
        {happens}

def command():
    answer_signals()
    with ending("command"):
        Freed()
        raise RuntimeError("no compiled object yet")

typer.run(command)
"""

HALF_MADE = "self.handle  # never set\n\n    def __init__(self):\n        signal.raise_signal(signal.SIGINT)"


def run(happens, times=1, rest=100, program=PROGRAM, before=with_default_signals):
    """Exit code and errors of a program that frees `times` objects, each time runs `happens`, then sleeps."""
    program = program.format(happens=happens, times=times, rest=rest)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=250,
        preexec_fn=before,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("number", "times"), [(signal.SIGINT, 5), (signal.SIGTERM, 1), *exhaustively((signal.SIGHUP, 1))]
)
def test_a_signal_while_an_object_is_freed_ends_the_program_in_silence(number, times):
    assert run(f"signal.raise_signal({int(number)})", times) == (128 + number, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, *exhaustively(signal.SIGINT)])
def test_a_signal_is_not_lost_if_what_it_interrupted_fails_before_it_is_sent_again(number):
    assert run(f"signal.raise_signal({int(number)})", program=FAILING) == (128 + number, "")


def test_an_object_half_made_at_a_signal_is_freed_without_output():
    assert run(HALF_MADE) == (130, "")


def test_another_error_while_an_object_is_freed_is_printed_as_ever():
    code, errors = run("1 / 0", rest=0)
    assert code == 1
    for text in ("Exception ignored", "ZeroDivisionError", "nothing came"):
        assert text in errors


def test_an_ignored_sighup_changes_nothing():
    ignoring = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    assert run("signal.raise_signal(signal.SIGHUP)", rest=0, before=ignoring) == (1, "nothing came\n")
