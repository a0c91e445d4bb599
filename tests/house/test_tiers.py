"""The two tiers: what `--all` adds is more cases of claims that the first tier proves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import LONGEST_FIRST, TESTS, TIERS, pytest_collection_modifyitems


def test_every_claim_has_a_case_in_the_first_tier(pytestconfig: pytest.Config) -> None:
    tiers = pytestconfig.stash[TIERS]
    assert sorted(tiers.exhaustive - tiers.first) == []


def test_the_files_that_start_first_exist() -> None:
    assert [name for name in LONGEST_FIRST if not (TESTS / name).is_file()] == []


@pytest.mark.parametrize(("all_of_them", "kept"), [(False, ["long", "quick"]), (True, ["long", "sweep", "quick"])])
def test_exhaustive_tests_are_left_out_unless_asked_for_and_long_files_come_first(
    all_of_them: bool, kept: list[str]
) -> None:
    left_out: list[Any] = []
    config: Any = SimpleNamespace(
        stash=pytest.Stash(),
        getoption=lambda name: all_of_them,
        hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items)),
    )
    long, other = TESTS / LONGEST_FIRST[0], TESTS / "test_tape.py"
    items: Any = [item("quick", other), item("long", long), item("sweep", long, "exhaustive")]
    pytest_collection_modifyitems(config, items)
    assert [one.name for one in items] == kept
    assert [one.name for one in left_out] == ([] if all_of_them else ["sweep"])


def item(name: str, path: Any, *marks: str) -> Any:
    """As much of a test as the selection looks at."""
    return SimpleNamespace(
        name=name, nodeid=f"{path}::{name}", path=path, get_closest_marker=lambda mark: mark if mark in marks else None
    )
