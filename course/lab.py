"""`python3 -m course lab`: JupyterLab on the notebooks."""

from __future__ import annotations

import sys

from course.bootstrap import ROOT
from course.child import run_child


def run(arguments: list[str]) -> int:
    """Open JupyterLab with `arguments` added (`--no-browser`, `--port=8889` and so on) and stay until it ends."""
    notebooks = ROOT / "notebooks"
    places = [f"--ServerApp.root_dir={ROOT}"]
    if notebooks.is_dir():
        places.append(f"--ServerApp.preferred_dir={notebooks}")
    if (notebooks / "00_start_here.ipynb").exists():
        places.append("--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb")
    return run_child([sys.executable, "-m", "jupyterlab", *places, *arguments])
