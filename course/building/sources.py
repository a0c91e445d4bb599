"""The texts that people write, the notebooks built from each, and notebooks without a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from course.plural import there_are
from course.setup.bootstrap import ROOT

NOTEBOOK_FOLDERS = ("notebooks", "solutions", "exercises")


@dataclass(frozen=True)
class Source:
    """A text, `course/lectures/NAME.py` or `course/assignments/NAME.py` below `root`."""

    path: Path
    root: Path = ROOT

    def __str__(self) -> str:
        return self.path.relative_to(self.root).as_posix()

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def is_lecture(self) -> bool:
        return self.path.parent.name == "lectures"

    @property
    def executed(self) -> Path:
        """The notebook with outputs: a lecture's, or an assignment's solution."""
        if self.is_lecture:
            return self.root / "notebooks" / f"{self.name}.ipynb"
        return self.root / "solutions" / self.name / f"{self.name}.ipynb"

    @property
    def exercise(self) -> Path | None:
        """The student's notebook of an assignment."""
        return None if self.is_lecture else self.root / "exercises" / self.name / f"{self.name}.ipynb"

    @property
    def notebooks(self) -> list[Path]:
        return [path for path in (self.executed, self.exercise) if path]


def sources(root: Path = ROOT) -> list[Source]:
    """All texts in the order of their names, a chapter's lectures before its assignment."""
    paths = [path for folder in ("lectures", "assignments") for path in (root / "course" / folder).glob("*.py")]
    order = sorted(paths, key=lambda path: (path.stem[:2], path.parent.name < "l", path.stem))
    return [Source(path, root) for path in order]


def chosen(texts: Sequence[Source], names: Sequence[str], kind: str = "lecture or assignment") -> list[Source]:
    """The texts whose names begin with one of `names`, which may be paths. Raises ValueError if one fits none.

    kind: what the texts are, for the error.
    """
    beginnings = {name: Path(name).stem if name.endswith((".py", ".ipynb")) else name for name in names}
    for name, beginning in beginnings.items():
        if not beginning or not any(text.name.startswith(beginning) for text in texts):
            known = dict.fromkeys(text.name for text in texts)
            raise ValueError(f"No {kind} is called {name!r}: {there_are(known)}.")
    return [text for text in texts if not names or text.name.startswith(tuple(beginnings.values()))]


def orphans(root: Path = ROOT) -> list[Path]:
    """The notebooks that are built from no text."""
    wanted = {path for text in sources(root) for path in text.notebooks}
    there = [path for folder in NOTEBOOK_FOLDERS for path in sorted((root / folder).rglob("*.ipynb"))]
    return [path for path in there if path not in wanted and ".ipynb_checkpoints" not in path.parts]
