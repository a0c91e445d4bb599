"""The command as a user runs it: in a process of its own, in an empty folder, with the kernels that start at once."""

from __future__ import annotations

import contextvars
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from minidl.cli.app import app
from minidl.parallel import Checkpoint
from tests.cli import ready_process, undrawn

ROOT = Path(__file__).parents[2]
QUICK = ("--model", "mlp", "--epochs", "2")  # a fraction of a second
SLOW = ("--model", "resnet", "--epochs", "3")  # about a second an epoch with the kernels of numpy

READ_WHEN_IT_RUNS = {"_MINIDL_COMPLETE", "COMP_WORDS", "COMP_CWORD"}
"""Variables that the command looks for when it runs; of others it may have read the values when it was imported."""


def environment(**changes: str) -> dict[str, str]:
    """What a run sees: this checkout, numpy's kernels, and no width or colour of the terminal that runs the tests."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR")}
    return kept | {"PYTHONPATH": str(ROOT), "MINIDL_KERNELS": "numpy"} | changes


def minidl(folder: Path, *arguments: object, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end: in a copy of the ready process, where its environment is that of these tests."""
    words = [str(argument) for argument in arguments]
    if changes.keys() <= READ_WHEN_IT_RUNS:
        is_drawn = not undrawn.is_in_place()
        if done := ready_process.run(folder, words, environment(), changes, is_drawn):
            return done
    return run_anew(folder, *words, **changes)


def run_anew(folder: Path, *arguments: object, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end in a new process, as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "minidl", *map(str, arguments)],
        cwd=folder,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=580,
    )


def start(folder: Path, *arguments: object, **changes: str) -> subprocess.Popen[str]:
    """Start the command in a process group of its own, as a shell does."""
    return subprocess.Popen(
        [sys.executable, "-m", "minidl", *map(str, arguments)],
        cwd=folder,
        env=environment(**changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=with_default_signals,
    )


def with_default_signals() -> None:
    """Hang-ups end the program, also where the tests themselves run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def read_until(process: subprocess.Popen[str], text: str) -> None:
    """Read what a started command says, up to the line that contains `text`."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(f"ended without {text!r}: {process.communicate()[1]}")


def wait_for(path: Path, seconds: float = 60.0) -> None:
    """Wait until there is a file."""
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"no {path} after {seconds} s"
        time.sleep(0.005)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The sentence on standard error with which the command, called in this process, ends with exit code 2."""
    with pytest.raises(SystemExit) as ending:
        contextvars.Context().run(app, [str(argument) for argument in arguments], prog_name="minidl")
    _, err = capsys.readouterr()
    assert ending.value.code == 2, err
    assert "Traceback" not in err
    return err


def assert_same_bits(one: Path, other: Path) -> None:
    """The weights, buffers and optimizer states of the checkpoints of two run folders are equal to the bit."""
    a, b = (Checkpoint.load(folder / "checkpoint.npz") for folder in (one, other))
    assert a.epoch == b.epoch
    assert_equal_trees(a.model, b.model)
    assert_equal_trees(a.optimizer, b.optimizer)
    assert a.schedule == b.schedule
    assert [row["loss"] for row in a.history] == [row["loss"] for row in b.history]


def assert_equal_trees(a: object, b: object) -> None:
    if isinstance(a, dict):
        assert isinstance(b, dict)
        assert a.keys() == b.keys()
        for key in a:
            assert_equal_trees(a[key], b[key])
    elif isinstance(a, list):
        assert isinstance(b, list)
        for left, right in zip(a, b, strict=True):
            assert_equal_trees(left, right)
    elif isinstance(a, np.ndarray):
        assert isinstance(b, np.ndarray)
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()
    else:
        assert a == b
