"""Parameters of a test that run with `--all` only: the rest of a sweep of which the first tier runs some cases."""

from __future__ import annotations

from typing import Any

import pytest


def exhaustively(*cases: Any) -> list[Any]:
    """The cases, marked `exhaustive`; a tuple holds a value for each parameter."""
    values = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*each, marks=pytest.mark.exhaustive) for each in values]


def all_but_first_exhaustive(cases: list[Any]) -> list[Any]:
    """The cases, of which the first tier runs the first."""
    return [*cases[:1], *exhaustively(*cases[1:])]
