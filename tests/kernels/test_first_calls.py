"""The first compilation: steps side by side, counted; a later start compiles nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from minidl.cores import cores
from minidl.kernels.jit import side_by_side
from tests.cluster.process_census import descendants, wait_until_gone
from tests.tiers import exhaustively

STARTED = """
import sys
from numba.core import event
from minidl.kernels.jit import first_calls
recorder = event.RecordingListener()
event.register("numba:compile", recorder)
first_calls.warm_up(model=sys.argv[1])
print(sum(one.is_start for _, one in recorder.buffer))
"""

TRAINED = """
import sys
from minidl.cli.app import app
from minidl.kernels.jit.compiled import KERNELS
from minidl.kernels.jit.first_calls import warm_up

def signatures():
    return {(kernel.py_func.__name__, one) for kernel in KERNELS for one in kernel.signatures}

warm_up(model=sys.argv[1])
known = signatures()
words = ["--model", sys.argv[1], *sys.argv[2:], "--epochs", "1", "--on", "simulation", "--kernels", "numba", "--quiet"]
app(["train", *words], standalone_mode=False)
print(sorted({name for name, _ in signatures() - known}))
"""

PROGRAM = """
import sys
from minidl.kernels.jit import first_calls
seen = []
first_calls._run([sys.argv[1:], ["relu"]], "float32", lambda done, steps: seen.append((done, steps)))
print(first_calls._compiled_here(), seen)
"""

LAUNCHED = """
from minidl import cluster

def program(comm):
    from minidl import kernels
    from minidl.kernels.jit.first_calls import STEPS, _compiled_here
    before = _compiled_here()
    comm.barrier()
    STEPS["tanh"]("float32")
    return before, _compiled_here()

if __name__ == "__main__":
    print(sorted(cluster.launch(program, nodes=3).results))
"""


def printed(program: str, *arguments: str, **environment: str) -> str:
    """What a program prints."""
    command = [sys.executable, "-c", program, *arguments]
    run = subprocess.run(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True)
    return run.stdout.strip()


def test_the_first_start_compiles_side_by_side_and_the_next_nothing(tmp_path: Path) -> None:
    seen = [(0, 2), (1, 2), (2, 2)] if cores() > 1 else []
    cache = str(tmp_path)
    steps = ("sums_of_channels", "sparse")
    assert printed(PROGRAM, *steps, NUMBA_CACHE_DIR=cache) == f"2 {seen}"  # the kernels of the first step alone
    assert printed(PROGRAM, *steps, NUMBA_CACHE_DIR=cache) == "0 []"


@pytest.mark.timeout(300)
def test_a_launch_compiles_only_what_its_program_calls_and_on_one_rank_for_all(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(LAUNCHED)
    command = [sys.executable, str(program)]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "MINIDL_KERNELS": "numba"}
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=240)
    assert run.stdout == "[(0, 0), (0, 0), (0, 1)]\n"
    assert len([*(tmp_path / "cache").rglob("*.nbi")]) == 1


@pytest.mark.timeout(900)
@pytest.mark.parametrize("model", ["mlp", *exhaustively("all")])
def test_a_second_start_compiles_no_function_at_all(model: str) -> None:
    printed(STARTED, model)  # whatever the cache lacks
    assert printed(STARTED, model) == "0"


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "options",
    [
        ("mlp",),
        *exhaustively(
            *((options,) for options in (("gpt", "--data", "stdlib_text"), ("lenet",), ("resnet",))),
            (("mlp", "--data", "spirals"),),
        ),
    ],
    ids=" ".join,
)
def test_training_a_model_calls_no_kernel_that_its_own_warm_up_has_not_called(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    assert printed(TRAINED, *options, "--out", str(tmp_path / "out")) == "[]"


def test_a_step_that_fails_is_an_error_that_says_why() -> None:
    with pytest.raises(RuntimeError, match="a kernel could not be compiled: KeyError: 'no_such_step'"):
        side_by_side.compile_side_by_side([["no_such_step"]], "float32", 2, lambda done, steps: None)


@pytest.mark.skipif(sys.platform != "linux", reason="the census of processes reads /proc")
@pytest.mark.skipif(cores() == 1, reason="on one core the caller compiles by itself")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGKILL, *exhaustively(signal.SIGINT)])
def test_when_the_caller_ends_no_compiling_process_stays(number: signal.Signals, tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    caller = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "attention", "updates"], env=environment, stderr=subprocess.DEVNULL
    )
    while not (started := descendants(caller.pid)) and caller.poll() is None:
        time.sleep(0.01)
    assert started
    caller.send_signal(number)
    caller.wait()
    assert wait_until_gone(started) == []
