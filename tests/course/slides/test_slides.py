"""Slides show what the lecture shows, once, and load nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from course.commands.slides import run
from course.notebooks.notebook_file import notebook_of, read_notebook
from course.setup.bootstrap import ROOT
from course.slides.deck import Slide, deck, inline
from course.slides.page import page
from tests.course.small_course import cell, notebook, write
from tests.tiers import all_but_first_exhaustive

LECTURES = sorted((ROOT / "notebooks").glob("*.ipynb"), key=lambda path: (not path.name.startswith("11a"), path))
LOADS = re.compile(r"""\b(?:src|poster|action)=["']?(?!data:)\w|<link|url\(|@import|\bfetch\(|\bimport\(""")


@pytest.mark.parametrize("lecture", all_but_first_exhaustive(LECTURES), ids=lambda path: path.stem)
def test_a_lecture_gives_slides_with_its_question_first_and_all_its_pictures_once(lecture: Path) -> None:
    cells = read_notebook(lecture).cells
    slides = deck(read_notebook(lecture), lecture.stem)
    text = page(slides)
    title = re.sub(r"^# (\d\d[a-z]\. )?", "", cells[0].source.partition("\n")[0])
    assert f"<h1>{inline(title)}</h1>" in text.split("<section ")[1]
    assert "?" in title + slides[0].line
    assert 11 <= text.count("<section ") == len(slides) <= 31
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    pictures = ["".join("".join(data["image/png"]).split()) for data in outputs if "image/png" in data]
    assert re.findall(r'<img alt="[^"]+" src="data:image/png;base64,([^"]+)">', text) == pictures
    assert not LOADS.search(text)
    assert "data-against" not in text
    assert page(deck(read_notebook(lecture), lecture.stem)) == text


def code(source: str, *outputs: tuple[str, str]) -> dict[str, Any]:
    """A visible code cell with outputs: the type and the text of each."""
    made = [{"output_type": "display_data", "data": {kind: [text]}} for kind, text in outputs if kind != "print"]
    made += [{"output_type": "stream", "name": "stdout", "text": text} for kind, text in outputs if kind == "print"]
    return cell("code", "c01", source) | {"outputs": made}


def slides_of(*cells: dict[str, Any]) -> list[Slide]:
    """The slides of a lecture with these cells in its second section."""
    text = "# 04a. Who <waits>?\n\n## The question\n\nNobody. Or all?\n\n## Waiting\n\nTwo ranks:"
    made = notebook([cell("markdown", "c00", text), *cells], "1")
    return deck(notebook_of(json.dumps(made).encode(), Path("04a_messages.ipynb")), "04a_messages")


PNG, HTML, MARKDOWN = "image/png", "text/html", "text/markdown"
AGAINST = quote(json.dumps({"key": "k1", "answer": 3.14159, "unit": "ms"}))
NONE = f'<span data-against="{AGAINST}">none</span>'
ASKED = code('g = guess("Who?", [1, 2])', (MARKDOWN, "**Predict.** Who is <i>last</i>?\n\n- rank 0\n- rank 3"))


@pytest.mark.parametrize(
    ("told", "answer"),
    [
        (f"It ends. The last: rank 3 (your guess: {NONE}), at 7. So.", "The last: rank 3, at 7."),
        (f"Your guess: {NONE}. **Measured: the fourth.** So.", "**Measured: the fourth.**"),
        (f"It is Rank 3. Your guess: {NONE}.", "It is Rank 3."),
        (f"*In words: rank 3 <b>is</b> last (your guess: {NONE}).*", "rank 3 <b>is</b> last."),
        (f"| rank | end |\n| --- | --- |\n| 3 | 5 |\n\n*simulated; your guess: {NONE}*", ""),
    ],
)
def test_a_guess_is_a_question_and_the_sentence_with_the_guess_its_answer(told: str, answer: str) -> None:
    question = slides_of(ASKED, code("say(g.against('rank 3'))", (MARKDOWN, told)))[1]
    assert (question.kind, question.heading, question.answer) == ("question", "Waiting", answer)
    assert re.sub(r"\s*\n\s*", "", question.body) == "<p>Who is <i>last</i>?</p><ol><li>rank 0</li><li>rank 3</li></ol>"


