"""How many threads a process may use is what BLAS may use, at most the number of cores."""

import threadpoolctl

from minidl import threads as module
from minidl.cores import cores
from minidl.threads import threads


def test_a_limit_of_threadpoolctl_holds_while_it_is_set():
    before = threads()
    assert 1 <= before <= cores()
    with threadpoolctl.threadpool_limits(1):
        assert threads() == 1
    assert threads() == before


def test_there_are_no_more_threads_than_cores(monkeypatch):
    monkeypatch.setattr(module, "cores", lambda: 1)
    assert threads() == 1


def test_where_blas_cannot_be_asked_the_environment_is(monkeypatch):
    class NoPools:
        lib_controllers = ()

    monkeypatch.setattr(module, "thread_pools", NoPools)
    monkeypatch.setattr(module, "cores", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads() == 3
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert threads() == 8
