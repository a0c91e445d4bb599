"""What libraries keep is read by an answer, and written into its own folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from course.judging.process import caches
from course.judging.process.student_session import StudentSession
from minidl.kernels import cache

pytestmark = pytest.mark.timeout(300)

COUNT_COMPILED = """
from minidl.kernels.jit import updates
def f():
    kernels = [one for one in vars(updates).values() if hasattr(one, "stats")]
    for kernel in kernels:
        kernel.enable_caching()
    return [kernel.stats.cache_path for kernel in kernels]
"""


def test_compiled_kernels_are_looked_for_in_the_answer_s_folder() -> None:
    with StudentSession(lambda session: session.request("run_cell", ("cell 1", COUNT_COMPILED), 60.0)) as session:
        _, (found, *_) = session.request("call", (None, "f", ()), 60.0)
        linked = {path.name for path in (session.process.scratch.root / caches.NUMBA).glob("*/*.nb[ic]")}
    folder = f"/{caches.NUMBA}/{cache.folder_of(cache.SOURCES)}"
    assert found
    assert all(place.endswith(folder) for place in found)
    assert linked >= {os.path.basename(file) for file in cache.files()}
    assert linked


def test_links_to_cache_files_are_short(tmp_path: Path) -> None:
    kept = tmp_path / ("a long name" * 10)
    kept.mkdir()
    (kept / "one.nbi").write_text("index")
    caches.link([str(kept / "one.nbi")], tmp_path / "new" / "folder")
    assert (tmp_path / "new" / "folder" / "one.nbi").read_text() == "index"
    assert len(os.readlink(tmp_path / "new" / "folder" / "one.nbi")) < 20


def test_caches_are_filled_once_and_again_after_kernels_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[object] = []
    monkeypatch.setattr(caches.cache, "SOURCES", tmp_path)
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: runs.append(args))
    (tmp_path / "kernel.py").write_text("")
    for expected in (1, 1):
        caches.fill.__wrapped__()
        assert len(runs) == expected
    os.utime(tmp_path / "kernel.py", (1, 1))
    caches.fill.__wrapped__()
    assert len(runs) == 2
