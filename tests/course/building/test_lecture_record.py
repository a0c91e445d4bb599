"""A lecture counts as run only while its text, its notebook, what it imports and what is installed are as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from course.building.sources import Source
from tests.course.building import lecture_record


class Kept(dict[str, Any]):
    """pytest's cache, in memory."""

    set = dict.__setitem__


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A lecture in a small clone; nothing is remembered of the files of another."""
    for name in ("course/lectures/01_one.py", "course/lectures/02_two.py", "notebooks/01_one.ipynb", "minidl/a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return Source(tmp_path / "course/lectures/01_one.py", tmp_path)


@pytest.fixture(autouse=True)
def _no_memory() -> None:
    lecture_record.packages.cache_clear()
    lecture_record.environment.cache_clear()


def test_a_lecture_that_ran_need_not_run_again(source: Source) -> None:
    kept: Any = Kept()
    assert not lecture_record.has_run(source, kept)
    lecture_record.note(source, kept)
    assert lecture_record.has_run(source, kept)


@pytest.mark.parametrize(
    "changed",
    ["course/lectures/01_one.py", "notebooks/01_one.ipynb", "minidl/a.py", "minidl/new/b.py", "course/figures/page.py"],
)
def test_it_runs_again_once_its_text_its_notebook_or_a_file_that_it_can_import_has_changed(
    source: Source, changed: str
) -> None:
    before = lecture_record.fingerprint(source)
    (source.root / changed).parent.mkdir(parents=True, exist_ok=True)
    (source.root / changed).write_text("changed")
    lecture_record.packages.cache_clear()
    assert lecture_record.fingerprint(source) != before


def test_it_runs_again_once_a_package_has_another_version(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    before = lecture_record.fingerprint(source)
    monkeypatch.setattr(lecture_record.metadata, "distributions", list)
    lecture_record.environment.cache_clear()
    assert lecture_record.fingerprint(source) != before


def test_another_lecture_and_compiled_files_do_not_count(source: Source) -> None:
    before = lecture_record.fingerprint(source)
    for name in ("course/lectures/02_two.py", "minidl/__pycache__/a.pyc"):
        (source.root / name).parent.mkdir(exist_ok=True)
        (source.root / name).write_text("changed")
    lecture_record.packages.cache_clear()
    assert lecture_record.fingerprint(source) == before


def test_without_a_cache_every_lecture_runs(source: Source) -> None:
    lecture_record.note(source, None)
    assert not lecture_record.has_run(source, None)
