"""The tools that the set-up runs, and what it gives them. No tool is run: a step notes each command."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from course.setup import installation, requirements
from course.setup.bootstrap import ROOT
from course.setup.installation import SetupError, install, install_with_uv
from course.setup.step import SetupStep


class NotedStep(SetupStep):
    """Notes the command and the environment of each step, and runs none; the steps named in `failing` fail."""

    failing: tuple[str, ...] = ()

    def __init__(self, *_: object) -> None:
        self.log = Path("nowhere.log")
        self.commands: list[str] = []
        self.environments: list[dict[str, str]] = []
        steps.append(self)

    def run(self, title: str | None, command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        self.commands.append(" ".join(command))
        self.environments.append(dict(environment or {}))
        return int(any(name in self.commands[-1] for name in self.failing))


steps: list[NotedStep] = []


@pytest.mark.parametrize(("home", "no_cache"), [("home", None), ("new/home", None), ("file/home", "1")])
def test_with_a_home_where_nothing_can_be_written_uv_installs_without_a_cache(tmp_path, monkeypatch, home, no_cache):
    (tmp_path / "home").mkdir()
    (tmp_path / "file").touch()
    for name in ("UV_CACHE_DIR", "UV_NO_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / home))
    step = NotedStep()
    assert install_with_uv(ROOT, "uv", tmp_path / ".venv" / "bin" / "python", step, ())
    assert [environment.get("UV_NO_CACHE") for environment in step.environments] == [no_cache]


UV, OWN_UV, PIP = "/usr/bin/uv sync", "bin/uv sync", "pip install --editable .[course]"


@pytest.mark.parametrize(
    ("uvs", "failing", "tools"),
    [
        (["/usr/bin"], (), [UV]),
        (["/usr/bin"], (UV,), [UV, "pip --version", "pip install uv", PIP]),
        ([".venv/bin"], ("pip --version",), ["pip --version", "ensurepip", OWN_UV]),
        ([".venv/bin"], (OWN_UV,), ["pip --version", OWN_UV, PIP]),
        ([], (), ["pip --version", "pip install uv", PIP]),
    ],
)
def test_uv_installs_the_locked_packages_and_pip_those_of_pyproject_where_uv_is_not_there_or_fails(
    monkeypatch, uvs, failing, tools
):
    def which(name: str, path: str = "/usr/bin") -> str | None:
        return next((f"{place}/{name}" for place in uvs if path.endswith(place)), None)

    monkeypatch.setattr(shutil, "which", which)
    monkeypatch.setattr(requirements, "lock_is_current", lambda root: True)
    monkeypatch.setattr(installation, "SetupStep", NotedStep)
    monkeypatch.setattr(NotedStep, "failing", failing)
    install(Path("root"), False, 0, ("course",))
    assert [tool for tool, command in zip(tools, steps[-1].commands, strict=True) if tool not in command] == []
    monkeypatch.setattr(NotedStep, "failing", (*failing, PIP, "sync"))
    monkeypatch.setattr(NotedStep, "tail", lambda self: "no route to host")
    with pytest.raises(SetupError, match="no route to host"):
        install(Path("root"), False, 0, ("course",))


def test_a_lock_that_is_older_than_the_ranges_is_not_installed(monkeypatch):
    monkeypatch.setattr(requirements, "lock_is_current", lambda root: False)
    step = NotedStep()
    assert install_with_uv(ROOT, "uv", Path(".venv/bin/python"), step, ("course", "dev"))
    assert step.commands == ["uv pip install --editable .[course,dev] --compile-bytecode --python .venv/bin/python"]
