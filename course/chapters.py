"""The sixteen chapters of the course in four parts, and finding one by what a person types. Standard library only."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

LECTURES = "notebooks"
FIRST_LECTURE = f"{LECTURES}/00_start_here.ipynb"
DEMO_FOLDER = "runs/demo"
"""Where the lectures are, where the course begins, and where the demo leaves its report; from the root of the clone."""


class UnknownChapterError(Exception):
    """No such chapter, or it has no exercises yet; the text lists those that exist."""


@dataclass(frozen=True)
class Chapter:
    """A chapter: its folder's name, such as "04_messages_and_collectives", its title, and the question it answers.

    letters: those of its lectures, as in a regular expression. The capstone shares its number with chapter 16.
    """

    name: str
    title: str
    question: str
    letters: str = "a-z"

    @property
    def number(self) -> str:
        """Two digits, "04"."""
        return self.name[:2]

    @property
    def typed(self) -> str:
        """What a person types to mean it: the number, or the name if another chapter comes first with this number."""
        return self.number if chapter_called(self.number) is self else self.name

    def lectures(self, root: Path) -> list[Path]:
        """Its existing lectures, in reading order."""
        beginning = re.compile(rf"{self.number}[{self.letters}]?_")
        return sorted(path for path in (root / LECTURES).glob("*.ipynb") if beginning.match(path.name))

    def exercises(self, root: Path) -> Path:
        """The path of the notebook that students get; it may not exist yet."""
        return root / "exercises" / self.name / f"{self.name}.ipynb"

    def work(self, root: Path) -> Path:
        """The path of the student's own copy; it exists once the chapter was started."""
        return root / "work" / self.name / f"{self.name}.ipynb"


PARTS: dict[str, tuple[Chapter, ...]] = {
    "Part I. One node": (
        Chapter(
            "01_backpropagation",
            "Backpropagation",
            "How can the gradient of a million weights cost only two forward passes?",
        ),
        Chapter("02_minibatch_sgd", "Minibatch SGD", "Why does anyone use a noisy gradient?"),
        Chapter("03_operators", "Operators and what they cost", "Where do the seconds and the bytes go?"),
    ),
    "Part II. Many nodes, one model each": (
        Chapter(
            "04_messages_and_collectives",
            "Messages and collectives",
            "How do eight machines add up a hundred megabytes without a boss?",
        ),
        Chapter(
            "05_synchronous_data_parallelism",
            "Synchronous data parallelism",
            "When do four machines train exactly like one?",
        ),
        Chapter("06_asynchrony", "Asynchrony and parameter servers", "What if nobody waits?"),
        Chapter(
            "07_averaging",
            "Averaging instead of agreeing",
            "How seldom can machines talk and still learn one model?",
        ),
        Chapter("08_large_minibatches", "Large minibatches", "Why can't we just use a batch of 64,000?"),
        Chapter("09_gradient_compression", "Gradient compression", "Who needs 99.9 % of the gradient?"),
    ),
    "Part III. One model, many nodes": (
        Chapter("10_tensor_parallelism", "Tensor parallelism", "How do two machines share one layer?"),
        Chapter("11_pipelines", "Pipelines", "Why are three of four machines idle, and how do we wake them?"),
        Chapter("12_parallel_convolution", "Parallel convolution", "How do several machines look at one image?"),
        Chapter("13_memory", "Memory shared out", "Must every machine keep a copy of everything?"),
    ),
    "Part IV. Whole systems": (
        Chapter("14_putting_it_together", "Putting it together", "Which ways of sharing go together, and when?"),
        Chapter("15_faults_and_batch_methods", "Faults and batch methods", "What if a machine dies on the way?"),
        Chapter("16_not_fooling_the_masses", "Not fooling the masses", "When is faster really faster?", "ac-z"),
        Chapter("16_capstone", "The capstone", "Who trains to 97 % in the least time?", "b"),
    ),
}

CHAPTERS: tuple[Chapter, ...] = tuple(chapter for part in PARTS.values() for chapter in part)


def reading_minutes(lecture: Path) -> int:
    """The reading time that the notebook of a lecture states; 0 if it states none."""
    text = " ".join("".join("".join(cell["source"]) for cell in json.loads(lecture.read_bytes())["cells"]).split())
    stated = re.search(r"Reading time: about (\d+) minutes", text)
    return int(stated[1]) if stated else 0


def chapter_called(typed: str) -> Chapter:
    """The chapter that a person means by "4", "04", "04_messages_and_collectives" or the path of its notebook.

    Raises UnknownChapterError for anything else.

    >>> chapter_called("4").title
    'Messages and collectives'
    >>> chapter_called("work/04_messages_and_collectives/04_messages_and_collectives.ipynb").number
    '04'
    """
    name = Path(typed).name.removesuffix(".ipynb")
    for chapter in CHAPTERS:  # before the numbers: two chapters have number 16
        if chapter.name == name:
            return chapter
    if number := re.fullmatch(r"(\d{1,2})[a-z]?(_.*)?", name):
        for chapter in CHAPTERS:
            if int(chapter.number) == int(number[1]):
                return chapter
    for chapter in CHAPTERS:
        if name and name in (chapter.name[3:], chapter.title):
            return chapter
    raise UnknownChapterError(
        f"No chapter is called {typed!r}: chapters are {CHAPTERS[0].number} to {CHAPTERS[-1].number}."
    )


def chapter_with_exercises(typed: str, root: Path) -> Chapter:
    """The same, for chapters with exercises only. Raises UnknownChapterError."""
    there = [chapter.number for chapter in CHAPTERS if chapter.exercises(root).exists()]
    choice = f"there are exercises for {', '.join(there)}" if there else "no chapter has any yet"
    try:
        chapter = chapter_called(typed)
    except UnknownChapterError:
        raise UnknownChapterError(f"No chapter is called {typed!r}: {choice}.") from None
    if not chapter.exercises(root).exists():
        raise UnknownChapterError(f"Chapter {chapter.number} ({chapter.title}) has no exercises yet: {choice}.")
    return chapter
