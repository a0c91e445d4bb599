"""The two tiers of tests, and the order of their files.

`pytest` runs the first tier, which proves every claim at least once. `pytest --all` also runs the tests marked
`exhaustive`: the remaining cases of a sweep, every wrong answer of every exercise, every lecture. With `--gpu` the
tests of the cupy kernels run on a GPU. The tests in a browser run with `--all` and where they are named.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

import course  # noqa: F401  (before any test imports nbformat, whose grammar of links it leaves out)
import minidl  # noqa: F401  (before any test imports numpy, whose instruction set it chooses)

TESTS = Path(__file__).parent

hypothesis.settings.register_profile(
    "here", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.load_profile("here")  # an example of 1 ms takes 300 on a busy machine

LONGEST_FIRST = (
    "course/building/test_notebooks.py",  # with --all: every lecture, 10 minutes of CPU time
    "course/checks/test_mutants.py",
    "course/sandbox/test_hostile_submissions.py",
    "test_solutions.py",
    "cluster/engines/mpi/test_mpi.py",
    "course/commands/test_release.py",
    "parallel/memory/test_live.py",
    "parallel/tensor/test_hybrid_shares.py",
    "course/results/test_parts.py",
    "parallel/sharded/test_sharded.py",
    "parallel/spatial/test_division.py",
    "parallel/averaging/test_gossip.py",
    "parallel/pipeline/test_pipeline.py",
    "parallel/run/test_elastic_restart.py",
    "kernels/test_first_calls.py",
    "cluster/conformance/test_conformance.py",
    "cluster/engines/processes/test_fork_server.py",
    "course/judging/test_checking_notebooks.py",
    "cluster/test_failures.py",
    "cli/test_commands_of_pages.py",
    "functional/test_gradients.py",
    "course/grading/test_grading.py",
    "parallel/tensor/test_hybrid.py",
    "cli/test_compare.py",
    "cli/test_simulate.py",
    "course/sandbox/test_warm_parent.py",
    "cli/test_interrupts.py",
    "kernels/test_kernels_agree.py",
    "cluster/test_scripts.py",
    "parallel/test_overlap.py",
    "kernels/test_compiled.py",
)
"""Files that take longest. They start first, so that all processes of a parallel run end at about the same time."""


@dataclass(frozen=True)
class Tiers:
    """The test functions that have a case in the first tier, and those that have an exhaustive one."""

    first: set[str]
    exhaustive: set[str]


TIERS = pytest.StashKey[Tiers]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", dest="exhaustive", help="also run the tests marked `exhaustive`")
    parser.addoption(
        "--gpu", action="store_true", help="run the tests of the cupy kernels on the GPU, not on a stand-in"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("gpu"):
        from tests.kernels import stand_in

        stand_in.use_the_gpu()
    let_ctrl_c_through()


def let_ctrl_c_through() -> None:
    """Let Ctrl-C reach the programs that tests start; what a script starts in the background ignores SIGINT."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the tests that start JupyterLab and Chromium, unless they are named, as `.ci/run` does."""
    is_asked_for = config.getoption("exhaustive") or any("browser" in argument for argument in config.args)
    return True if collection_path == TESTS / "course" / "browser" and not is_asked_for else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    more = [item for item in items if item.get_closest_marker("exhaustive")]
    first = [item for item in items if not item.get_closest_marker("exhaustive")]
    config.stash[TIERS] = Tiers({function(item) for item in first}, {function(item) for item in more})
    if not config.getoption("exhaustive"):
        config.hook.pytest_deselected(items=more)
        items[:] = first
    places = {TESTS / name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))  # stable: the others keep their order


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Collect the tests without the garbage collector, which took 4 of 20 seconds in each of the processes."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Leave the collected tests out of garbage collections: one took half a second, among forty thousand tests."""
    gc.freeze()


def function(item: pytest.Item) -> str:
    """The test function of a case."""
    return item.nodeid.partition("[")[0]
