"""The notebooks are those of the lectures' texts, and run from top to bottom."""

from __future__ import annotations

from pathlib import Path

import pytest

jupytext = pytest.importorskip("jupytext", reason="needs the extra `dev`")
nbformat = pytest.importorskip("nbformat", reason="needs the extra `dev`")
nbclient = pytest.importorskip("nbclient", reason="needs the extra `dev`")

ROOT = Path(__file__).resolve().parent.parent.parent
LECTURES = sorted((ROOT / "course" / "lectures").glob("*.py"))


def names(paths: list[Path]) -> list[str]:
    return [path.stem for path in paths]


def committed(lecture: Path) -> nbformat.NotebookNode:
    return nbformat.read(ROOT / "notebooks" / f"{lecture.stem}.ipynb", as_version=4)


def test_every_lecture_has_a_notebook_and_every_notebook_a_lecture():
    assert LECTURES
    assert names(LECTURES) == names(sorted((ROOT / "notebooks").glob("*.ipynb")))


@pytest.mark.parametrize("lecture", LECTURES, ids=names(LECTURES))
def test_the_notebook_has_the_cells_of_the_text(lecture):
    text = jupytext.read(lecture)
    notebook = committed(lecture)
    assert [(c.cell_type, c.source) for c in notebook.cells] == [(c.cell_type, c.source) for c in text.cells]


@pytest.mark.parametrize("lecture", LECTURES, ids=names(LECTURES))
def test_the_notebook_was_run_from_top_to_bottom_without_an_error_or_a_warning(lecture):
    code = [cell for cell in committed(lecture).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("lecture", LECTURES, ids=names(LECTURES))
def test_the_notebook_runs_and_prints_what_it_shows(lecture, tmp_path):
    """All but the cells that print times and shares, which differ from run to run."""
    notebook = committed(lecture)
    client = nbclient.NotebookClient(notebook, timeout=100, resources={"metadata": {"path": str(tmp_path)}})
    shown = [printed(cell) for cell in notebook.cells]
    client.execute()
    for cell, before in zip(notebook.cells, shown, strict=True):
        if "shares" not in cell.source:
            assert printed(cell) == before


def printed(cell: nbformat.NotebookNode) -> str:
    return "".join(output.text for output in cell.get("outputs", []) if output.output_type == "stream")
