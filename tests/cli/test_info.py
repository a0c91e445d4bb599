"""`minidl info` shows what is installed, and does not fail for what is missing."""

import sys
from types import SimpleNamespace

from minidl.cli.info import facts
from tests.cli.command import succeeds


def test_the_table_has_every_row_and_fits_80_columns():
    out = succeeds("info")
    for name in ("minidl", "Python", "cores", "numpy", "numba", "kernels", "GPU", "processes", "MPI"):
        assert f"│ {name} " in out
    assert "numpy (of numpy, numba, cupy)" in out
    assert max(map(len, out.splitlines())) <= 80
    wrong = "MINIDL_KERNELS must be 'numpy', 'numba' or 'cupy', got 'foo'"
    assert wrong in succeeds("info", MINIDL_KERNELS="foo")


def test_a_gpu_is_named_and_one_without_a_driver_is_reported(monkeypatch):
    def no_driver():
        raise RuntimeError("cudaErrorInsufficientDriver")

    for count, said in (
        (lambda: 1, "Some GPU (CuPy 13.3)"),
        (no_driver, "CuPy is installed, but cannot use a GPU: cudaErrorInsufficientDriver"),
    ):
        runtime = SimpleNamespace(getDeviceCount=count, getDeviceProperties=lambda i: {"name": b"Some GPU"})
        cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime), __version__="13.3", __spec__=object())
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        assert dict(facts())["GPU"] == said


def test_missing_packages_are_named_with_the_extra_that_installs_them(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "extra `gpu`" in dict(facts())["GPU"]
    assert "extra `mpi`" in dict(facts())["MPI"]
