"""A lecture counts as run only while its text, its notebook, what it imports and what is installed are as they were."""

from __future__ import annotations

from typing import Any

import pytest

from course.building.sources import Source, sources
from tests.course.building import lecture_record

FILES = {
    "course/lectures/01_one.py": "# %%\nfrom minidl import a\nfrom course import progress",
    "course/lectures/02_two.py": "import minidl",
    "course/commands/progress.py": "from course.student import points",
    "course/student/points.py": "",
    "course/grading/grade.py": "",
    "course/figures/page.css": "",
    "notebooks/01_one.ipynb": "",
    "minidl/__init__.py": "",
    "minidl/a.py": "def f():\n    import minidl.b",
    "minidl/b.py": "",
    "minidl/c.py": "import minidl.a",
    "minidl/kernels/jit.py": "",
    "minidl/__pycache__/a.pyc": "",
}


class Kept(dict[str, Any]):
    """pytest's cache, in memory."""

    set = dict.__setitem__


@pytest.fixture
def source(tmp_path):
    """A lecture in a small clone."""
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    forget()
    return Source(tmp_path / "course/lectures/01_one.py", tmp_path)


def forget() -> None:
    lecture_record.packages.cache_clear()
    lecture_record.imports_in.cache_clear()


def test_a_lecture_that_ran_runs_again_once_a_file_that_it_imports_or_a_data_file_has_changed(source):
    kept: Any = Kept()
    assert not lecture_record.has_run(source, kept)
    lecture_record.note(source, kept)
    assert lecture_record.has_run(source, kept)
    again = set()
    for name, content in {**FILES, "minidl/new.json": "", "minidl/new.py": ""}.items():
        (source.root / name).write_text(content + "\n# changed")
        forget()
        again |= set() if lecture_record.has_run(source, kept) else {name}
        (source.root / name).unlink() if name not in FILES else (source.root / name).write_text(content)
    others = {"course/lectures/02_two.py", "course/grading/grade.py", "minidl/c.py", "minidl/__pycache__/a.pyc"}
    assert again == FILES.keys() - others | {"minidl/new.json"}


def test_it_runs_again_once_a_package_has_another_version(source, monkeypatch):
    before = lecture_record.fingerprint(source)
    monkeypatch.setattr(lecture_record.metadata, "distributions", list)
    monkeypatch.setattr(lecture_record, "environment", lecture_record.environment.__wrapped__)
    assert lecture_record.fingerprint(source) != before


def test_without_a_cache_every_lecture_runs(source):
    lecture_record.note(source, None)
    assert not lecture_record.has_run(source, None)


def test_a_real_lecture_imports_what_its_ranks_import_and_nothing_that_grades():
    forget()
    names = lecture_record.imports_of(next(one for one in sources() if one.name == "04b_collectives"))
    assert {"minidl/cluster/engines/processes/preload.py", "minidl/kernels/jit/__init__.py"} <= names
    assert {"minidl/cluster/launch.py", "course/interaction/explore.py"} <= names
    assert not [name for name in names if name.startswith(("course/grading/", "course/judging/", "minidl/cli/"))]
