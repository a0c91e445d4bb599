"""A signal that arrives while an object is freed, where Python drops exceptions, ends the command all the same."""

import signal
import subprocess
import sys

import pytest

from tests.cli.command import environment, with_default_signals
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(60)

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


def run(happens, times=1, rest=30, program=PROGRAM):
    """Exit code and errors of a program that frees `times` objects, each time runs `happens`, then sleeps."""
    program = program.format(happens=happens, times=times, rest=rest)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=50,
        preexec_fn=with_default_signals,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("times", [1, *exhaustively(5)])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), *exhaustively((signal.SIGHUP, 129))]
)
def test_a_signal_while_an_object_is_freed_ends_the_program_in_silence(number, code, times):
    assert run(f"signal.raise_signal({int(number)})", times) == (code, "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_not_lost_if_what_it_interrupted_fails_before_it_is_sent_again(number, code):
    assert run(f"signal.raise_signal({int(number)})", program=FAILING) == (code, "")


def test_an_object_that_a_signal_has_left_half_made_is_freed_in_silence():
    made = "self.handle  # never set\n\n    def __init__(self):\n        signal.raise_signal(signal.SIGINT)"
    assert run(made) == (130, "")


def test_another_error_while_an_object_is_freed_is_printed_as_ever():
    code, errors = run("1 / 0", rest=0)
    assert "Exception ignored" in errors
    assert "ZeroDivisionError" in errors
    assert "nothing came" in errors
    assert code == 1
