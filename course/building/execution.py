"""Run a notebook from top to bottom in a kernel of its own and keep its outputs; refuse errors and warnings."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from traitlets.config import Config

from course.building import pictures
from course.setup.bootstrap import ROOT
from course.setup.child import one_thread_each
from minidl.instruction_set import common

SECONDS_A_CELL = 300  # a hang; on a busy machine the longest cell has taken 120
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LINE_OF_CELL = re.compile(r"Cell In\[\d+\], line (\d+)")
RULE = "-" * 70
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,}")


class Failed(Exception):  # noqa: N818
    """A notebook failed at `cell` (from 0), `line` (from 1); `details` is the traceback."""

    def __init__(self, message: str, cell: int, line: int = 1, details: str = "") -> None:
        super().__init__(message)
        self.cell = cell
        self.line = line
        self.details = details


async def execute(
    notebook: nbformat.NotebookNode, folder: Path, begins: Callable[[int], None] = lambda number: None
) -> None:
    """Run the cells in `folder` and fill in the outputs; `begins` is called with each cell's number. Raises Failed.

    Afterwards the kernel and the processes that it started are gone, even if this was cancelled.
    """
    metadata = notebook.metadata.copy()
    current = 0

    def note(cell: nbformat.NotebookNode, cell_index: int) -> None:
        nonlocal current
        current = cell_index
        begins(cell_index)

    with tempfile.TemporaryDirectory(prefix="minidl-kernel-") as scratch:
        client = NotebookClient(
            notebook,
            timeout=SECONDS_A_CELL,
            record_timing=False,
            coalesce_streams=True,
            shutdown_kernel="immediate",
            on_cell_start=note,
            config=connection(scratch),
            resources={"metadata": {"path": str(folder)}},
        )
        try:
            await client.async_execute(env=environment(scratch))
        except CellExecutionError as error:
            raise raised(error, current) from None
        except CellTimeoutError:
            raise Failed(f"not finished after {SECONDS_A_CELL} s", current) from None
        except (DeadKernelError, AssertionError) as problem:
            if (task := asyncio.current_task()) and task.cancelling():  # nbclient reports a cancelled cell as either
                raise asyncio.CancelledError from None
            if isinstance(problem, AssertionError):
                raise
            raise Failed("the kernel died", current) from None
        except RuntimeError as problem:
            raise Failed(f"the kernel did not start: {problem}", current) from None
    notebook.metadata = metadata  # the kernel's own metadata differ between machines
    pictures.shrink(notebook)
    for number, cell in enumerate(notebook.cells):
        cell.metadata.pop("execution", None)
        if complaint := unfit_output(cell):
            raise Failed(complaint, number)


def unfit_output(cell: nbformat.NotebookNode) -> str:
    """An output that a committed notebook may not have: error, warning, memory address; empty if there is none."""
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            return f"{output.ename}: {output.evalue}"
        if output.get("name") == "stderr":
            return f"a notebook shows no warnings and writes nothing to stderr, this does: {output.text.strip()}"
        texts = [
            output.get("text", ""),
            *(output.get("data", {}).get(kind, "") for kind in ("text/plain", "text/html")),
        ]
        if any(ADDRESS.search(text) for text in texts):
            return "it shows a memory address, which differs from run to run (a last line without `;`?)"
    return ""


def raised(error: CellExecutionError, cell: int) -> Failed:
    """An exception in a cell, with the line of the cell that raised it."""
    details = COLOUR.sub("", error.traceback)
    details = details[max(0, details.find(RULE)) :]  # nbclient puts the cell first
    lines = LINE_OF_CELL.findall(details)
    return Failed(f"{error.ename}: {error.evalue}", cell, int(lines[0]) if lines else 1, details)


def environment(scratch: str) -> dict[str, str]:
    """A kernel's environment: the project can be imported, personal IPython settings are ignored, one BLAS thread.

    Numbers are those of every processor with AVX2, so that a committed notebook shows what another machine computes.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(paths), "IPYTHONDIR": scratch, "MINIDL_STATIC": "1"}
    return {**os.environ, **one_thread_each(), **common(), **own}


def connection(scratch: str) -> Config:
    """Connect to the kernel through files in `scratch`: a free TCP port may be taken before the kernel opens it."""
    if os.name == "nt":
        return Config()
    return Config({"AsyncKernelManager": {"transport": "ipc", "ip": os.path.join(scratch, "socket")}})
