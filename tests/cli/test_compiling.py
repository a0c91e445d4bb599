"""The bar for the first compilation: shown where the model's kernels have not been compiled since they last changed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from rich.console import Console

from minidl import kernels
from minidl.cli.compiling import compile_kernels
from minidl.kernels import cache
from minidl.kernels.jit import first_calls


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The models whose kernels were compiled, by a replacement for the compilation; a cache with one kernel."""
    calls: list[str] = []

    def run(families: Iterable[Iterable[str]], dtype: str, progress: Callable[[int, int], None]) -> None:
        progress(0, 3)
        names = {name for family in families for name in family}
        calls.append(next((model for model, steps in first_calls.OF_MODEL.items() if steps == names), cache.ALL))

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv(cache.MODEL_VARIABLE, "")  # restored afterwards, whatever is set here
    monkeypatch.setattr(first_calls, "_run", run)
    folder = tmp_path / cache.folder_of(cache.SOURCES)
    folder.mkdir()
    (folder / "kernel.nbi").touch()
    return calls


def compile_for(*models: str) -> None:
    with kernels.use("numba"):
        for model in models:
            compile_kernels(Console(quiet=True), "processes", model)


def test_the_kernels_of_each_model_are_compiled_once(compiled: list[str]) -> None:
    compile_for("mlp", "mlp", "gpt", "mlp", "gpt")
    assert compiled == ["mlp", "gpt"]
    assert os.environ[cache.MODEL_VARIABLE] == "gpt"
    with kernels.use("numpy"):  # which needs no compilation
        compile_kernels(Console(quiet=True), "processes", "vgg16")
    assert compiled == ["mlp", "gpt"]
    compile_for("mine", "yours", "mlp", "vgg16")  # one's own needs all, and then no model needs more
    assert compiled == ["mlp", "gpt", cache.ALL]


@pytest.mark.parametrize("what", ["sources", "numba", "processor"])
def test_kernels_are_compiled_again_when_what_they_depend_on_has_changed(
    what: str, compiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compile_for("mlp")
    if what == "sources":
        (tmp_path / "jit").mkdir()
        monkeypatch.setattr(cache, "SOURCES", tmp_path / "jit")
        monkeypatch.setattr(cache, "folder_of", lambda sources: cache.SOURCES.name)
        for file in (tmp_path).glob("jit_*/*"):
            file.rename(tmp_path / "jit" / file.name)
        (tmp_path / "jit" / "new.py").touch()
    elif what == "numba":
        monkeypatch.setattr("importlib.metadata.version", lambda name: "1000.0")
    else:
        monkeypatch.setenv("NUMBA_CPU_NAME", "haswell")
    compile_for("mlp", "mlp")
    assert compiled == ["mlp", "mlp"]


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() == 0, reason="root may write everywhere")
def test_kernels_are_compiled_each_time_if_the_cache_folder_is_read_only(compiled: list[str], tmp_path: Path) -> None:
    (folder,) = tmp_path.iterdir()
    folder.chmod(0o555)
    compile_for("mlp", "mlp")
    assert compiled == ["mlp", "mlp"]
