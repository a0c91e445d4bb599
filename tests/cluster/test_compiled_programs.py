"""Functions that numba compiles reach the ranks from where they are written: a script, a notebook cell."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

DEFINITIONS = """
import numba
import numpy as np
from minidl import cluster

@numba.njit
def square(x):
    return x * x

@numba.njit
def sum_of_squares(xs):
    total = 0.0
    for x in xs:
        total += square(x)
    return total

class Layer:
    def __init__(self, rank):
        self.weight = np.full(3, rank + 1.0)
    def norm(self):
        return sum_of_squares(self.weight)

def program(comm):
    return comm.all_reduce(Layer(comm.rank).norm())
"""
LAUNCH = "print(cluster.launch(program, nodes=2, on=cluster.Processes({method!r}), deadline=100).results)"
WANT = "[15.0, 15.0]\n"


@pytest.mark.parametrize("where", ["script", *exhaustively("notebook")])
def test_compiled_functions_run_on_every_rank_that_is_forked_or_spawned(where: str, tmp_path: Path) -> None:
    if where == "script":
        script = tmp_path / "script.py"
        script.write_text(DEFINITIONS + LAUNCH.format(method="forkserver"))
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=200, check=False)
        assert (done.stdout, done.stderr) == (WANT, "")
        return
    nbformat = pytest.importorskip("nbformat", reason="notebooks need the extra `dev`")
    nbclient = pytest.importorskip("nbclient", reason="notebooks need the extra `dev`")
    pytest.importorskip("ipykernel", reason="notebooks need the extra `dev`")
    first, second = DEFINITIONS.split("class Layer")
    sources = [first, "class Layer" + second, LAUNCH.format(method="spawn")]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source.strip()) for source in sources])
    nbclient.NotebookClient(notebook, timeout=200, kernel_name="python3").execute()
    texts = ["".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells]
    assert texts == ["", "", WANT]
