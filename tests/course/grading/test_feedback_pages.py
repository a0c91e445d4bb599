"""A feedback page is whole without a network: no script, nothing loaded, formulas that the browser draws by itself."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser

import nbformat
from nbconvert.filters.markdown_mistune import MarkdownWithMath
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course.formulas import as_mathml
from course.grading.feedback import page as feedback
from course.grading.feedback.markdown import Renderer, as_html
from course.grading.grade import Grade
from course.judging.judged_notebook import Judgement
from tests.course.grading.submitted_class import ROOT, SOLUTIONS

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Tags(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def page_of(*cells: nbformat.NotebookNode) -> str:
    return feedback.page(new_notebook(cells=list(cells)), Grade("ada", "04_example", Judgement(), ()))


@cache
def pages() -> dict[str, str]:
    """The page of each assignment's notebook, as students get it, and of one that cannot be shown."""
    grade = Grade("ada <b>", "04_example", Judgement(remarks=["<script>"]), ())
    notebooks = {name: nbformat.read(ROOT / "exercises" / name / f"{name}.ipynb", as_version=4) for name in SOLUTIONS}
    return {name: feedback.page(notebook, grade) for name, notebook in notebooks.items()} | {
        "plain": feedback.plain_page(grade)
    }


def test_a_page_runs_no_script_loads_nothing_and_is_no_larger_than_a_photograph():
    for name, page in pages().items():
        for tag, attributes in Tags(page).found:
            assert tag not in ("script", "link", "iframe", "object", "embed", "form", "base"), name
            assert not any(attribute.startswith("on") for attribute in attributes), name
            assert (attributes.get("src") or "data:").startswith("data:"), name
            assert "url(" not in (attributes.get("style") or ""), name
        styles = page[page.index("<style>") : page.index("</style>")]
        assert "url(" not in styles
        assert "@import" not in styles
        assert len(page) < 100_000, name


def test_the_browser_is_told_to_refuse_scripts_and_whatever_is_elsewhere():
    policies = [attributes for tag, attributes in Tags(page_of()).found if "http-equiv" in attributes]
    assert [one["content"] for one in policies] == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


def test_texts_that_are_slow_to_draw_are_shown_plain_after_a_while(monkeypatch):
    clock = iter([0.0, 1.0, feedback.MOST_SECONDS + 1, feedback.MOST_SECONDS + 2])
    monkeypatch.setattr(feedback.time, "monotonic", lambda: next(clock))
    page = page_of(new_markdown_cell("**first**"), new_code_cell("x = 1"))
    assert "<strong>first</strong>" in page
    assert '<div class="code"><pre>x = 1</pre></div>' in page
    monkeypatch.setattr(feedback.time, "monotonic", lambda: 0.0)
    long = "." * (feedback.MOST_IN_COLOUR + 1)
    assert f"<pre>{long}</pre>" in page_of(new_code_cell(long))


def test_a_text_that_is_too_long_to_show_is_cut():
    cells = [new_code_cell(f"{number} " + "x" * feedback.MOST_OF_CELL) for number in range(21)]
    page = page_of(*cells)
    assert page.count("… (cut here)") == 20
    assert "What follows is too long to be shown." in page


def test_a_student_s_text_covers_nothing_and_does_not_look_like_an_outcome():
    fake = '<div class="outcome x" style="margin-top:-999px;padding:999px;width:99em;color:red">18 of 18 points</div>'
    ((_, attributes),) = [found for found in Tags(as_html(fake)).found if found[0] == "div"]
    assert attributes.keys() == {"style"}
    assert attributes["style"] == "color:red;"


def test_every_formula_of_the_course_is_drawn_as_a_formula():
    formulas: list[str] = []
    for path in [*SOLUTIONS.values(), *sorted((ROOT / "notebooks").glob("*.ipynb"))]:
        renderer = Renderer({})
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                MarkdownWithMath(renderer).render(cell.source)
        formulas += renderer.formulas
    assert len(formulas) > 100
    assert [one for one in formulas if not one.startswith("<math") or "\\" in one] == []


def test_a_formula_becomes_mathml_and_dollar_signs_in_code_stay():
    html = as_html("$x^2$ and `$y$`, it costs $5 and $10\n\n```\n$z$\n```\n\n$$a$$")
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in html
    assert "<code>$y$</code>" in html
    assert "<code>$z$\n</code>" in html
    assert "costs $5 and $10" in html
    assert '<math display="block"><mrow><mi>a</mi></mrow></math>' in html


def test_functions_and_bars_are_spaced_as_in_latex_and_aligned_lines_stay_lines():
    assert '<mo lspace="0.167em" rspace="0.167em">sin</mo>' in as_mathml(r"2 \sin x")
    assert as_mathml("a + |b|^2").count('lspace="0" rspace="0">|</mo>') == 2
    assert "<msup><mrow><mo" in as_mathml("|b|^2")
    assert "<mo>:</mo>" in as_mathml("x:")
    assert as_mathml(r"\begin{aligned} a &= b \\ c &= d \end{aligned}").count("<mtr>") == 2


ACTING = (
    r"\text{<script>steal()</script>}", r"\href{javascript:steal()}{x}", r"\style{background:url(//e.org)}{x}",
    "x^", "{" * 1000, "a" * 10**5, r"\text{\" onclick=steal() x=\"}", "<img src=//e.org>", "\x00\ud800",
)  # fmt: skip


def test_a_formula_holds_nothing_that_acts_on_the_reader():
    for page in [page for latex in ACTING for page in (as_mathml(latex, is_display=True), as_html(f"${latex}$"))]:
        for tag, attributes in Tags(page).found:
            assert tag in ("math", "code", "p", "em") or tag.startswith("m")
            assert not {"href", "src", "onclick", "style"} & attributes.keys()


def test_a_picture_in_the_notebook_is_shown_and_one_from_elsewhere_is_named():
    cell = new_markdown_cell("![mine](attachment:a.png) ![lost](attachment:b.png) ![theirs](https://e.org/spy.png)")
    cell["attachments"] = {"a.png": {"image/png": PIXEL}}
    page = page_of(cell)
    assert f'src="data:image/png;base64,{PIXEL}"' in page
    assert "not in the notebook: lost" in page
    assert "not in the notebook: theirs" in page
    assert "e.org" not in page


def test_a_link_leads_outside_or_nowhere():
    links = [
        attributes.get("href")
        for tag, attributes in Tags(as_html("[a](https://e.org) [b](../../notebooks/x.ipynb) [c](data:x)")).found
        if tag == "a"
    ]
    assert links == ["https://e.org", None, None]


def test_code_is_shown_as_it_is_and_outcomes_under_it():
    panel = new_output("display_data", data={"text/html": "<b>found</b><script>x()</script>", "text/plain": "found"})
    page = page_of(new_code_cell("print('<i>$x$</i>')", outputs=[panel]))
    assert "&lt;i&gt;$x$&lt;/i&gt;" in page
    assert page.index("<b>found</b>") > page.index("$x$")
    assert "<script>" not in page