def test_a_picture_has_one_sentence_and_a_panel_stands_below_the_picture_that_it_replaces() -> None:
    panel = '<div class="minidl-panel"><script>turn()</script></div>'
    words = '*In words: two rows. Each row is a "rank", and both of them wait. So.*'
    slide = slides_of(code("explore()", (PNG, "aGk=\n"), (HTML, panel), (MARKDOWN, words)))[1]
    assert (slide.line, slide.notes[0]) == ('Each row is a "rank", and both of them wait.', "Two ranks:")
    alt = "Two rows. Each row is a &quot;rank&quot;, and both of them wait. So."
    assert slide.body == f'<img alt="{alt}" src="data:image/png;base64,aGk=">{panel}'


def test_a_question_with_controls_gets_its_choices_from_them_and_its_answer_from_the_cell_that_has_it() -> None:
    controls = '<div class="minidl-guess" data-guess="{&quot;key&quot;:&quot;k1&quot;}"><ul><li>3</li></ul></div>'
    question = code('g = guess("How long?")', (MARKDOWN, "**Predict.** How long?"), (HTML, controls))
    slides = slides_of(question, code("table()", (MARKDOWN, f"| a |\n| --- |\n| 3 |\n\n*{NONE}*")))
    assert (slides[1].body, slides[1].answer) == ("<p>How long?</p>\n<ol><li>3</li></ol>", "3.14 ms")


def test_code_is_shown_if_it_is_short_and_defines_or_prints_something_and_a_script_in_a_text_does_not_run() -> None:
    short = code("def f(x):\n    return x < 1  # noqa", ("print", "<b>1</b>\n"))
    text = "## An <script>alert()</script>end\n\nOne is. Two are. Three were.\n\n## So\n\n**One question**\n\n1. Why?"
    slides = slides_of(code("x = 1"), code("def g():" + "\n    pass" * 15), short, cell("markdown", "c01", text))
    assert [slide.kind for slide in slides] == ["title", "code", "text", "list"]
    assert (slides[1].line, slides[2].body, slides[3].heading) == (
        "Two ranks:",
        "<p>One is. Two are.</p>\n",
        "One question",
    )
    assert "noqa" not in slides[1].body
    assert slides[1].body.endswith("<pre>&lt;b&gt;1&lt;/b&gt;\n</pre>")
    assert "<script>alert" not in page(slides)
    assert "<h1>Who &lt;waits&gt;?</h1>" in page(slides)


def test_the_command_writes_a_chapters_lectures_lists_them_all_and_refuses_wrong_names(tmp_path, capsys) -> None:
    (tmp_path / "course" / "lectures").mkdir(parents=True)
    for name in ("04a_messages", "04b_collectives", "05a_data"):
        made = notebook([cell("markdown", "c", f"# {name[:3]}. Why {name}?")], "1")
        write(tmp_path / "notebooks" / f"{name}.ipynb", made)
        (tmp_path / "course" / "lectures" / f"{name}.py").write_text("")
    assert run(["04"], tmp_path) == run([], tmp_path) == 0
    assert sorted(path.stem for path in (tmp_path / "slides").iterdir()) == ["04a_messages", "04b_collectives"]
    assert "05a_data                        05a. Why 05a_data?\n" in capsys.readouterr().out
    (tmp_path / "notebooks" / "05a_data.ipynb").unlink()
    assert run(["4z"], tmp_path) == run(["05a"], tmp_path) == 2
    errors = capsys.readouterr().err
    assert "No lecture is called '4z': there are 04a_messages" in errors
    assert "05a_data.ipynb cannot be read" in errors
