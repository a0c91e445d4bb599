"""`python3 -m course` without a command: the chapters, the points so far, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from course.chapters import FIRST_LECTURE, PARTS
from course.command_line import COMMANDS, FOR_STUDENTS
from course.plural import counted
from course.setup.bootstrap import ROOT
from course.student.standing import Standing, standings

WIDTH = 80
TO_COME = "to come"

INTRODUCTION = """\
[bold]Parallel deep learning from scratch[/bold]: neural networks, and how many machines
train one together. Sixteen chapters; in each a lecture to read and run, and
exercises that check themselves."""

TROUBLE = "Trouble? course/troubleshooting.md     All commands: python3 -m course --help"


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Print the overview."""
    print_overview(Console(highlight=False), root)
    return 0


def print_overview(console: Console, root: Path) -> None:
    """Print the overview of the clone at `root`."""
    there = standings(root)
    lines = [INTRODUCTION, *course_map(there), "", *commands(), "", TROUBLE, ""]
    for line in [*lines, f"[bold]Next:[/bold] {escape(next_step(root, there))}"]:
        console.print(line, soft_wrap=True)


def show(root: Path = ROOT) -> None:
    """Show the chapters in a notebook of notebooks/: parts, titles, questions, and links to the lectures."""
    from IPython.display import Markdown, display

    display(Markdown("\n".join(markdown_map(root))))


def markdown_map(root: Path) -> list[str]:
    """The chapters as Markdown lists, one per part."""
    lines = []
    for part, chapters in PARTS.items():
        lines += ["", f"**{part}**", ""]
        for chapter in chapters:
            title, lectures = f"{chapter.number} {chapter.title}", chapter.lectures(root)
            if len(lectures) == 1:
                title = f"[{title}]({lectures[0].name})"
            elif lectures:
                title += f" ({', '.join(f'[{path.stem[:3]}]({path.name})' for path in lectures)})"
            lines.append(f"- {title}: *{chapter.question}*")
    return lines


def course_map(there: Sequence[Standing]) -> list[str]:
    """The parts and chapters: the question of each, what exists, and the points so far."""
    by_name = {standing.chapter.name: standing for standing in there}
    lines = []
    for part, chapters in PARTS.items():
        lines += ["", f"[bold]{part}[/bold]"]
        for chapter in chapters:
            what = what_is_there(by_name[chapter.name])
            style = "dim" if what == TO_COME else "bold"
            lines.append(f"[{style}]{chapter.number} {chapter.title:<34}[/{style}]{what:>{WIDTH - 37}}")
            lines.append(f"   [{style.replace('bold', 'italic')}]{chapter.question}[/]")
    return lines


def what_is_there(standing: Standing) -> str:
    """What exists of a chapter; with points once it was started."""
    read = {0: [], 1: ["lecture"]}.get(standing.lectures, [f"{standing.lectures} lectures"])
    write = [counted(len(standing.points), "exercise")] if standing.points else []
    if not read and not write:
        return TO_COME
    begun = standing.started or standing.earned
    points = [f"{standing.total:g}/{standing.possible:g} points"] if begun else []
    return ", ".join(read + write + points)


def commands() -> list[str]:
    """The students' commands, one line each."""
    typed = {f"python3 -m course {name} {COMMANDS[name].operand}".rstrip(): name for name in FOR_STUDENTS}
    return [f"{escape(command):<30}{COMMANDS[name].meaning}" for command, name in typed.items()]


def next_step(root: Path, there: Sequence[Standing]) -> str:
    """The one thing to do now."""
    with_exercises = [standing for standing in there if standing.points]
    begun = any(standing.started or standing.earned for standing in with_exercises)
    if not begun and (root / FIRST_LECTURE).exists():
        return f"read {FIRST_LECTURE}:  python3 -m course lab"
    for standing in with_exercises:
        if standing.complete:
            continue
        number = standing.chapter.typed
        if not standing.started:
            read = f"read chapter {number} (python3 -m course lab {number}), then  " if standing.lectures else ""
            return f"{read}python3 -m course start {number}"
        return f"{standing.next_exercise} in {standing.chapter.work(Path())}, then  python3 -m course check {number}"
    if with_exercises:
        return "nothing: you have all the points there are. The next chapters are to come."
    return "python3 -m course demo"
