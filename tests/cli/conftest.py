"""Each test runs in an empty folder. Pictures are drawn where a test looks at them; elsewhere the files stay empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minidl import kernels, parallel
from tests.cli.command import end_what_was_started

from matplotlib.figure import Figure  # isort: skip  (after minidl, which chooses numpy's instruction set)


@pytest.fixture
def pictures() -> None:
    """Requested by tests that look at pictures."""


def draw_nothing(self: object, path: Any = None, *_: object, **__: object) -> Figure:
    """In place of what draws or saves a picture, which takes half of the time of a short run."""
    if path is not None:
        Path(path).write_bytes(b"")
    return Figure()


@pytest.fixture(autouse=True)
def _undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "pictures" not in request.fixturenames:
        for cls, name in (
            (parallel.Report, "curves"),
            (parallel.Report, "timeline"),
            (parallel.Comparison, "draw"),
            (Figure, "savefig"),
        ):
            monkeypatch.setattr(cls, name, draw_nothing)


@pytest.fixture(autouse=True)
def _in_an_empty_folder_with_the_kernels_of_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINIDL_KERNELS", "numpy")
    with kernels.use("numpy"):  # for what the test itself computes
        yield
    end_what_was_started()
