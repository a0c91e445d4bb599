"""What the set-up gives uv to do. No tool is run: a step notes the environment of each command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from course.setup.bootstrap import ROOT
from course.setup.installation import install_with_uv
from course.setup.step import SetupStep


class NotedStep(SetupStep):
    """Notes the environment of each command, and runs none."""

    def __init__(self) -> None:
        self.environments: list[dict[str, str]] = []

    def run(self, title: str | None, command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        self.environments.append(dict(environment or {}))
        return 0


@pytest.mark.parametrize(("home", "no_cache"), [("home", None), ("new/home", None), ("file/home", "1")])
def test_with_a_home_where_nothing_can_be_written_uv_installs_without_a_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str, no_cache: str | None
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "file").touch()
    for name in ("UV_CACHE_DIR", "UV_NO_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / home))
    step = NotedStep()
    assert install_with_uv(ROOT, "uv", tmp_path / ".venv" / "bin" / "python", step, ())
    assert [environment.get("UV_NO_CACHE") for environment in step.environments] == [no_cache]
