"""Kernels are compiled once per machine: a later start loads them all from the cache on disk."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.command import ROOT, environment

START = """
from numba.core import event
from minidl.kernels.jit.first_calls import warm_up

recorder = event.RecordingListener()
event.register("numba:compile", recorder)
warm_up()
print(sum(one.is_start for _, one in recorder.buffer))
"""


def compilations() -> int:
    """How many functions a new process compiles for the kernels of training."""
    started = subprocess.run(
        [sys.executable, "-c", START],
        cwd=ROOT,
        env=environment(MINIDL_KERNELS="numba"),
        capture_output=True,
        text=True,
        timeout=580,
    )
    assert started.returncode == 0, started.stderr
    return int(started.stdout)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_second_start_compiles_nothing() -> None:
    compilations()  # whatever the cache lacks
    assert compilations() == 0
