"""What the README says is so: its examples print what stands below them, its folders and links exist."""

from __future__ import annotations

import re
import runpy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minidl import data, nn, optim, parallel
from tests.tiers import all_but_first_exhaustive

ROOT = Path(__file__).resolve().parent.parent.parent
LECTURES = ROOT / "course" / "lectures"
README = (ROOT / "README.md").read_text(encoding="utf-8")

EXAMPLE = re.compile(
    r"^```python\n(?P<program>.*?)^```\n\s*?(?:^[^`\n][^\n]*\n|^\n)*?^```text\n(?P<output>.*?)^```", re.M | re.S
)
EXAMPLES = [(match["program"], match["output"]) for match in EXAMPLE.finditer(README)]
"""The programs, each with the output printed below it."""

SHORT = 1
"""The one that launches a program; the others train models."""

MAP_LINE = re.compile(r"^[ │├└─|`*-]*(?P<folder>[\w./-]+/)[`*]*(?=\s|:)", re.M)
LINK = re.compile(r"\]\((?!https?://|#|mailto:)(?P<path>[^)#\s]+)")


def folder_map() -> list[str]:
    """The folders named at the beginnings of lines, in the README's plain blocks and tables."""
    blocks = re.findall(r"^```(?:text)?\n(.*?)^```", README, re.M | re.S)
    rows = re.findall(r"^\|[^\n]*", README, re.M)
    return [match["folder"] for text in [*blocks, *rows] for match in MAP_LINE.finditer(text)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", all_but_first_exhaustive(sorted(range(len(EXAMPLES)), key=SHORT.__ne__)))
def test_an_example_prints_what_the_readme_says(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program, output = EXAMPLES[number]
    (tmp_path / "example.py").write_text(program, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path("example.py", run_name="__main__")
    assert capfd.readouterr().out.rstrip() == output.rstrip()


def test_the_strategy_of_the_readme_trains_where_a_replica_gets_no_samples() -> None:
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
