"""A text is read as it is meant: tags, lines, and what it depends on; what makes no sense is refused."""

from __future__ import annotations

import re

from course.building import text
from course.commands import build

TEXT = """\
# %% [markdown]
# # A title

# %% given="setup"

x = 1


# %% solution="f"
def f():
    return x


# %%

# A comment
f()
"""


def test_a_change_of_the_checks_or_their_probes_is_a_change_of_the_assignment(tmp_path):
    checks = tmp_path / "course" / "checks" / "sums"
    checks.mkdir(parents=True)
    (checks / "__init__.py").write_text("from course.checks.sums.numbers_of import three\n")
    (checks / "numbers_of.py").write_text("three = 3\n")
    program = "from course.checks import sums as check\n"
    before = text.hashes(program, tmp_path)
    (checks / "numbers_of.py").write_text("three = 4\n")
    after = text.hashes(program, tmp_path)
    assert before["sha256"] == after["sha256"]
    assert before["checks_sha256"] != after["checks_sha256"]
    probes = tmp_path / "course" / "probes"
    probes.mkdir()
    (probes / "sums.py").write_text("def counted(function): ...\n")
    assert after["checks_sha256"] != text.hashes(program, tmp_path)["checks_sha256"]


SENSELESS = {
    "unknown tag": ('# %% solutoin="f"\n1', "expected one of solution, test, given, manual"),
    "two roles": ('# %% solution="f" test="f"\n1', "expected one of"),
    "a test without points": ('# %% test="f"\n1', "needs points"),
    "points of a solution": ('# %% solution="f" points=2\n1', "has no points"),
    "manual code": ('# %% manual="f" points=2\n1', "cannot be code"),
    "an empty cell": ("# %%\n1\n\n# %%\n\n# %%\n2\n", "the cell is empty"),
    "a name twice": ('# %% solution="f"\n1\n# %% solution="f"\n1', "an earlier cell is called 'f' too"),
}


def test_tags_that_make_no_sense_are_refused_by_name(tmp_path, capsys):
    path = tmp_path / "course" / "lectures" / "01_lecture.py"
    path.parent.mkdir(parents=True)
    for cells, complaint in SENSELESS.values():
        path.write_text(cells)
        assert build.run(["--check"], tmp_path) == 1
        assert re.search(rf"course/lectures/01_lecture\.py, cell \d: .*{complaint}", capsys.readouterr().out)


def test_a_line_of_a_cell_is_found_in_the_text(tmp_path):
    path = tmp_path / "text.py"
    path.write_text(TEXT)
    cells = text.read(path, tmp_path).cells
    lines = TEXT.splitlines()
    for number, cell in enumerate(cells):
        if cell.cell_type == "code":
            for line, content in enumerate(cell.source.splitlines(), start=1):
                assert lines[text.line_of(path, number, line) - 1] == content
