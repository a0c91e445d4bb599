"""launch from scripts and notebooks: no guard, Ctrl-C, a killed parent."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import process_census
from tests.tiers import exhaustively

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="the census of processes reads /proc"),
]

ENVIRONMENT = os.environ | {"MINIDL_KERNELS": "numpy"}
"""The scripts call no kernels. To load the compiled ones took most of the time in which a fork server starts."""

ENDLESS = """
import os, time
from minidl import cluster

def program(comm):
    comm.tell(os.getpid())
    while True:
        comm.all_reduce(1.0)
        time.sleep(0.01)

def compute(comm):
    comm.tell(os.getpid())
    while True:
        pass

if {method!r} == "forkserver":
    cluster.launch(lambda comm: None, nodes=1)
try:
    engine = cluster.Processes({method!r})
    cluster.launch({program}, nodes=3, on=engine, listener=lambda rank, pid: print(pid, flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
    print(cluster.launch(lambda comm: comm.rank, nodes=2).results, flush=True)
"""


def start(tmp_path: Path, source: str) -> subprocess.Popen[str]:
    script = tmp_path / "script.py"
    script.write_text(source)
    return subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
        stdin=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def started_ranks(process: subprocess.Popen[str], count: int) -> list[int]:
    assert process.stdout is not None
    return [int(process.stdout.readline()) for _ in range(count)]


@pytest.mark.parametrize("method", ["spawn", *exhaustively("forkserver")])
def test_a_script_needs_no_main_guard(tmp_path: Path, method: str) -> None:
    process = start(
        tmp_path,
        f"""
from minidl import cluster
print("once")
SCALE = 10
def scaled(x): return SCALE * x
class Box:
    def __init__(self, value): self.value = value
def program(comm): return Box(comm.all_reduce(scaled(comm.rank)))
run = cluster.launch(program, nodes=3, on=cluster.Processes({method!r}))
print([box.value for box in run.results], all(isinstance(box, Box) for box in run.results))
""",
    )
    out, err = process.communicate(timeout=150)
    assert out == "once\n[30, 30, 30] True\n"
    assert err == ""
    assert process.returncode == 0


@pytest.mark.parametrize(("method", "program"), [("forkserver", "program"), *exhaustively(("spawn", "compute"))])
def test_ctrl_c_ends_all_ranks_and_the_caller_can_go_on(tmp_path: Path, method: str, program: str) -> None:
    process = start(tmp_path, ENDLESS.format(method=method, program=program))
    pids = started_ranks(process, 3)
    os.killpg(process.pid, signal.SIGINT)  # what a terminal does: every process of the group gets it
    assert process_census.wait_until_gone(pids) == []
    out, err = process.communicate(timeout=150)
    assert out.endswith("interrupted\n[0, 1]\n")
    assert err == ""
    assert process.returncode == 0


def test_ctrl_c_does_not_wait_for_a_fork_server_that_is_still_warming_up(tmp_path: Path) -> None:
    process = start(
        tmp_path,
        """
import os, signal, threading, time
from minidl import cluster
cluster.launch(lambda comm: None, nodes=1)
from multiprocess.forkserver import _forkserver
server = _forkserver._forkserver_pid
os.kill(server, signal.SIGSTOP)  # as good as one that is busy
try:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    cluster.launch(lambda comm: None, nodes=2)
except KeyboardInterrupt:
    print("interrupted")
os.kill(server, signal.SIGCONT)
print(cluster.launch(lambda comm: comm.rank, nodes=2).results)
""",
    )
    out, err = process.communicate(timeout=150)
    assert out.splitlines()[:2] == ["interrupted", "[0, 1]"]
    assert err == ""


@pytest.mark.parametrize(("method", "program"), [("spawn", "compute"), *exhaustively(("forkserver", "program"))])
def test_when_the_caller_is_killed_its_ranks_and_servers_end_too(tmp_path: Path, method: str, program: str) -> None:
    process = start(tmp_path, ENDLESS.format(method=method, program=program))
    started_ranks(process, 3)
    everything = process_census.descendants(process.pid)
    assert len(everything) >= 4
    process.kill()
    assert process_census.wait_until_gone(everything) == []
    _, err = process.communicate(timeout=150)
    assert err == ""


def test_when_a_script_ends_nothing_of_it_stays(tmp_path: Path) -> None:
    lines = ["from minidl import cluster", "cluster.launch(lambda comm: None)", "print(1, flush=True)"]
    process = start(tmp_path, "\n".join(["import sys", *lines, "sys.stdin.read()"]))
    started_ranks(process, 1)
    servers = process_census.descendants(process.pid)
    _, err = process.communicate(timeout=150)
    assert len(servers) == 2
    assert process_census.wait_until_gone(servers) == []
    assert err == ""


CELLS = [
    """
import os, time
import numpy as np
from minidl import cluster
SCALE = 2.0
class Layer:
    def __init__(self, weight): self.weight = weight
def scaled(x): return SCALE * x""",
    """
def program(comm):
    layer = Layer(scaled(np.full(3, comm.rank + 1.0)))
    comm.all_reduce(layer.weight)
    print("hello from", comm.rank)
    return layer
run = cluster.launch(program, nodes=2)
print([isinstance(layer, Layer) for layer in run.results], run.results[1].weight.tolist())""",
    """
def broken(comm):
    if comm.rank == 1:
        raise ValueError(f"bad {comm.rank}")
    comm.recv(1)
try:
    cluster.launch(broken, nodes=2)
except cluster.RankFailed as error:
    print(error)""",
    """
import signal, threading
try:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    cluster.launch(lambda comm: time.sleep(600), nodes=2)
except KeyboardInterrupt:
    print("interrupted")""",
    "run.trace.plot()",
]


def test_programs_made_in_notebook_cells_run_and_fail_as_elsewhere() -> None:
    nbformat = pytest.importorskip("nbformat", reason="notebooks need the extra `dev`")
    nbclient = pytest.importorskip("nbclient", reason="notebooks need the extra `dev`")
    pytest.importorskip("ipykernel", reason="notebooks need the extra `dev`")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source.strip()) for source in CELLS])
    nbclient.NotebookClient(notebook, timeout=150, kernel_name="python3").execute(env=ENVIRONMENT)
    texts = ["".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells]
    assert texts[1] == "[rank 0] hello from 0\n[rank 1] hello from 1\n[True, True] [6.0, 6.0, 6.0]\n"
    assert texts[2].startswith("ValueError: bad 1\nrank 1 of 2, while computing, at ")
    assert 'raise ValueError(f"bad {comm.rank}")' in texts[2]  # the line of the cell itself
    assert texts[3] == "interrupted\n"
    assert "image/png" in json.dumps(notebook.cells[4].outputs)
