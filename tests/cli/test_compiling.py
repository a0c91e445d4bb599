"""The bar for the first compilation: shown where nothing has been compiled since the kernels last changed."""

import os

import pytest
from rich.console import Console

from minidl import kernels
from minidl.cli.compiling import compile_kernels
from minidl.kernels import cache
from minidl.kernels.jit import first_calls


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """Where numba looks for kernels, and the calls of `warm_up`, which is replaced."""
    calls = []
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(first_calls, "warm_up", lambda progress: (progress(0, 3), calls.append("warm_up")))
    folder = tmp_path / cache.folder_of(cache.SOURCES)
    folder.mkdir()
    return folder / "kernel.nbi", calls


@pytest.mark.parametrize(("seconds_after_the_sources", "times"), [(None, 1), (-10, 1), (10, 0)])
def test_kernels_are_compiled_if_no_file_of_the_cache_is_newer_than_the_sources(
    compiled, seconds_after_the_sources, times
):
    file, calls = compiled
    if seconds_after_the_sources is not None:
        file.write_text("index")
        changed = max(path.stat().st_mtime for path in cache.SOURCES.glob("*.py"))
        os.utime(file, (changed, changed + seconds_after_the_sources))
    with kernels.use("numba"):
        compile_kernels(Console(quiet=True), "processes")
    assert calls == ["warm_up"] * times


def test_the_kernels_of_numpy_need_no_compilation(compiled):
    with kernels.use("numpy"):
        compile_kernels(Console(quiet=True), "processes")
    assert compiled[1] == []
