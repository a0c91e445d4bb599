"""`course lint`: each rule finds what it is for, and passes what is right."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from course.commands import lint
from course.linting import files, lectures, public_imports, reading_time, words
from course.linting.checkers import Checker

SEVEN, SHOWN = "# %%\nprint(7)\n", "# %%\nsay(best.against(7))\n"
PRINTED = "# %%\nprint(best.against(7))\n"
GUESS = '# %%\nbest = guess("Which?")\n'
CONTRACT = '[tool.importlinter]\ncontracts = [{ layers = ["minidl.parallel", "minidl.nn | minidl.optim"] }]\n'
LISTED = "the floors are in `pyproject.toml`:\n\n    parallel    strategies\n    nn, optim   models\n"


def lecture(text: str, code: str, minutes: int, hidden: str = "") -> str:
    """A notebook file: a text that states its reading time, a visible cell and a collapsed one with a table."""
    table = {"output_type": "display_data", "metadata": {}, "data": {"text/markdown": "| a |\n| --- |\n| 1 |"}}
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": f"Reading time: about {minutes} minutes. {text}"},
        {"cell_type": "code", "metadata": {}, "source": code, "outputs": []},
        {"cell_type": "code", "metadata": {"jupyter": {"source_hidden": True}}, "source": hidden, "outputs": [table]},
    ]
    return json.dumps({"cells": cells if hidden else cells[:2]})


Rule = Callable[[Path], Iterable[str]]
FOUND: list[tuple[Rule, dict[str, str], list[str]]] = [
    (
        files.nameless_files,
        {"course/utils.py": "", "minidl/misc/a.py": ""},
        ["minidl/misc/a.py: ", "course/utils.py: "],
    ),
    (
        files.incomplete_maps,
        {
            "minidl/nn/__init__.py": '"""Layers.\n\na.py   one\nb      two\n"""',
            **{f"minidl/nn/{n}.py": "" for n in "abc"},
        },
        ["minidl/nn/__init__.py: its map lacks c"],
    ),
    (
        files.floors_not_listed,
        {"pyproject.toml": CONTRACT, "CONTRIBUTING.md": LISTED.replace("nn, ", "")},
        ["CONTRIBUTING.md: the floors"],
    ),
    (
        words.house_words,
        {"minidl/a.py": '"""The mean loss."""\nX = 1\n"""Into so\n  many pieces; whoever counts."""'},
        [
            "minidl/a.py:3: 'so many'",
            "minidl/a.py:3: 'pieces'",
            "minidl/a.py:3: 'whoever' in a docstring: write the rank",
        ],
    ),
    (
        public_imports.inner_imports,
        {"course/checks/a.py": "from minidl.plots.lines import np\nCELL = 'import minidl.cluster.cost.formulas as f'"},
        ["course/checks/a.py: minidl.cluster.cost.formulas is", "course/checks/a.py: minidl.plots.lines.np is"],
    ),
    (
        lectures.unlike_lectures,
        {
            "course/lectures/01a_one.py": f"{GUESS}say(3)\n{GUESS}{SEVEN * 3}{SHOWN}{GUESS}# %%\nsay(best)\n# See S2",
            "course/lectures/02a_two.py": f"# %%\nexplore(draw)\n{PRINTED}",
        },
        [
            "course/lectures/01a_one.py: names slides that no student has: S2",
            "course/lectures/01a_one.py: a guess stands alone",
            "course/lectures/01a_one.py: no code cell soon after",
            "course/lectures/01a_one.py: no code cell soon after",
            "course/lectures/02a_two.py: a panel or picture without",
            "course/lectures/02a_two.py: prints how far off a guess is",
            "course/lectures: chapter 01 has no what-if panel",
        ],
    ),
    (
        reading_time.lasting_too_long,
        {
            "notebooks/01a_one.ipynb": lecture("word " * 400, "x = 1\n\n" * 121, minutes=10),
            "notebooks/01b_two.ipynb": lecture("word " * 6000, "x = 1", minutes=29),
            "notebooks/02a_three.ipynb": lecture("word " * 1000, "x = 1\n" * 60, minutes=7),
        },
        [
            "notebooks/01a_one.ipynb: 405 words, 121 visible lines of code, 0 pictures and tables take 10.1 ",
            "notebooks/01b_two.ipynb: 6005 words, 1 visible lines of code, 0 pictures and tables take 30.1 ",
            "notebooks/02a_three.ipynb: it takes 9.0 minutes, but states [7]",
        ],
    ),
]

RIGHT = {
    "minidl/tape.py": '"""This node\'s share of the minibatch; ranks exchange partial sums."""\n' + "x = 1\n" * 349,
    "minidl/nn/__init__.py": '"""Layers.\n\na.py   one\nb      two\n"""',
    "minidl/nn/a.py": "",
    "minidl/nn/b.py": "",
    "pyproject.toml": CONTRACT,
    "CONTRIBUTING.md": LISTED,
    "course/checks/a.py": "from minidl import Tensor, cluster\nfrom minidl.cluster import cost\n",
    "notebooks/01a_one.ipynb": lecture("word " * 1800, "x = 1\n" * 60, minutes=13, hidden="x = 1\n" * 150),
    "course/lectures/01a_one.py": f"{GUESS}# %%\nexplore(draw, 'See how the loss falls.', best.against(7))\n",
}


def write(root: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(("rule", "texts", "found"), FOUND, ids=[rule.__name__ for rule, _, _ in FOUND])
def test_a_rule_names_what_breaks_it_and_nothing_else(
    rule: Rule, texts: dict[str, str], found: list[str], tmp_path: Path
) -> None:
    complaints = list(rule(write(tmp_path / "wrong", texts)))
    assert [complaint[: len(start)] for complaint, start in zip(complaints, found, strict=True)] == found
    assert list(rule(write(tmp_path / "right", RIGHT))) == []


def test_the_command_runs_every_rule_and_fails_if_one_complains(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(lint.RULES.values()) == {rule for rule, _, _ in FOUND}
    monkeypatch.setattr(lint, "CHECKERS", {"floors": ["-c", "pass"]})
    monkeypatch.setattr(lint, "RULES", {"names": lambda root: []})
    assert lint.run([]) == 0
    assert capsys.readouterr().out == "names: nothing to change\nfloors: nothing to change\n"
    monkeypatch.setattr(lint, "CHECKERS", {"floors": ["-c", "print('an arrow goes up'); raise SystemExit(1)"]})
    assert lint.run([]) == 1
    assert capsys.readouterr().out == "names: nothing to change\nfloors:\n  an arrow goes up\n"


@pytest.mark.timeout(300)
def test_a_checker_that_passes_complains_of_nothing_whatever_it_prints(tmp_path: Path) -> None:
    assert Checker(tmp_path, ["-c", "print('Success')"]).complaints() == []
