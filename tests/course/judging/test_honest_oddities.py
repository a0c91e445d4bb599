"""Notebooks of honest students that do odd things: each gets the points that its answer deserves.

Some of each sort; with `--all`, every one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from course.judging.judged_notebook import judge_notebook
from tests.course.grading.submitted_class import ROOT
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(900)

NAME = "04_messages_and_collectives"
TREE = "broadcast_tree"

RIGHT = """\
def broadcast_tree(comm, x):
    {first}
    distance = 1
    while distance < comm.size:
        if comm.rank < distance and comm.rank + distance < comm.size:
            comm.send(x, comm.rank + distance)
        elif distance <= comm.rank < 2 * distance:
            x = comm.recv(comm.rank - distance)
        distance *= 2
    {last}
    return x
"""

PLAIN = RIGHT.format(first="pass", last="pass")


@dataclass(frozen=True)
class Odd:
    """A notebook: cells in front and behind, what the right answer does first and last, and the points of 2.

    remark: what a remark says; "" if there is none. answer: in place of the right one.
    """

    name: str
    before: tuple[str, ...] = ()
    first: str = "pass"
    last: str = "pass"
    after: tuple[str, ...] = ()
    points: float = 2.0
    remark: str = ""
    answer: str = ""


ORDINARY = (
    "%%capture found\nprint('much')",
    "import faulthandler\nfaulthandler.enable()",
    "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.savefig('mine.png')",
    "%%bash\nls; echo done",
    "import asyncio\nawait asyncio.sleep(0.01)\nasync def f(): return 1\nvalue = await f()",
    "get_ipython().run_line_magic('timeit', '-n 1 -r 1 sum([1])')",
    "%load_ext autoreload\n%autoreload 2",
    "%%time\nsum(range(10))",
    "%timeit -n 1 -r 1 sum(range(10))",
    "%%writefile mine.py\nvalue = 7",
    "import mine\nassert mine.value == 7",
    "%env MINE=1\n%set_env OTHER=2\n%pwd\n%who\n%history",
    "%%javascript\nalert(1)",
    "%%html\n<b>x</b>",
    "%%latex\n$x$",
    "from IPython.display import Image, display, clear_output\nclear_output()\ndisplay({'a': 1})",
    "sum?",
    "?len",
    "help(sum)",
    "files = !ls\nn = 3\n!echo $n",
    "%pdb on",
    "# nothing",
    "",
    "   \n",
    "import numpy as np\nnp.set_printoptions(precision=2, threshold=3)",
    "import random\nimport numpy as np\nrandom.seed(0); np.random.seed(0)",
    "if __name__ == '__main__':\n    ran = True",
    "assert ran",
    "import argparse\nargparse.ArgumentParser().parse_args([])",
    "import threading\nt = threading.Thread(target=print, args=('x',))\nt.start(); t.join()",
    "import sys\nsys.setrecursionlimit(5000)",
    "import gc\ngc.disable()",
    "import locale\nlocale.setlocale(locale.LC_ALL, '')",
    "from decimal import getcontext\ngetcontext().prec = 50",
    "import signal\nsignal.alarm(0)\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)",
    "import atexit\natexit.register(print, 'bye')",
    "import sys\nsys.argv = ['mine']",
)
"""Cells that one notebook can hold together."""

STREAMS = [
    Odd("neither", ("import sys\nsys.stdout = sys.stderr = None",)),
    Odd("the original stdout gone", ("import sys\nsys.stdout = sys.__stdout__ = None",)),
    Odd("no stderr in the answer", first="import sys; sys.stderr = sys.stdout = None"),
    Odd("stdout closed", ("import sys\nsys.stdout.close()",)),
    Odd("both closed, then printed", ("import sys\nsys.stdout.close(); sys.stderr.close()\nprint('x')",),
        remark="raised ValueError"),
    Odd("another stdout in the answer", first="import io, sys; sys.stdout = io.StringIO(); print(x)"),
    Odd("stdout to a file", ("import sys\nsys.stdout = open('log.txt', 'w')",), first="print('rank', comm.rank)"),
    Odd("descriptors 0 to 2 closed", ("import os\nfor d in range(3): os.close(d)",)),
    Odd("descriptor 1 closed in the answer", first="import os\n    try: os.close(1)\n    except OSError: pass"),
    Odd("descriptor 1 elsewhere", ("import os\nos.dup2(os.open('out.txt', os.O_WRONLY | os.O_CREAT), 1)",)),
    Odd("another print of all", ("import builtins\nbuiltins.print = lambda *a, **k: None",), first="print(x)"),
    Odd("a stdout without flush", ("import sys\nclass Log:\n    def write(self, text): pass\nsys.stdout = Log()",)),
    Odd("redirect_stdout", first="import contextlib, io\n    with contextlib.redirect_stdout(io.StringIO()): print(x)"),
    Odd("logging", ("import logging\nlogging.basicConfig(level=logging.DEBUG)\nlogging.info('x')\nlogging.shutdown()",),
        first="import logging; logging.getLogger('mine').warning('rank %d', comm.rank)"),
    Odd("rich", ("from rich import print\nprint('[red]x')",), first="print(comm.rank)"),
]  # fmt: skip

NOTEBOOK = [
    Odd("matplotlib widget", ("%matplotlib widget\nimport matplotlib.pyplot as plt\nplt.plot([1])",)),
    Odd("matplotlib tk", ("import matplotlib\nmatplotlib.use('TkAgg')\nimport matplotlib.pyplot as plt\nplt.figure()",),
        remark="ImportError"),
    Odd("plt.show in the answer", first="import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show(); plt.close()"),
    Odd("input", ("name = input('your name: ')",), remark="raised RuntimeError"),
    Odd("sh that fails", ("%%bash\nexit 3",), remark="CalledProcessError"),
    Odd("pip magic", ("%pip install numpy",)),
    Odd("asyncio.run", ("import asyncio\nasync def f(): return 1\nasyncio.run(f())",)),
    Odd("exit", ("exit()",)),
    Odd("sys.exit in the answer", first="import sys; sys.exit(0)", points=0.0),
    Odd("raise SystemExit at the end", after=("raise SystemExit('stop here')",), remark="SystemExit"),
    Odd("breakpoint", ("breakpoint()",), remark="raised"),
    Odd("colab", ("from google.colab import drive\ndrive.mount('/content')",), remark="ModuleNotFoundError"),
]  # fmt: skip

STATE = [
    Odd("ordinary cells", ORDINARY),
    Odd("warnings are errors in the answer", first="import warnings; warnings.simplefilter('error')"),
    Odd("chdir in the answer", first="import os; os.chdir('/')"),
    Odd("reset in the end", after=("%reset -f",), points=0.0),
    Odd("del of a name of the setup", ("del np",)),
    Odd("np is something else", ("np = 3\ncluster = None\ncheck = None",)),
    Odd("builtins shadowed", ("list = [1]\nsum = 0\nmax = None\nrange_ = range",)),
    Odd("unicode names", ("größe = 3\nα = 0.1\n变量 = 1",), first="größe = comm.size"),  # noqa: RUF001
    Odd("tabs", answer=PLAIN.replace("    ", "\t")),
    Odd("no-break spaces", answer=PLAIN.replace("    distance = 1", "    distance\u00a0= 1"), points=0.0,
        remark="SyntaxError"),
    Odd("argparse", ("import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--lr')\n"
        "options = parser.parse_args()",)),  # no arguments; those of a kernel would end the program
    Odd("multiprocessing", ("import multiprocessing as m\ndef f(x): return x\n"
        "with m.Pool(2) as pool: pool.map(abs, [1, 2])",)),
    Odd("a pool of threads left", ("from concurrent.futures import ThreadPoolExecutor\n"
        "pool = ThreadPoolExecutor(2)\npool.submit(print, 1)",)),
    Odd("launch in a cell", ("from minidl import cluster\ncluster.launch(lambda comm: comm.rank, nodes=2)",)),
    Odd("environment", ("import os\nos.environ.clear()",)),
    Odd("umask", ("import os\nos.umask(0o777)",)),
    Odd("sys.path emptied", ("import sys\nsys.path[:] = []",)),
    Odd("type hints of the future", answer="from __future__ import annotations\n"
        + PLAIN.replace("(comm, x)", "(comm: Unknown, x: 'Nowhere') -> Nothing")),
    Odd("a class with __call__", answer=PLAIN
        .replace("broadcast_tree", "_tree") + "class Tree:\n    def __call__(self, comm, x): return _tree(comm, x)\n"
        "broadcast_tree = Tree()"),
    Odd("decorated", answer="import functools, time\ndef timed(f):\n    @functools.wraps(f)\n"
        "    def g(*a, **k):\n        t = time.time(); r = f(*a, **k); print(time.time() - t); return r\n    return g\n"
        "@timed\n" + PLAIN),
    Odd("written twice", answer="def broadcast_tree(comm, x): raise NotImplementedError\n"
        + PLAIN),
    Odd("compiled and cached", answer="import numba\n@numba.njit(cache=True)\ndef double(n):\n    return 2 * n\n"
        "double(1)\n" + PLAIN.replace("distance *= 2", "distance = double(distance)")),
    Odd("called in its own cell", answer=PLAIN
        + "from minidl import cluster\n"
        "print(cluster.launch(broadcast_tree, (1.0,), nodes=4, on='simulation').results)"),
]  # fmt: skip

FIRST = {"descriptor 1 closed in the answer", "ordinary cells"}
"""Those of the first tier."""


@pytest.fixture(scope="module")
def reference() -> nbformat.NotebookNode:
    """The exercises, with one of them alone."""
    found = nbformat.read(ROOT / "exercises" / NAME / f"{NAME}.ipynb", as_version=4)
    found.cells = [cell for cell in found.cells if cell.id in ("setup", TREE, f"check_{TREE}")]
    return found


@pytest.mark.parametrize("is_first", [True, *exhaustively(False)], ids=["first", "others"])
def test_an_odd_notebook_gets_the_points_of_its_answer(
    is_first: bool, reference: nbformat.NotebookNode, tmp_path: Path
) -> None:
    for odd in (odd for odd in [*STREAMS, *NOTEBOOK, *STATE] if (odd.name in FIRST) is is_first):
        folder = tmp_path / odd.name
        folder.mkdir()
        setup, _, check = reference.cells
        answer = odd.answer or RIGHT.format(first=odd.first, last=odd.last)
        notebook = nbformat.from_dict(reference)
        notebook.cells = [setup, *map(new_code_cell, (*odd.before, answer, *odd.after)), check]
        judgement = judge_notebook(notebook, reference, folder=str(folder))
        assert judgement.points == odd.points, (odd.name, judgement.remarks, judgement.outcomes)
        remarks = str(judgement.remarks)
        assert odd.remark in remarks if odd.remark else remarks == "[]", (odd.name, remarks)
