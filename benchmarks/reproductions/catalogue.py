"""The list of experiments, read from their files without running them."""

from __future__ import annotations

import ast
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.reproductions.reproduction import RESULTS

FOLDER = Path(__file__).parent
README = FOLDER / "README.md"
BEGIN, END = "<!-- the experiments: begin -->\n", "<!-- the experiments: end -->\n"


@dataclass(frozen=True)
class Entry:
    """One experiment: its file's name, its title, and the first sentence of its docstring."""

    name: str
    title: str
    summary: str

    def verdicts(self, folder: Path = RESULTS) -> list[tuple[str, str, str]]:
        """The verdicts of the last run: seconds, "holds" or "fails", and the sentence with the deciding numbers."""
        path = folder / f"{self.name}-verdict.csv"
        if not path.exists():
            return []
        with path.open(newline="") as file:
            return [(row["seconds"], row["verdict"], row["sentence"]) for row in csv.DictReader(file)]


def entries(folder: Path = FOLDER) -> list[Entry]:
    """The experiments of the folder, by name: the files that have a TITLE."""
    return [entry for path in sorted(folder.glob("*.py")) for entry in _entry(path)]


def _entry(path: Path) -> Iterator[Entry]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["TITLE"]:
            summary = " ".join((ast.get_docstring(tree) or "").split("\n\n")[0].split())
            yield Entry(path.stem, str(ast.literal_eval(node.value)), summary)


def readme_table(of: list[Entry]) -> str:
    """The table of the README, in Markdown."""
    lines = ["| file | what it shows | |", "|---|---|---|"]
    for one in of:
        file, picture = f"[`{one.name}`]({one.name}.py)", f"[picture](results/{one.name}.png)"
        lines.append(f"| {file} | **{one.title}.** {one.summary} | {picture} |")
    return "\n".join(lines) + "\n"


def readme_with(table: str, text: str) -> str:
    """The README's text with this table between its two marks."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + table + END + after
