"""What pages say is so: programs and commands print what stands below them, links lead to files, pages are short."""

from __future__ import annotations

import re
import runpy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minidl import data, nn, optim, parallel
from tests.cli.command import succeeds
from tests.tiers import all_but_first_exhaustive

ROOT = Path(__file__).resolve().parent.parent.parent
LECTURES = ROOT / "course" / "lectures"
FOLDERS = ("", ".github/**/", "benchmarks/**/", "course/**/", "minidl/**/", "tests/**/")
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for folder in FOLDERS
    for path in sorted(ROOT.glob(f"{folder}*.md"))
}
README = PAGES["README.md"]

MOST_LINES = {"README.md": 200, "CONTRIBUTING.md": 120, "CHANGELOG.md": 60}

EXAMPLE = re.compile(
    r"^```python\n(?P<program>.*?)^```\n\s*?(?:^[^`\n][^\n]*\n|^\n)*?^```text\n(?P<output>.*?)^```", re.M | re.S
)
EXAMPLES = [
    (match["program"], match["output"])
    for name, page in PAGES.items()
    if name != "minidl/for_engineers.md"  # test_commands_of_pages.py does what that page says
    for match in EXAMPLE.finditer(page)
]
"""The programs, each with the output printed below it."""

SHORT = next(number for number, (program, _) in enumerate(EXAMPLES) if "cluster.launch" in program)
"""The one that launches a program; the others train models."""

COMMANDS = re.findall(r"^minidl ([^#\n]*?) *#", README.split("```")[1], re.M)
"""The commands of minidl in README's first block."""

MAP_LINE = re.compile(r"^\| `(?P<folder>[\w./-]+/)`", re.M)
LINK = re.compile(r"\]\((?!https?://|mailto:)(?P<path>[^)#\s]*)(?:#(?P<heading>[^)\s]*))?\)")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", all_but_first_exhaustive(sorted(range(len(EXAMPLES)), key=SHORT.__ne__)))
def test_an_example_prints_what_the_page_says(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program, output = EXAMPLES[number]
    (tmp_path / "example.py").write_text(program, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path("example.py", run_name="__main__")
    assert capfd.readouterr().out.rstrip() == output.rstrip()


def test_there_are_as_many_examples_as_programs_with_an_output() -> None:
    assert len(EXAMPLES) == 6


@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", all_but_first_exhaustive(sorted(COMMANDS, reverse=True)))
def test_a_command_at_the_top_of_the_readme_prints_an_excerpt_of_what_stands_there(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a block of its own; these numbers are simulated, and so the same on every machine."""
    assert [each.split()[0] for each in COMMANDS] == ["simulate", "schedule"]
    monkeypatch.chdir(tmp_path)
    said = [" ".join(line.split()) for line in succeeds(*command.split()).splitlines()]
    _demo, *blocks = re.findall(r"^```text\n(.*?)^```", README, re.M | re.S)
    block = blocks[COMMANDS.index(command)]
    assert [line for line in block.splitlines() if " ".join(line.split()) not in said] == []


def test_the_strategy_of_the_page_trains_where_a_replica_gets_no_samples() -> None:
    [strategy] = [program for program, _ in EXAMPLES if "class TwoStages" in program]
    names: dict[str, Any] = {}
    exec(strategy.partition("\njob = ")[0], names)
    train, test = data.digits()
    few = data.Splits(data.Dataset(*train[np.arange(17)]), data.Dataset(*test[np.arange(30)]))  # the last minibatch: 1
    model, optimizer = partial(nn.models.MLP, 64, 13, 11, 12, 10), partial(optim.SGD, lr=0.03)
    job = parallel.Job(model, few, optimizer, batch_size=8, epochs=1)
    one, four = (parallel.train(job, *how, on="simulation") for how in ((), (names["TwoStages"](), 4)))
    for name, weight in one.checkpoint.model.items():
        np.testing.assert_allclose(four.checkpoint.model[name], weight, atol=1e-6)


@pytest.mark.parametrize("page", [page for page in MOST_LINES if page in PAGES])  # a students' edition has fewer
def test_a_page_that_everybody_reads_is_short(page: str) -> None:
    assert len(PAGES[page].splitlines()) <= MOST_LINES[page]


def test_every_link_of_a_page_leads_to_a_file_and_to_a_heading_in_it() -> None:
    links = [(name, match["path"], match["heading"]) for name, page in PAGES.items() for match in LINK.finditer(page)]
    assert len(links) > 40
    broken = []
    for name, path, heading in links:
        target = (ROOT / name).parent / path if path else ROOT / name
        if not target.exists() or (heading and heading not in headings(target)):
            broken.append(f"{name}: {path}#{heading or ''}")
    assert broken == []


def headings(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_pages_of_the_package_link_to_nothing_outside_of_it() -> None:
    """They are in the wheel, which has the folder minidl/ alone."""
    package = ROOT / "minidl"
    pages = {name: page for name, page in PAGES.items() if name.startswith("minidl/")}
    assert len(pages) > 5
    links = [(ROOT / name).parent / match["path"] for name, page in pages.items() for match in LINK.finditer(page)]
    assert [link for link in links if package not in link.resolve().parents] == []


def test_every_folder_on_the_map_exists_and_so_does_what_to_read_first() -> None:
    rows = re.findall(r"^\| (`[\w/]+/`.*?) \|.*\| (`[^|]+) \|$", PAGES["MAP.md"], re.M)
    assert len(rows) > 30
    assert len(rows) == len(MAP_LINE.findall(PAGES["MAP.md"]))
    for folders, first in rows:
        places = [ROOT / folder for folder in re.findall(r"`([\w/]+/)`", folders)]
        assert all(place.is_dir() for place in places), folders
        for name in re.findall(r"`([\w./]+)`", first):
            assert any((place / name).exists() or (place.parent / name).exists() for place in places), name


def test_the_readme_enters_the_environment_once_and_before_all_that_needs_it() -> None:
    before, *after = README.split("source .venv/bin/activate")
    assert len(after) == 1
    assert ".venv/bin" not in before + after[0]
    assert re.findall(r"^(?:minidl|pip|pytest|mpiexec|python) ", before, re.M) == []


def test_every_page_with_a_pip_command_says_which_environment_it_is_for() -> None:
    """Another pip does not find minidl, or refuses to install (`externally-managed-environment`)."""
    pages = [name for name, page in PAGES.items() if "pip install -e" in page]
    assert len(pages) >= 4
    assert [name for name in pages if not re.search("its environment|in the environment|activate", PAGES[name])] == []


def test_the_chapters_that_the_readme_says_are_there_are_those_with_lectures() -> None:
    told = re.search(r"Today\s+chapters\s+([\d, \nand]+) are\s+there", README)
    assert told, "README.md does not say which chapters are there"
    assert re.findall(r"\d\d", told[1]) == sorted({path.name[:2] for path in LECTURES.glob("[01]*.py")} - {"00"})


@pytest.mark.parametrize("command", ["python3 -m course demo", "python3 -m course test"])
def test_the_readme_shows_the_commands_simulate_and_schedule(command: str) -> None:
    assert command in README
