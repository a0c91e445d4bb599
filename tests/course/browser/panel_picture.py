"""The picture of the 1F1B panel in README: lecture 11a in the JupyterLab of `course lab`, its two sliders moved.

python -m tests.course.browser.panel_picture FILE.png
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from selenium.webdriver.common.keys import Keys

from course.setup.bootstrap import ROOT
from tests.course.browser.lab_in_browser import OpenNotebook, chromium, lab_server, wait_for

NAME = "11a_pipelines.ipynb"
NEEDED = ("warm_up()", "import time", "def played(")
"""What the cells begin with, or contain, that the panel needs; the last one shows it."""

SLIDERS = 2
"""Each is moved one value to the right: from 4 stages to 6, from 8 micro-batches to 16."""


def main(file: Path) -> None:
    """Write the picture of the panel: its output in the page, from the sliders to the sentence below."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "clone" / "notebooks").mkdir(parents=True)
        (home / "clone" / "notebooks" / NAME).write_bytes((ROOT / "notebooks" / NAME).read_bytes())
        (home / "clone" / "course").symlink_to(ROOT / "course")
        cells = json.loads((ROOT / "notebooks" / NAME).read_bytes())["cells"]
        numbers = [next(n for n, cell in enumerate(cells) if text in "".join(cell["source"])) for text in NEEDED]
        with lab_server(home / "clone", home) as server, chromium(home) as driver:
            notebook = OpenNotebook(driver, server, f"work/{NAME}")
            for number in numbers:
                notebook.run(number)
                wait_for(lambda number=number: notebook.has_run(number) and notebook.is_idle())
            *_, panel = numbers
            wait_for(lambda: notebook.picture(panel))
            for handle in notebook.found(".noUi-handle", notebook.cell(panel))[:SLIDERS]:
                before = notebook.picture(panel)
                handle.send_keys(Keys.ARROW_RIGHT)
                wait_for(lambda before=before: notebook.picture(panel) not in ("", before))
            output = notebook.found(".jp-Cell-outputWrapper", notebook.cell(panel))[0]
            driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", output)
            output.screenshot(str(file))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
