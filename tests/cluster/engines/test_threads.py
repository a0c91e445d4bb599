"""The cores are shared out among the ranks, and a limit that the caller has set holds for them too."""

import numpy as np
import pytest
import threadpoolctl

from minidl import cluster
from minidl.cores import cores
from minidl.threads import threads

pytestmark = pytest.mark.timeout(300)


def blas_threads(comm) -> int:
    np.ones((2, 2)) @ np.ones((2, 2))
    return max(pool["num_threads"] for pool in threadpoolctl.threadpool_info())


def test_a_limit_of_the_caller_holds_for_the_ranks():
    with threadpoolctl.threadpool_limits(1):
        assert cluster.launch(blas_threads, nodes=1).results == [1]


def test_threads_that_are_asked_for_are_given():
    assert cluster.launch(blas_threads, nodes=2, on=cluster.Processes(threads=2)).results == [2, 2]


def test_kernels_of_a_rank_use_as_many_threads_as_its_blas():
    both = cluster.Processes(threads=2)
    assert cluster.launch(lambda comm: threads(), nodes=2, on=both).results == [min(2, cores())] * 2
    assert cluster.launch(lambda comm: threads(), nodes=max(2, cores())).results == [1] * max(2, cores())
