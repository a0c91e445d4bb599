"""The two tiers: what `--all` adds is more cases of claims that the first tier proves."""

from __future__ import annotations

import gc
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import LONGEST_FIRST, TESTS, TIERS, pytest_collection_modifyitems


def test_every_exhaustive_test_has_a_case_in_the_first_tier(pytestconfig: pytest.Config) -> None:
    tiers = pytestconfig.stash[TIERS]
    assert sorted(tiers.exhaustive - tiers.first) == []


def test_the_files_that_start_first_exist() -> None:
    if not (TESTS / "course").is_dir():
        pytest.skip("a students' edition has fewer tests")
    assert [name for name in LONGEST_FIRST if not (TESTS / name).is_file()] == []


def test_the_collected_tests_are_left_out_of_garbage_collections() -> None:
    assert gc.get_freeze_count() > 1_000


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"exhaustive": False}, ["long", "quick"]),
        ({"exhaustive": True}, ["long", "sweep", "quick"]),
    ],
)
def test_exhaustive_tests_are_left_out_unless_asked_for_and_long_files_come_first(
    options: dict[str, Any], kept: list[str]
) -> None:
    left_out: list[Any] = []
    config: Any = SimpleNamespace(
        stash=pytest.Stash(),
        getoption=options.__getitem__,
        hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items)),
    )
    long, other = TESTS / LONGEST_FIRST[0], TESTS / "test_tape.py"
    items: Any = [item("quick", other), item("long", long), item("sweep", long, "exhaustive")]
    pytest_collection_modifyitems(config, items)
    assert [one.name for one in items] == kept
    assert {one.name for one in left_out} == {"quick", "long", "sweep"} - set(kept)


@pytest.mark.timeout(300)
def test_without_a_gpu_the_option_is_refused_with_a_sentence() -> None:
    command = [sys.executable, "-c", "import sys, pytest; sys.modules['cupy'] = None; pytest.main(sys.argv[1:])"]
    run = subprocess.run(
        [*command, "--gpu", "tests/house"], cwd=TESTS.parent, capture_output=True, text=True, timeout=250
    )
    assert run.stderr.startswith("ERROR: --gpu needs CuPy and an NVIDIA GPU: ")


def item(name: str, path: Any, *marks: str) -> Any:
    """As much of a test as the selection looks at."""
    return SimpleNamespace(
        name=name, nodeid=f"{path}::{name}", path=path, get_closest_marker=lambda mark: mark if mark in marks else None
    )
