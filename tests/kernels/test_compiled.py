"""Compiling: everything warms up at one call, and no stale kernel is ever loaded from the cache."""

from __future__ import annotations

import importlib
import math
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from minidl.kernels import jit
from minidl.kernels.jit import compiled
from minidl.kernels.jit.elementary import exp, log, log_ratio, tail_ratio
from minidl.kernels.jit.first_calls import call_all


def test_every_compiled_kernel_is_among_the_first_calls() -> None:
    call_all()
    cold = []
    for module in pkgutil.iter_modules(jit.__path__):
        for name, thing in vars(importlib.import_module(f"{jit.__name__}.{module.name}")).items():
            if hasattr(thing, "py_func") and type(thing._cache).__name__ == "FunctionCache" and not thing.signatures:
                cold.append(f"{module.name}.{name}")
    assert not cold


@pytest.mark.timeout(300)
def test_a_kernel_is_compiled_anew_when_a_file_that_it_calls_has_changed(tmp_path: Path) -> None:
    shutil.copy(compiled.__file__, tmp_path / "compiled.py")
    kernel = "from compiled import compiled\nfrom part import part\n\n@compiled()\ndef kernel(x):\n    return part(x)\n"
    (tmp_path / "kernel.py").write_text(kernel)

    path = tmp_path / "part.py"

    def run(part: str) -> str:
        source = f"from compiled import inner\n\n@inner()\ndef part(x):\n    return {part}\n"
        if not path.exists() or path.read_text() != source:
            path.write_text(source)
        program = "from kernel import kernel; print(kernel(2), sum(kernel.stats.cache_hits.values()))"
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert run("x + 1") == "3 0"
    assert run("x * 100") == "200 0"
    assert run("x * 100") == "200 1"


@pytest.mark.parametrize(("dtype", "error"), [("float32", 1.2e-7), ("float64", 3e-16)])
def test_exp_is_accurate_to_the_last_bit_or_so(dtype: str, error: float) -> None:
    @njit
    def exponentials(x):  # type: ignore[no-untyped-def]
        return np.array([exp(value) for value in x])

    limit = 86.8 if dtype == "float32" else 707
    x = np.random.default_rng(0).uniform(-limit, limit, 100_000).astype(dtype)
    exact = np.exp(x.astype(np.longdouble))
    assert np.max(np.abs(exponentials(x) - exact) / exact) < error
    small = np.array([-87.5, -95, -103] if dtype == "float32" else [-709, -720, -744], dtype=dtype)
    np.testing.assert_array_equal(exponentials(small), np.exp(small.astype(np.longdouble)).astype(dtype))
    special = np.array([np.nan, -np.inf, -800, 0, np.inf, 800], dtype=dtype)
    np.testing.assert_array_equal(exponentials(special), [np.nan, 0, 0, 1, np.inf, np.inf])


@pytest.mark.parametrize(("dtype", "error"), [("float32", 2e-7), ("float64", 4e-16)])
def test_log_is_accurate_to_the_last_bit_or_so(dtype: str, error: float) -> None:
    @njit
    def logarithms(x):  # type: ignore[no-untyped-def]
        return np.array([log(value) for value in x])

    x = np.exp(np.random.default_rng(0).uniform(-80, 80, 100_000)).astype(dtype)
    exact = np.log(x.astype(np.longdouble))
    assert np.max(np.abs(logarithms(x) - exact) / np.abs(exact)) < error
    np.testing.assert_array_equal(logarithms(np.array([1, np.inf, np.nan], dtype=dtype)), [0, np.inf, np.nan])


@pytest.mark.parametrize(("dtype", "error"), [("float32", 3e-7), ("float64", 1e-15)])
def test_log_of_one_plus_a_small_number_is_accurate_relatively(dtype: str, error: float) -> None:
    @njit
    def logarithms(e):  # type: ignore[no-untyped-def]
        return np.array([log_ratio(value / (2 + value)) for value in e])

    e = np.exp(np.random.default_rng(0).uniform(-80, 0, 10_000)).astype(dtype)
    np.testing.assert_allclose(logarithms(e), np.log1p(e.astype(np.longdouble)).astype(float), rtol=error)


@pytest.mark.parametrize(("dtype", "error"), [("float32", 4e-7), ("float64", 2e-14)])
def test_tail_of_the_normal_distribution_is_accurate_relatively(dtype: str, error: float) -> None:
    @njit
    def ratios(a):  # type: ignore[no-untyped-def]
        return np.array([tail_ratio(value) for value in a])

    a = np.linspace(0, 8, 1000).astype(dtype)
    exact = [0.5 * math.erfc(t / math.sqrt(2)) * math.exp(t * t / 2) for t in a.tolist()]
    np.testing.assert_allclose(ratios(a), exact, rtol=error)
