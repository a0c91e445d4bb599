"""A guess hides the answer until it is made; sliders and lists change their pictures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest

pytest.importorskip("selenium", reason="needs selenium: pip install 'minidl[browser]'")

from course.setup.bootstrap import ROOT
from tests.course.browser.lab_in_browser import OpenNotebook, chromium, lab_server, needs_browser, wait_for

pytestmark = [pytest.mark.timeout(300), needs_browser]

CELLS = (
    "from course.interaction import explore, guess",
    'end = guess("When does rank 3 end?", unit="s")',
    "print(end.against(2 * 0.7))",
    'best = guess("Which is faster?", ["ring", "tree"])',
    'print(best.against("ring"))',
    """
def draw(axes, nodes, network):
    axes.plot([0, nodes], [0, 1 if network == "slow" else 2])
    axes.set(xlim=(0, 10), ylim=(0, 3))

explore(draw, "it rises.", nodes=[2, 4, 8], network=["slow", "fast"])""",
    """
def fails(axes, nodes):
    axes.plot([0, 1 / (nodes - 4)])

explore(fails, "it ends.", nodes=[2, 4, 8])""",
)
NAME = "00_start_here.ipynb"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenNotebook]:
    """The copy that `course lab` makes of a lecture with outputs, in a browser."""
    home = tmp_path_factory.mktemp("browser")
    lecture = home / "clone" / "notebooks" / NAME
    lecture.parent.mkdir(parents=True)
    output = {"output_type": "stream", "name": "stdout", "text": "the answer, of another day\n"}
    cells = [
        {
            "cell_type": "code",
            "id": f"c{n}",
            "metadata": {},
            "execution_count": 1,
            "outputs": [output],
            "source": source,
        }
        for n, source in enumerate(CELLS)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    lecture.write_text(
        json.dumps({"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5})
    )
    (home / "clone" / "course").symlink_to(ROOT / "course")  # the lab's settings
    with lab_server(home / "clone", home) as server, chromium(home) as driver:
        yield OpenNotebook(driver, server, f"work/{NAME}")
    shutil.rmtree(home, ignore_errors=True)


def test_the_answer_is_not_there_until_a_guess_is_made(notebook: OpenNotebook) -> None:
    assert [notebook.output(number) for number in range(len(CELLS))] == [""] * len(CELLS)
    for number in (0, 1, 2):
        notebook.run(number)
    wait_for(lambda: "First your guess: When does rank 3 end?" in notebook.output(2))
    assert "Traceback" not in notebook.output(2)
    assert "simulated" not in notebook.output(2)
    notebook.type(1, "soon")
    wait_for(lambda: "Please type a number" in notebook.output(1))
    notebook.type(1, "0,7")
    wait_for(lambda: "Your guess: 0.7 s." in notebook.output(1))
    notebook.run(2)
    wait_for(lambda: notebook.output(2) == "0.7 s, too small by a factor of 2")


def test_a_guess_survives_a_reload_and_a_page_reloaded_while_one_waits_goes_on(notebook: OpenNotebook) -> None:
    notebook.run(0)
    for number in (3, 4):
        notebook.run(number)
    wait_for(lambda: "First your guess: Which is faster?" in notebook.output(4))
    notebook.reload()
    for number in (4, 3):
        notebook.run(number)
    wait_for(lambda: "First your guess: Which is faster?" in notebook.output(4))
    wait_for(lambda: "Which is faster?" in notebook.output(3))
    notebook.press(3, "tree")
    wait_for(lambda: "Your guess: tree." in notebook.output(3))
    notebook.reload()
    for number in (3, 4):
        notebook.run(number)
    wait_for(lambda: "Your guess: tree." in notebook.output(3))
    wait_for(lambda: "tree: wrong, it is ring" in notebook.output(4))


def test_the_slider_and_the_list_of_a_what_if_panel_change_its_picture(notebook: OpenNotebook) -> None:
    notebook.run(0)
    notebook.run(5)
    first = wait_for(lambda: notebook.picture(5))
    assert "In words: it rises." in notebook.output(5)
    notebook.move_slider(5)
    second = wait_for(lambda: (now := notebook.picture(5)) != first and now)
    notebook.choose(5)
    assert wait_for(lambda: (now := notebook.picture(5)) not in (first, second) and now)


def test_an_error_of_a_panel_stands_in_place_of_its_picture(notebook: OpenNotebook) -> None:
    notebook.run(0)
    notebook.run(6)
    first = wait_for(lambda: notebook.picture(6))
    notebook.move_slider(6)
    wait_for(lambda: "ZeroDivisionError" in notebook.output(6))
    assert not notebook.picture_is_visible(6)
    notebook.move_slider(6)
    wait_for(lambda: notebook.picture_is_visible(6) and notebook.picture(6) != first)
    assert "ZeroDivisionError" not in notebook.output(6)
