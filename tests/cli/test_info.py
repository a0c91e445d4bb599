"""`minidl info` shows what is installed, and does not fail for what is missing."""

import sys
from types import SimpleNamespace

import pytest

from minidl.cli.info import facts
from tests.cli.command import minidl

pytestmark = pytest.mark.timeout(300)


def test_the_table_has_every_row_and_fits_80_columns(tmp_path):
    result = minidl(tmp_path, "info")
    assert result.returncode == 0
    assert result.stderr == ""
    for name in ("minidl", "Python", "cores", "numpy", "numba", "kernels", "GPU", "processes", "MPI"):
        assert f"│ {name} " in result.stdout
    assert "numpy (of numpy, numba, cupy)" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_wrong_kernels_in_the_environment_are_named_in_the_table(tmp_path):
    result = minidl(tmp_path, "info", MINIDL_KERNELS="foo")
    assert result.returncode == 0
    assert "MINIDL_KERNELS must be 'numpy', 'numba' or 'cupy', got 'foo'" in result.stdout


def test_a_gpu_is_named(monkeypatch):
    runtime = SimpleNamespace(getDeviceCount=lambda: 1, getDeviceProperties=lambda i: {"name": b"Some GPU"})
    pretend_cupy(monkeypatch, runtime)
    assert dict(facts())["GPU"] == "Some GPU (CuPy 13.3)"


def test_cupy_without_a_driver_is_reported(monkeypatch):
    def no_driver():
        raise RuntimeError("cudaErrorInsufficientDriver")

    pretend_cupy(monkeypatch, SimpleNamespace(getDeviceCount=no_driver))
    assert dict(facts())["GPU"] == "CuPy is installed, but cannot use a GPU: cudaErrorInsufficientDriver"


def pretend_cupy(monkeypatch, runtime):
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime), __version__="13.3", __spec__=object())
    monkeypatch.setitem(sys.modules, "cupy", cupy)


def test_missing_packages_are_named_with_the_extra_that_installs_them(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "extra `gpu`" in dict(facts())["GPU"]
    assert "extra `mpi`" in dict(facts())["MPI"]
