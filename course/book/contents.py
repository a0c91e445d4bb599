"""The book's table of contents: every page has one place in it.

A page is named by its source, a path from the root of the repository, such as "notebooks/11a_pipelines.ipynb".
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

from course.book import api
from course.chapters import CHAPTERS, FIRST_LECTURE, PARTS, Chapter

START = "course/book/start.md"

CORE = tuple(
    f"minidl/mini/{name}.py"
    for name in ("tensor", "nn", "cluster", "collectives", "data_parallel", "model_parallel", "__main__")
)
SECTIONS = {
    "The core, in 700 lines": CORE,
    "Guides": (
        "minidl/for_engineers.md", "minidl/commands.md", "minidl/which_strategy.md", "minidl/which_go_together.md",
        "minidl/own_strategies.md", "minidl/from_pytorch.md", "minidl/cluster/README.md",
        "minidl/cluster/real_clusters.md", "course/troubleshooting.md",
    ),
    "For teachers": ("course/teaching.md", "course/sandboxes.md", "course/writing.md"),
    "The project": (
        "benchmarks/README.md", "benchmarks/reproductions/README.md", "course/errata.md", "MAP.md", "CONTRIBUTING.md",
        "CHANGELOG.md", "SECURITY.md", "minidl/data/files/README.md",
    ),
}  # fmt: skip
"""The captions behind the course's parts, and the sources of their pages; the students' edition lacks some."""

API = "reference/index"
"""The list of the public packages."""


def page_name(source: str) -> str:
    """The page of a source file, without suffix, as Sphinx names it: "notebooks/11a_pipelines"."""
    return "index" if source == START else source.rpartition(".")[0]


def chapter_page(chapter: Chapter) -> str:
    """The page that lists a chapter's lectures and exercises."""
    return f"chapters/{chapter.name}"


def of_chapter(chapter: Chapter, root: Path) -> list[str]:
    """The sources of a chapter's pages: its lectures, then its exercises."""
    paths = [*chapter.lectures(root), chapter.exercises(root)]
    return [path.relative_to(root).as_posix() for path in paths if path.exists()]


def sources(root: Path) -> list[str]:
    """The source files of the book in reading order. Pages of the API reference have none: docstrings make them."""
    listed = [START, FIRST_LECTURE, *(source for chapter in CHAPTERS for source in of_chapter(chapter, root))]
    listed += [source for section in SECTIONS.values() for source in section]
    return [source for source in listed if (root / source).exists()]


def pages(root: Path) -> dict[str, str]:
    """The page of each file or folder that a link may name; a package has a page of the API reference."""
    found = {source: page_name(source) for source in sources(root)}
    for package in api.public_packages():
        folder = package.__name__.replace(".", "/")
        found |= {f"{folder}/__init__.py": f"reference/{package.__name__}", folder: f"reference/{package.__name__}"}
    return found | {"README.md": "index", "minidl/mini": page_name(CORE[0])}


def trees(root: Path) -> dict[str, list[str]]:
    """The table of contents: the pages under each caption. A chapter's page lists those of the chapter."""
    found = {"Start": [page_name(FIRST_LECTURE)]}
    for part, chapters in PARTS.items():
        found[part] = [chapter_page(chapter) for chapter in chapters if of_chapter(chapter, root)]
    for caption, section in SECTIONS.items():
        found[caption] = [page_name(source) for source in section if (root / source).exists()]
    found["Guides"].append(API)
    return {caption: names for caption, names in found.items() if names}


def repository(root: Path) -> str:
    """The address of the repository; empty if none is known.

    It is `Repository` under [project.urls] in pyproject.toml, or where this clone came from if that is an https
    address: a fork's site names the fork.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = subprocess.run(
        ["git", "config", "remote.origin.url"], cwd=root, capture_output=True, text=True, check=False
    )
    origin = re.sub(r"^(https://)[^/]*@", r"\1", asked.stdout.strip())  # without a user's name and password
    address: str = project.get("urls", {}).get("Repository", origin if origin.startswith("https://") else "")
    return address.removesuffix("/").removesuffix(".git")
