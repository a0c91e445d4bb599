"""A pipeline whose ranks are started by MPI ends with the bits that it has on processes."""

from __future__ import annotations

import sys

import pytest

from minidl import parallel
from minidl.parallel import Pipeline
from tests.parallel.pipeline.test_elastic_stages import assert_same_bits
from tests.parallel.test_split_models import JOBS
from tests.tiers import all_but_first_exhaustive

pytest.importorskip("mpi4py", reason="needs the extra mpi")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="launch starts mpiexec on Linux only"),
]

CASES = [
    ("zb-h1", 2, "ResNet"),
    *[(kind, dp, "tied GPT") for kind in ("1f1b", "zb-v") for dp in (1, 2)],
    ("interleaved", 1, "ResNet"),
    ("pipedream", 1, "LeNet"),
    ("pipedream", 2, "LeNet"),
]


@pytest.mark.parametrize(("kind", "dp", "job"), all_but_first_exhaustive(CASES))
def test_a_pipeline_under_mpi_has_the_bits_of_one_on_processes(kind: str, dp: int, job: str):
    """One replica; and two, whose gradients are summed in the order of the ranks."""
    micro_batches = None if kind == "pipedream" else 4
    strategy = Pipeline(stages=2, micro_batches=micro_batches, schedule=kind, algorithm="ordered")
    under_mpi, on_processes = (parallel.train(JOBS[job], strategy, 2 * dp, on=on) for on in ("mpi", "processes"))
    assert_same_bits(under_mpi, on_processes)
