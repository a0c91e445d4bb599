"""The book's sources: every text has one place, links lead to pages, notebooks and the core become pages."""

from __future__ import annotations

import base64
import subprocess
from collections import Counter

import pytest
from nbformat import v4

from course.book import contents, core, notebook, site
from course.book.links import Links, slug
from course.chapters import CHAPTERS
from course.setup.bootstrap import ROOT

NOT_READ = {"README.md", "PACKAGE.md"}
"""Texts that the start page replaces."""


def test_every_notebook_and_every_guide_is_in_the_table_of_contents_once():
    found = contents.sources(ROOT)
    named = Counter(name for names in contents.trees(ROOT).values() for name in names)
    named.update(contents.page_name(path) for chapter in CHAPTERS for path in contents.of_chapter(chapter, ROOT))
    own = {contents.page_name(source) for source in found} - {"index"}
    lists = {contents.chapter_page(chapter) for chapter in CHAPTERS} | {contents.API}
    assert named == dict.fromkeys(own | lists, 1)
    texts = {path.relative_to(ROOT).as_posix() for part in ("minidl", "course", "benchmarks")
             for path in (ROOT / part).rglob("*.md")}  # fmt: skip
    texts |= {path.name for path in ROOT.glob("*.md")}
    texts |= {path.relative_to(ROOT).as_posix() for folder in ("notebooks", "exercises", "minidl/mini")
              for pattern in ("*.ipynb", "[!_]*.py", "__main__.py") for path in (ROOT / folder).rglob(pattern)
              if ".ipynb_checkpoints" not in path.parts}  # fmt: skip
    assert sorted(found) == sorted(texts - NOT_READ)


def test_links_lead_to_pages_with_their_titles_and_files_without_a_page_to_the_repository():
    pages = {"course/a.md": "course/a", "minidl/nn": "reference/minidl.nn", "minidl/cluster/README.md": "minidl/b"}
    text = "[`x`](../LICENSE), [nn](../minidl/nn/), [c](../minidl/cluster), [w](https://e.org/a.md) `[k](a.md)`"
    text += " [`a.md`](a.md#Two-words) [`minidl/nn/`](../minidl/nn/)"
    text += "\n```text\n[k](a.md)\n```\n[t](#Two-words) ![p](p.png)"
    links = Links(pages, "https://github.com/a/b")
    assert links.rewritten(text, "course/b.md") == (
        "[`x`](https://github.com/a/b/blob/main/LICENSE), {doc}`nn </reference/minidl.nn>`, [c](/minidl/b.md), "
        "[w](https://e.org/a.md) `[k](a.md)` [](/course/a.md#two-words) {doc}`/reference/minidl.nn`\n"
        "```text\n[k](a.md)\n```\n[t](#two-words) ![p](/course/p.png)"
    )
    assert links.pictures == {"course/p.png"}
    assert Links(pages).rewritten(text, "course/b.md").startswith("`x`, {doc}`nn")
    assert slug("Two words, one `comma`") == "two-words-one-comma"


def test_the_address_is_the_one_in_pyproject_or_where_the_clone_came_from_and_names_where_a_notebook_runs(tmp_path):
    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\nname = "a"\n')
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert contents.repository(tmp_path) == ""
    for origin, address in (
        ("/home/me/minidl", ""),
        ("https://me:secret@example.org/c/d.git", "https://example.org/c/d"),
    ):
        subprocess.run(["git", "config", "remote.origin.url", origin], cwd=tmp_path, check=True)
        assert contents.repository(tmp_path) == address
    project.write_text('[project]\nname = "a"\n[project.urls]\nRepository = "https://github.com/a/b.git"\n')
    assert contents.repository(tmp_path) == "https://github.com/a/b"
    lecture, there = "notebooks/04b_collectives.ipynb", "https://github.com/a/b"
    assert site.how_to_run(lecture, "") == "\nRun it: `python3 -m course lab 04b`\n"
    assert "https://mybinder.org/v2/gh/a/b/main?labpath=notebooks%2F04b_" in site.how_to_run(lecture, there)
    assert "labpath" not in site.how_to_run(lecture, "https://git.example.org/a/b")
    assert "course start 16_capstone`" in site.how_to_run("exercises/16_capstone/16_capstone.ipynb", "")


