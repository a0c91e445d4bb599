"""A lecture, with `--all` one of each chapter, in a browser: guesses are given up, a slider changes its picture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="needs selenium: pip install 'minidl[browser]'")

from course.setup.bootstrap import ROOT
from tests.course.browser.lab_in_browser import OpenNotebook, chromium, lab_server, needs_browser, wait_for
from tests.tiers import all_but_first_exhaustive

WITH_PANEL = sorted(
    path for path in (ROOT / "notebooks").glob("*.ipynb") if "explore(" in path.read_text(encoding="utf-8")
)
LECTURES = list({path.name[:2]: path for path in reversed(WITH_PANEL)}.values())[::-1]
"""The first with a panel of each chapter: a lecture takes half a minute in a browser."""

SECONDS_A_LECTURE = 400.0  # on a loaded machine


@pytest.mark.timeout(600)
@needs_browser
@pytest.mark.parametrize("lecture", all_but_first_exhaustive(LECTURES), ids=lambda path: path.stem)
def test_the_sliders_of_a_lecture_change_its_pictures(lecture: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    (clone / "notebooks").mkdir(parents=True)
    for name in ("course", "minidl", "benchmarks", "exercises", "solutions"):
        if (ROOT / name).exists():
            (clone / name).symlink_to(ROOT / name)
    (clone / "notebooks" / lecture.name).write_bytes(lecture.read_bytes())
    cells = json.loads(lecture.read_bytes())["cells"]
    code = {number: "".join(cell["source"]) for number, cell in enumerate(cells) if cell["cell_type"] == "code"}
    panels = [number for number, source in code.items() if "explore(" in source]
    with lab_server(clone, tmp_path) as server, chromium(tmp_path) as driver:
        notebook = OpenNotebook(driver, server, f"work/{lecture.name}")
        for number, source in code.items():
            notebook.run(number)
            wait_for(
                lambda number=number: notebook.has_run(number) and notebook.is_idle(),
                SECONDS_A_LECTURE,
                message=lambda number=number: notebook.output(number)[-3000:],
            )
            if "= guess(" in source:
                notebook.press(number, "give up")
        for panel in panels:
            first = wait_for(lambda panel=panel: notebook.picture(panel))
            notebook.turn(panel)
            wait_for(lambda panel=panel, first=first: notebook.picture(panel) not in ("", first))
