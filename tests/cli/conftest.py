"""Pictures are drawn in tests that look at them; in the first tier all others save the files without drawing."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from tests.cli import undrawn


@pytest.fixture
def pictures() -> None:
    """Requested by tests that look at pictures."""


@pytest.fixture(autouse=True)
def _undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.config.getoption("exhaustive") and "pictures" not in request.fixturenames:
        monkeypatch.setattr(Figure, "savefig", undrawn.save_nothing)
