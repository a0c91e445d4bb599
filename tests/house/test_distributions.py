"""The oldest versions that pyproject.toml allows are enough, and an unpacked source distribution can test itself.

With --all these tests install packages; without uv or a network they are then skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import minidl
from tests.tiers import all_but_first_exhaustive

ROOT = Path(__file__).resolve().parents[2]
UV = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
WITHOUT_NETWORK = ("dns error", "Failed to fetch", "error sending request", "Network is unreachable")

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

pytestmark = pytest.mark.timeout(900)


def environment() -> dict[str, str]:
    """This process's environment, without this folder on the path of Python."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def uv(*arguments: str | Path, cwd: Path = ROOT) -> str:
    """Run uv and return what it prints; skip the test where there is no uv or no network."""
    if UV is None:
        pytest.skip("needs uv")
    done = subprocess.run([UV, *arguments], cwd=cwd, capture_output=True, text=True, env=environment())
    if done.returncode != 0 and any(sign in done.stderr for sign in WITHOUT_NETWORK):
        pytest.skip("needs a network")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("how", all_but_first_exhaustive(["stated", "installed"]))
def test_the_oldest_versions_allowed_are_enough_to_train_and_to_simulate(how: str, tmp_path: Path) -> None:
    if how == "stated":
        assert all(">=" in requirement for requirement in PYPROJECT["project"]["dependencies"])
        return
    python = tmp_path / "oldest" / "bin" / "python"
    uv("venv", "--quiet", "--python", sys.executable, tmp_path / "oldest")
    uv("pip", "install", "--quiet", "--python", python, "--resolution", "lowest-direct", ".")

    def command(*arguments: str) -> str:
        line = [str(python), "-m", "minidl", *arguments]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, env=environment())
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert command("--version") == f"minidl {minidl.__version__}\n"
    assert "test accuracy" in command("train", "--nodes", "2", "--model", "mlp", "--epochs", "1", "--out", "run")
    assert (tmp_path / "run" / "loss.png").is_file()
    assert "ring" in command("simulate", "--nodes", "4")


def test_the_course_asks_for_a_numba_that_knows_the_cache_of_an_answer() -> None:
    """numba 0.62 is the first with CACHE_LOCATOR_CLASSES; older ones ignore it, and the locators cannot be imported."""
    [requirement] = [text for text in PYPROJECT["project"]["optional-dependencies"]["course"] if "numba" in text]
    assert requirement == "numba>=0.62"


@pytest.mark.parametrize("how", all_but_first_exhaustive(["stated", "unpacked"]))
def test_an_unpacked_source_distribution_has_all_tests_and_passes_some(how: str, tmp_path: Path) -> None:
    if how == "stated":
        included = PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
        assert {"/tests", "/minidl", "/course", "/notebooks", "/solutions", "/exercises"} <= set(included)
        return
    uv("build", "--quiet", "--sdist", "--out-dir", tmp_path)
    with tarfile.open(tmp_path / f"minidl-{minidl.__version__}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / f"minidl-{minidl.__version__}"
    for test in (ROOT / "tests").rglob("*.py"):
        assert (folder / test.relative_to(ROOT)).is_file()
    some = ("tests/test_tape.py", "tests/optim", "tests/house/test_package.py", "tests/house/test_lock.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *some]
    variables = {**environment(), "PYTHONPATH": str(folder)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=variables)
    assert done.returncode == 0, done.stdout[-2000:]
