"""The student's notebook: a solution without its answers, hidden tests and outputs, made by nbgrader's own steps."""

from __future__ import annotations

import copy
import os
from functools import cache

import nbformat
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from course.setup.bootstrap import ROOT

STEPS = (
    "LockCells", "ClearSolutions", "ClearOutput", "CheckCellMetadata", "ComputeChecksums",
    "ClearHiddenTests", "ClearMarkScheme", "ComputeChecksums", "CheckCellMetadata",
)  # fmt: skip
"""The steps of `nbgrader generate_assignment`, without the data base."""


def released(solution: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The student's notebook of a solution; the same bytes as from `nbgrader generate_assignment`."""
    from nbgrader import preprocessors  # takes half a second

    notebook, resources = copy.deepcopy(solution), {"nbgrader": {}}
    config = settings()
    for step in STEPS:
        notebook, resources = getattr(preprocessors, step)(config=config)(notebook, resources)
    return notebook


@cache
def settings() -> Config:
    """The settings in nbgrader_config.py."""
    return PyFileConfigLoader("nbgrader_config.py", path=os.fspath(ROOT)).load_config()
