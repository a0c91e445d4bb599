"""The committed notebooks are those of the texts, and show what running them shows."""

from __future__ import annotations

import asyncio

import nbformat
import pytest

from course.building import text
from course.building.execution import execute
from course.building.sources import orphans, sources
from course.building.staleness import built_notebook, stale_notebooks
from tests.course.building import lecture_record

SOURCES = sources()
LECTURES = [source for source in SOURCES if source.is_lecture]
QUICK = "01a_backpropagation"
"""The lecture of the first tier; with `--all` every one runs that has not run as it is (lecture_record.py)."""


def test_there_are_lectures_and_assignments():
    assert LECTURES
    assert len(LECTURES) < len(SOURCES)


def test_the_notebooks_are_as_their_text_has_them():
    """What `build --check` sees: cells, hashes, execution counts, no errors or warnings, the release."""
    amiss = [f"{stale.path}: {stale.reason}" for source in SOURCES for stale in stale_notebooks(source)]
    assert amiss == [], "mend: python3 -m course build"


def test_a_committed_notebook_is_below_one_megabyte():
    assert [str(source) for source in SOURCES if source.executed.stat().st_size >= 1_000_000] == []


def test_no_notebook_is_without_a_text():
    assert orphans() == []


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "source",
    [
        pytest.param(source, id=str(source), marks=[] if source.name == QUICK else pytest.mark.exhaustive)
        for source in LECTURES
    ],
)
def test_the_lecture_runs_from_top_to_bottom_and_shows_what_it_showed(source, tmp_path, pytestconfig, monkeypatch):
    """All but the cells that say that they differ from run to run; pictures are not compared."""
    record = getattr(pytestconfig, "cache", None)  # none with `-p no:cacheprovider`
    if not pytestconfig.getoption("exhaustive"):  # a minute, to compile the kernels that lectures call, is left out
        record = None
        monkeypatch.setenv("MINIDL_KERNELS", "numpy")
    if lecture_record.has_run(source, record):
        pytest.skip("this text has passed here with the same library and versions")
    notebook = text.read(source.path)
    asyncio.run(execute(notebook, tmp_path))  # raises for errors and warnings
    before = {cell.id: shown(cell) for cell in built_notebook(source.executed).cells}
    differ = [
        f"line {text.line_of(source.path, number)}: now {shown(cell)}, was {before.get(cell.id)}"
        for number, cell in enumerate(notebook.cells)
        if shown(cell) != before.get(cell.id) and text.MEASURED not in cell.source
    ]
    mend = f"mark what was measured with `{text.MEASURED}`, or python3 -m course build {source.name} --force"
    assert differ == [], mend
    lecture_record.note(source, record)


def shown(cell: nbformat.NotebookNode) -> list[str]:
    """What a cell shows as text; of a picture nothing, as its size in pixels is another with other fonts."""
    texts = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if not any(kind.startswith("image/") for kind in data):
            texts.append(output.get("text") or data.get("text/markdown") or data.get("text/plain", ""))
    return texts
