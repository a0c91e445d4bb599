"""The sources of all pages, and the site that Sphinx makes of them."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from urllib.parse import quote

from course.book import api, contents, core, notebook
from course.book.links import Links
from course.chapters import CHAPTERS, FIRST_LECTURE, Chapter

PROCESSES = 2


def build(root: Path, folder: Path) -> int:
    """Make the site of the repository at `root` anew in `folder`; 0, or 1 if Sphinx warned."""
    from sphinx.cmd.build import build_main

    with tempfile.TemporaryDirectory() as scratch:
        source, built = Path(scratch, "source"), Path(scratch, "html")
        write_sources(root, source)
        options = ["-q", "-W", "--keep-going", "-j", str(PROCESSES), "-c", str(Path(__file__).parent)]
        if build_main([*options, "-d", f"{scratch}/doctrees", "-b", "html", str(source), str(built)]) != 0:
            return 1
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(built, folder, ignore=shutil.ignore_patterns("*.map", ".buildinfo", "objects.inv"))
    return 0


def write_sources(root: Path, source: Path) -> None:
    """Write what Sphinx reads: a file for each page, and the pictures."""
    links = Links(contents.pages(root), contents.repository(root))
    for name in contents.sources(root):
        text, pictures = page(root, name, links.repository)
        if name == contents.START:
            text = text.replace("ADDRESS", links.repository or "ADDRESS") + trees(root)
        page_file = write(source, f"{contents.page_name(name)}.md", links.rewritten(text, name))
        for picture, content in pictures.items():
            (page_file.parent / picture).write_bytes(content)
    for picture in links.pictures:
        if (root / picture).exists():
            (source / picture).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / picture, source / picture)
    for chapter in CHAPTERS:
        if contents.of_chapter(chapter, root):
            write(source, f"{contents.chapter_page(chapter)}.md", chapter_text(chapter, root))
    packages = api.public_packages()
    write(source, f"{contents.API}.rst", api.index(packages))
    for package in packages:
        write(source, f"reference/{package.__name__}.rst", api.page(package))


def write(folder: Path, name: str, text: str) -> Path:
    """Write a text into a file, whose folder is made; returns its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def page(root: Path, source: str, repository: str) -> tuple[str, dict[str, bytes]]:
    """The Markdown page for one source file, and the pictures stored in that file."""
    path = root / source
    if path.suffix == ".ipynb":
        text, pictures = notebook.as_markdown(path)
        return re.sub(r"^# .*\n", lambda title: title[0] + how_to_run(source, repository), text, count=1), pictures
    text = path.read_text(encoding="utf-8")
    return core.as_markdown(text, source) if path.suffix == ".py" else text, {}


def how_to_run(source: str, repository: str) -> str:
    """The line under a notebook's title: the command that opens it, and where else it can be run."""
    stem = Path(source).stem
    if source.startswith("exercises/"):
        typed = next(chapter.typed for chapter in CHAPTERS if chapter.name == stem)
        commands = f"`python3 -m course start {typed}`, then `python3 -m course lab work/{typed}`"
    else:
        commands = f"`python3 -m course lab {stem.partition('_')[0]}`"
    ways = [f"Run it: {commands}"]
    if github := re.fullmatch(r"https://github\.com/([^/]+/[^/]+)", repository):
        ways.append(f"[Binder](https://mybinder.org/v2/gh/{github[1]}/main?labpath={quote(source, safe='')})")
        if source == FIRST_LECTURE:  # whose first cell brings the course to Colab
            ways.append(f"[Colab](https://colab.research.google.com/github/{github[1]}/blob/main/{source})")
    return f"\n{' · '.join(ways)}\n"


def trees(root: Path) -> str:
    """The table of contents, at the end of the start page."""
    return "".join(tree(names, f":hidden:\n:caption: {caption}\n") for caption, names in contents.trees(root).items())


def tree(names: list[str], options: str) -> str:
    """Sphinx's list of pages."""
    return f"\n```{{toctree}}\n{options}\n" + "".join(f"/{name}\n" for name in names) + "```\n"


def chapter_text(chapter: Chapter, root: Path) -> str:
    """The page of a chapter: its question, its lectures and its exercises. The capstone's title has no number."""
    number = f"{chapter.number}. " if chapter.typed == chapter.number else ""
    names = [contents.page_name(source) for source in contents.of_chapter(chapter, root)]
    return f"# {number}{chapter.title}\n\n**{chapter.question}**\n{tree(names, ':maxdepth: 1')}"
