"""The program as a user starts it, in a process of its own: its start, what its environment says, where it writes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import environment, minidl, run_anew

pytestmark = pytest.mark.timeout(300)


def test_the_program_prints_and_returns_the_same_as_a_call_in_this_process(tmp_path):
    words = ("train", "--nodes", 4, "--batch-size", 3)
    called, started = minidl(tmp_path, *words), run_anew(tmp_path, *words)
    assert started.stderr == (
        "minidl train: a minibatch of 3 samples cannot be shared by 4 nodes: give --batch-size 4 or more\n"
    )
    assert (started.returncode, started.stdout) == (2, "")
    assert (called.returncode, called.stdout, called.stderr) == (2, "", started.stderr)


def test_the_results_are_written_in_spite_of_an_ascii_terminal_and_a_missing_backend(tmp_path):
    changes = {"PYTHONIOENCODING": "ascii", "MPLBACKEND": "module://nope"}
    result = run_anew(tmp_path, "schedule", "--out", "\N{MICRO SIGN}", **changes)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith("In \\xb5: 1f1b.csv, schedule.html, schedule.png\n")
    assert (tmp_path / "\N{MICRO SIGN}" / "schedule.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_said_in_one_sentence(tmp_path):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "minidl", "networks"]
        result = subprocess.run(
            command, cwd=tmp_path, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert result.returncode == 2
    assert result.stderr == "minidl networks: [Errno 28] No space left on device\n"


def test_a_reader_that_goes_away_ends_the_run_without_a_traceback(tmp_path):
    command = [sys.executable, "-m", "minidl", "train", "--model", "mlp", "--epochs", "100000"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        _, err = process.communicate(timeout=280)
    assert process.returncode == 1
    assert err == ""


def test_help_and_completion_come_without_numpy_the_type_checker_and_numba(tmp_path):
    """Importing what the commands run with would take a second."""
    program = "import sys; from minidl.cli.app import app; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], check=True, env=environment(), capture_output=True, text=True
    ).stdout
    assert not {"numpy", "pydantic", "numba", "matplotlib.figure"} & set(re.findall(r"\S+", loaded))
