"""What the README says is so: its example prints what stands below it, its folders and links exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LECTURES = ROOT / "course" / "lectures"
README = (ROOT / "README.md").read_text(encoding="utf-8")

EXAMPLE = re.compile(
    r"^```python\n(?P<program>.*?)^```\n\s*?(?:^[^`\n][^\n]*\n|^\n)*?^```text\n(?P<output>.*?)^```", re.M | re.S
)
MAP_LINE = re.compile(r"^[ │├└─|`*-]*(?P<folder>[\w./-]+/)[`*]*(?=\s|:)", re.M)
END = "---- the end of an example ----"
LINK = re.compile(r"\]\((?!https?://|#|mailto:)(?P<path>[^)#\s]+)")


def examples() -> list[tuple[str, str]]:
    """The README's programs, each with the output printed below it."""
    return [(match["program"], match["output"]) for match in EXAMPLE.finditer(README)]


def folder_map() -> list[str]:
    """The folders named at the beginnings of lines, in the README's plain blocks and tables."""
    blocks = re.findall(r"^```(?:text)?\n(.*?)^```", README, re.M | re.S)
    rows = re.findall(r"^\|[^\n]*", README, re.M)
    return [match["folder"] for text in [*blocks, *rows] for match in MAP_LINE.finditer(text)]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_example_prints_what_the_readme_says(tmp_path: Path) -> None:
    assert examples(), "README.md has no ```python block with a ```text block below it"
    names = [f"example{number}.py" for number in range(len(examples()))]
    for name, (program, _) in zip(names, examples(), strict=True):
        (tmp_path / name).write_text(program, encoding="utf-8")
    # In one process, which imports and starts the fork server once: that took two thirds of the time of five processes.
    one_after_another = f"import runpy\nfor name in {names}: runpy.run_path(name, run_name='__main__'); print({END!r})"
    result = subprocess.run([sys.executable, "-c", one_after_another], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    printed = [text.rstrip() for text in result.stdout.split(f"{END}\n")]
    assert printed == [*(output.rstrip() for _, output in examples()), ""]


def test_every_folder_on_the_map_exists() -> None:
    assert folder_map(), "README.md has no map of the folders"
    missing = [folder for folder in folder_map() if not (ROOT / folder).is_dir() and folder != "runs/"]
    assert missing == []


def test_every_pip_command_of_the_readme_names_the_environment() -> None:
    """Another pip does not find minidl, or refuses to install (`externally-managed-environment`)."""
    commands = re.findall(r"(\S*?)pip install", README)
    assert len(commands) >= 4
    assert [before for before in commands if not before.endswith(".venv/bin/")] == []


def test_every_file_that_the_readme_links_to_exists() -> None:
    links = [match["path"] for match in LINK.finditer(README)]
    assert links, "README.md links to no file"
    assert [path for path in links if not (ROOT / path).exists()] == []


def test_what_to_read_first_exists() -> None:
    rows = re.findall(r"^\| (`[\w/]+/`.*?) \|.*\| (`[^|]+) \|$", README, re.M)
    assert len(rows) > 10, "README.md has no table of what to read first"
    for folders, first in rows:
        places = [ROOT / folder for folder in re.findall(r"`([\w/]+/)`", folders)]
        for name in re.findall(r"`([\w./]+)`", first):
            assert any((place / name).exists() or (place.parent / name).exists() for place in places), name


def test_the_chapters_that_it_says_are_there_are_those_with_lectures() -> None:
    told = re.search(r"Today chapters ([\d, and]+) are there", README)
    assert told, "README.md does not say which chapters are there"
    assert re.findall(r"\d\d", told[1]) == sorted({path.name[:2] for path in LECTURES.glob("[01]*.py")} - {"00"})


@pytest.mark.parametrize("command", ["python3 -m course demo", "python3 -m course test"])
def test_the_readme_shows_the_two_commands(command: str) -> None:
    assert command in README
