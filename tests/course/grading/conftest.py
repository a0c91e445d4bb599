"""The statistics' picture is drawn in tests that look at it; in the first tier all others save an empty file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from course.grading.reports import picture
from course.grading.reports.statistics import Tally


def save_empty(tallies: Sequence[Tally], path: Path) -> None:
    """In place of `save_picture`, which takes most of the time of a small class."""
    path.write_bytes(b"")


@pytest.fixture
def pictures() -> None:
    """Requested by tests that look at the picture."""


@pytest.fixture(autouse=True)
def _undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.config.getoption("exhaustive") and "pictures" not in request.fixturenames:
        monkeypatch.setattr(picture, "save_picture", save_empty)