def written(tmp_path, *cells):
    path = tmp_path / "lecture.ipynb"
    path.write_text(v4.writes(v4.new_notebook(cells=list(cells))))
    return path


def picture(words):
    png = base64.b64encode(b"PNG").decode()
    outputs = [v4.new_output("display_data", {"image/png": png, "text/plain": "<Picture>"})]
    outputs += [v4.new_output("display_data", {"text/markdown": words})] if words else []
    return v4.new_code_cell("draw()", outputs=outputs, metadata={"jupyter": {"source_hidden": True}})


def test_a_notebook_keeps_texts_code_and_outputs_and_folds_hidden_code(tmp_path):
    table = v4.new_output("display_data", {"text/html": "<b>bold</b>", "text/plain": "x"})
    printed = v4.new_output("stream", text="```\n")
    words = "*In words: $p$ ranks [all].*"
    last = v4.new_code_cell("f()", outputs=[table, printed])
    silent = v4.new_code_cell("import a", metadata={"jupyter": {"source_hidden": True}})
    text, pictures = notebook.as_markdown(written(tmp_path, v4.new_markdown_cell("# T"), silent, picture(words), last))
    assert pictures == {"lecture_2_0.png": b"PNG"}
    folded = "<details class='code'><summary>Code</summary>\n\n"
    folded += "```python\nimport a\n```\n\n```python\ndraw()\n```\n\n</details>"
    assert text.startswith(f"# T\n\n{folded}\n\n![p ranks")
    assert f"![p ranks \\[all\\].](lecture_2_0.png)\n\n{words}" in text
    assert "{raw} html\n<div class='output'><b>bold</b></div>" in text
    assert "````text\n```\n````" in text


def test_what_follows_a_guess_is_a_result_to_unfold_until_its_answer(tmp_path):
    asked = v4.new_output("display_data", {"text/html": '<div class="minidl-guess"></div>'})
    answer = v4.new_output(
        "display_data", {"text/markdown": "So: <span data-against='7'>none</span>".replace("'", '"')}
    )
    outputs = (asked, v4.new_output("stream", text="7"), answer, v4.new_output("stream", text="8"))
    cells = [v4.new_code_cell(f"f({n})", outputs=[output]) for n, output in enumerate(outputs)]
    text = notebook.as_markdown(written(tmp_path, *cells))[0]
    assert [f"f({n})" in text for n in range(4)] == [False, True, True, True]
    parts = text.split("<details class='result' open>")
    assert ["7" in part and "</details>" in part for part in parts] == [False, True, True]
    assert parts[2].index("</details>") < parts[2].index("8")


def test_a_picture_without_words_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has no words under it"):
        notebook.as_markdown(written(tmp_path, picture("")))


@pytest.mark.parametrize("path", contents.CORE)
def test_a_page_of_the_core_has_all_its_code_and_all_its_prose(path):
    source = (ROOT / path).read_text()
    text = core.as_markdown(source, path).replace("\\", "")
    missing = [line for line in source.splitlines() if line.strip(' "#').replace("\\", "") not in text]
    assert missing == []


def test_methods_with_a_docstring_stand_alone_and_others_with_what_is_before_them():
    source = '"Why?"\nclass A:\n    def f(self):\n        pass\n\n    def g(self):\n        "Say *x*."\n'
    source += "        return 1\n\n# End.\n"
    assert core.as_markdown(source, "a/b.py") == (
        "# `b.py`: Why?\n\n## `A`\n\n```python\nclass A:\n    def f(self):\n        pass\n```\n\n"
        "Say \\*x\\*.\n\n```python\n    def g(self):\n        return 1\n```\n\nEnd.\n"
    )
