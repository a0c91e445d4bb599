"""Run a notebook from top to bottom in a kernel of its own and keep its outputs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

SECONDS_A_CELL = 120


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Fill in the outputs, running in `folder`. Raises nbclient's CellExecutionError at the first error."""
    metadata = notebook.metadata.copy()
    with tempfile.TemporaryDirectory(prefix="minidl-kernel-") as sockets:
        NotebookClient(
            notebook,
            timeout=SECONDS_A_CELL,
            record_timing=False,
            shutdown_kernel="immediate",
            config=connection(sockets),
            resources={"metadata": {"path": str(folder)}},
        ).execute()
    notebook.metadata = metadata  # what the kernel says of itself differs from one machine to the next
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)


def connection(folder: str) -> Config:
    """Talk to the kernel through files in `folder`: a free TCP port may be taken before the kernel gets to it."""
    if os.name == "nt":
        return Config()
    return Config({"AsyncKernelManager": {"transport": "ipc", "ip": os.path.join(folder, "socket")}})
