"""How many threads a process may use is what BLAS may use, at most the number of cores."""

import numpy as np
import pytest
import threadpoolctl

from minidl import threads as module
from minidl.cores import cores
from minidl.kernels.jit import products
from minidl.threads import in_one_thread, threads


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


def test_in_one_thread_blas_has_one_thread_and_afterwards_as_many_as_before():
    with threadpoolctl.threadpool_limits(2):
        before = module.thread_pools().info()
        assert in_one_thread(threads) == 1
        with pytest.raises(ZeroDivisionError):
            in_one_thread(divmod, 1, 0)
        assert module.thread_pools().info() == before


@pytest.mark.parametrize(("interrupted", "is_set"), [(1, True), (2, False)])
def test_ctrl_c_while_the_number_is_changed_leaves_blas_as_many_threads_as_before(monkeypatch, interrupted, is_set):
    class Pool:
        calls, number = 0, 5

        def get_num_threads(self):
            return self.number

        def set_num_threads(self, number):
            self.calls += 1
            if self.calls != interrupted or is_set:
                self.number = number
            if self.calls == interrupted:
                raise KeyboardInterrupt

    pool = Pool()
    monkeypatch.setattr(module, "_pools_of_numpy", lambda: [pool])
    with pytest.raises(KeyboardInterrupt):
        in_one_thread(int)
    assert pool.number == 5


def test_products_that_are_too_small_for_two_threads_run_in_one(monkeypatch):
    def alone(function, *arguments):
        called.append(function)
        return function(*arguments)

    monkeypatch.setattr(products, "in_one_thread", alone)
    for side, number in ((61, 0), (67, 3), (197, 3), (211, 0)):
        called, x = [], np.ones((side, side), np.float32)
        out = np.empty_like(x)
        products.multiply(x, x, out)
        for product in (out, products.matmul(x, x), products.linear(x, x, x[0]) - 1):
            np.testing.assert_array_equal(product, side)
        assert len(called) == number, side
