"""Links in notebooks and in pages lead to something that is there."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import nbformat

from course.book.contents import START
from course.setup.bootstrap import ROOT

FOLDERS = ("course", "minidl", "tests", "benchmarks", "notebooks", "solutions", "exercises")
PAGES = [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in sorted((ROOT / folder).rglob("*.md")))]
NOTEBOOKS = [page for folder in FOLDERS[4:] for page in sorted((ROOT / folder).rglob("*.ipynb"))]
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|(?:href|src)=\"([^\"]+)\"|^\[[^\]]+\]:\s*(\S+)", re.M)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.I)
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.M | re.S)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.M)


def prose(page: Path) -> str:
    """A page's text, or that of a notebook's markdown cells, without code."""
    if page.suffix == ".ipynb":
        cells = nbformat.read(page, as_version=4).cells
        return CODE.sub("", "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown"))
    return CODE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings: as code hosts write them, and as Jupyter does."""
    headings = [re.sub(r"[*_`]|\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in HEADING.findall(prose(page))]
    hosts = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return hosts | {heading.replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    targets = [next(filter(None, match.groups())) for match in LINK.finditer(prose(page))]
    return [target for target in targets if not ELSEWHERE.match(target) and not leads_somewhere(page, target)]


def leads_somewhere(page: Path, target: str) -> bool:
    path, _, anchor = unquote(target).partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists() or not file.is_relative_to(ROOT):
        return False
    in_book = ROOT / START if path and file == ROOT / "README.md" else file  # the start page takes README's place
    return not anchor or file.suffix not in (".md", ".ipynb") or all(anchor in anchors(one) for one in {file, in_book})


def test_every_link_leads_to_something():
    broken = {page.relative_to(ROOT).as_posix(): broken_links(page) for page in [*PAGES, *NOTEBOOKS]}
    assert {page: links for page, links in broken.items() if links} == {}


def test_the_link_checker_finds_broken_links(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.course.test_links.ROOT", tmp_path)
    page = tmp_path / "page.md"
    (tmp_path / "there.md").write_text("# Two words, one *comma*\n")
    page.write_text(
        "# Here\n[a](there.md) [b](nowhere.md) ![c](no.png) [d](#here) [e](#there) [f](there.md#two-words-one-comma)\n"
        '[g](https://example.org/x) <img src="gone.png"> `[h](code.md)` [i](there.md#gone) [j](../outside.md "title")\n'
        "[k](README.md#both) [l](README.md#one)\n"
    )
    (tmp_path / START).parent.mkdir(parents=True)
    (tmp_path / START).write_text("# Both\n")
    (tmp_path / "README.md").write_text("# Both\n# One\n[a](#one)\n")
    assert broken_links(tmp_path / "README.md") == []
    outside = ["../outside.md", "README.md#one"]
    assert broken_links(page) == ["nowhere.md", "no.png", "#there", "gone.png", "there.md#gone", *outside]
