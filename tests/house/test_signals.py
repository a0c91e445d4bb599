"""Tests that send Ctrl-C hold wherever they are started, in the background of a script too."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

CHECK = """
import signal, sys, subprocess
from tests import conftest
assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
conftest.let_ctrl_c_through()
child = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout, end="")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there no process inherits what is ignored")
def test_programs_that_tests_start_hear_ctrl_c_although_pytest_was_started_with_sigint_ignored() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
