"""Slides show what the lecture shows, once, and load nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from course.commands.slides import run
from course.notebooks.notebook_file import notebook_of, read_notebook
from course.setup.bootstrap import ROOT
from course.slides.deck import Slide, deck, inline
from course.slides.page import page
from tests.course.small_course import cell, notebook, write
from tests.tiers import all_but_first_exhaustive

LECTURES = sorted((ROOT / "notebooks").glob("*.ipynb"), key=lambda path: (not path.name.startswith("11a"), path))
LOADS = re.compile(r"""\b(?:src|poster|action)\s*=\s*["']?(?!data:)\w|<link|url\(|@import|\bfetch\(|\bimport\(""")


@pytest.mark.parametrize("lecture", all_but_first_exhaustive(LECTURES), ids=lambda path: path.stem)
def test_a_lecture_gives_slides_with_its_question_first_and_all_its_pictures_once(lecture: Path) -> None:
    cells = read_notebook(lecture).cells
    slides = deck(read_notebook(lecture), lecture.stem)
    text = page(slides)
    title = re.sub(r"^# (\d\d[a-z]\. )?", "", cells[0].source.partition("\n")[0])
    assert f"<h1>{inline(title)}</h1>" in text.split("<section ")[1] and "?" in title + slides[0].line
    assert 11 <= text.count("<section ") == len(slides) <= 31
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    pictures = ["".join(one.data["image/png"]).strip() for one in outputs if "image/png" in one.get("data", {})]
    shown = re.findall(r'<img alt="[^"]+" src="data:image/png;base64,([^"]+)">', text)
    assert shown == ["".join(picture.split()) for picture in pictures]
    assert not LOADS.search(text) and "(no guess)" not in text
    assert page(deck(read_notebook(lecture), lecture.stem)) == text


def shown(kind: str, text: str) -> dict[str, Any]:
    """An output of a cell."""
    if kind == "stdout":
        return {"output_type": "stream", "name": kind, "text": text}
    return {"output_type": "display_data", "data": {kind: [text]}, "metadata": {}}


def slides_of(*cells: dict[str, Any]) -> list[Slide]:
    """The slides of a lecture that begins with these cells."""
    title = cell("markdown", "c00", "# 04a. Who <waits>?\n\n## The question\n\nNobody. Or all?\n\n## Waiting\n\nTwo ranks:")
    made = json.dumps(notebook([title, *cells], "1")).encode()
    return deck(notebook_of(made, Path("04a_messages.ipynb")), "04a_messages")


def code(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    """A visible code cell."""
    return cell("code", "c01", source) | {"outputs": list(outputs)}


MARKDOWN = "text/markdown"
ASKED = code('g = guess("Who?", [1, 2])', shown(MARKDOWN, "**Predict.** Who is <i>last</i>?\n\n- rank 0\n- rank 3"))


@pytest.mark.parametrize(
    ("told", "answer"),
    [
        (shown(MARKDOWN, "It ends. The last is rank 3 (your guess: (no guess)): it waits. So."), "The last is rank 3: it waits."),
        (shown(MARKDOWN, "Your guess: (no guess). **Measured: the fourth.** So."), "**Measured: the fourth.**"),
        (shown(MARKDOWN, "It is Rank 3. Your guess: (no guess)."), "It is Rank 3."),
        (shown("stdout", "all equal: True\nlast: rank 3; your guess: (no guess)\n"), "last: rank 3"),
        (shown(MARKDOWN, "*In words: rank 3 <b>is</b> last (your guess: (no guess)).*"), "rank 3 <b>is</b> last."),
        (shown(MARKDOWN, 'Rank 3; your guess: <span data-x="1">(no guess)</span>.'), "Rank 3."),
        (shown("stdout", "all equal: True\nyour guess: (no guess)\n"), ""),
        (shown(MARKDOWN, "| rank | end |\n| --- | --- |\n| 3 | 5 |\n\n*simulated; your guess: (no guess)*"), ""),
    ],
)
def test_a_guess_is_a_question_and_the_sentence_with_the_guess_its_answer(told: dict[str, Any], answer: str) -> None:
    question = slides_of(ASKED, code("say(g.against('rank 3'))", told))[1]
    assert (question.kind, question.heading, question.answer) == ("question", "Waiting", answer)
    assert re.sub(r"\s*\n\s*", "", question.body) == "<p>Who is <i>last</i>?</p><ol><li>rank 0</li><li>rank 3</li></ol>"


def test_a_picture_has_one_sentence_and_a_panel_stands_below_the_picture_that_it_replaces() -> None:
    words = shown(MARKDOWN, '*In words: two rows. Each row is a "rank", and both of them wait. So.*')
    panel = shown("text/html", '<div class="minidl-panel"><script>turn()</script></div>')
    slide = slides_of(code("explore()", shown("image/png", "aGk=\n"), panel, words))[1]
    assert slide.line == 'Each row is a "rank", and both of them wait.'
    alt = "Two rows. Each row is a &quot;rank&quot;, and both of them wait. So."
    assert slide.body == f'<img alt="{alt}" src="data:image/png;base64,aGk=">{panel["data"]["text/html"][0]}'
    assert slide.notes[0] == "Two ranks:"


def test_short_code_that_defines_or_prints_is_shown_with_its_print_and_longer_code_is_not() -> None:
    short = code("def f(x):\n    return x < 1  # noqa", shown("stdout", "<b>1</b>\n"))
    long = code("def g():\n" + "    pass\n" * 15)
    found, *others = slides_of(short, long, code("x = 1"))[1:]
    assert (found.kind, found.line, others) == ("code", "Two ranks:", [])
    assert "noqa" not in found.body and found.body.endswith("<pre>&lt;b&gt;1&lt;/b&gt;\n</pre>")


def test_a_section_of_prose_is_its_first_two_sentences_and_a_script_in_a_text_does_not_run() -> None:
    text = "## An <script>alert()</script>end\n\nOne is. Two are. Three were.\n\n## To argue\n\n**Two questions**\n\n1. Why?"
    *_, prose, questions = slides = slides_of(cell("markdown", "c01", text))
    assert (prose.kind, prose.body, prose.notes) == ("text", "<p>One is. Two are.</p>\n", ["One is. Two are. Three were."])
    assert (questions.kind, questions.heading, questions.notes) == ("list", "Two questions", [])
    assert "<script>alert" not in page(slides) and "<h1>Who &lt;waits&gt;?</h1>" in page(slides)


def test_the_command_writes_a_chapters_lectures_lists_them_all_and_refuses_wrong_names(tmp_path, capsys) -> None:
    for name in ("04a_messages", "04b_collectives", "05a_data"):
        write(tmp_path / "notebooks" / f"{name}.ipynb", notebook([cell("markdown", "c", f"# {name[:3]}. Why {name}?")], "1"))
        (tmp_path / "course" / "lectures").mkdir(parents=True, exist_ok=True)
        (tmp_path / "course" / "lectures" / f"{name}.py").write_text("")
    assert run(["04"], tmp_path) == 0
    assert sorted(path.name for path in (tmp_path / "slides").iterdir()) == ["04a_messages.html", "04b_collectives.html"]
    assert run([], tmp_path) == 0
    assert "05a_data                        05a. Why 05a_data?\n" in capsys.readouterr().out
    assert run(["4z"], tmp_path) == 2
    assert "No lecture is called '4z': there are 04a_messages" in capsys.readouterr().err
    (tmp_path / "notebooks" / "05a_data.ipynb").unlink()
    assert run(["05a"], tmp_path) == 2
    assert "05a_data.ipynb cannot be read" in capsys.readouterr().err
