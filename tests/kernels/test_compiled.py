"""Compiling: everything warms up at one call, and no stale kernel is ever loaded from the cache."""

from __future__ import annotations

import errno
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
    for module in pkgutil.iter_modules(jit.__path__):
        importlib.import_module(f"{jit.__name__}.{module.name}")
    cold = [f"{kernel.py_func.__module__}.{kernel.__name__}" for kernel in compiled.KERNELS if not kernel.signatures]
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


def test_a_kernel_that_finds_no_room_in_the_cache_is_called_and_a_warning_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def save(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def successor(x):  # type: ignore[no-untyped-def]
        return x + 1

    monkeypatch.setattr(compiled, "KERNELS", [])
    kernel = compiled.compiled()(successor)
    monkeypatch.setattr(kernel._cache._cache_file, "save", save)
    with pytest.warns(UserWarning, match="cannot be kept in .*: .*No space left on device"):
        assert kernel(2) == 3


@njit
def elementary(x, e, a):  # type: ignore[no-untyped-def]
    """exp(x) and log(exp(x)); log(1 + e); the tail of the normal distribution, divided by its leading term, at a."""
    exponentials = np.array([exp(value) for value in x])
    logarithms = np.array([log(value) for value in exponentials])
    small = np.array([log_ratio(value / (2 + value)) for value in e])
    return exponentials, logarithms, small, np.array([tail_ratio(value) for value in a])


@pytest.mark.parametrize(
    ("dtype", "errors"), [("float32", (1.2e-7, 2e-7, 3e-7, 4e-7)), ("float64", (3e-16, 4e-16, 1e-15, 2e-14))]
)
def test_elementary_functions_are_accurate_to_the_last_bit_or_so(dtype: str, errors: tuple[float, ...]) -> None:
    random, limit = np.random.default_rng(0), 86.8 if dtype == "float32" else 707
    x = random.uniform(-limit, limit, 20_000).astype(dtype)
    e = np.exp(random.uniform(-80, 0, 5_000)).astype(dtype)
    a = np.linspace(0, 8, 1000).astype(dtype)
    found = elementary(x, e, a)
    exact = (
        np.exp(x.astype(np.longdouble)),
        np.log(found[0].astype(np.longdouble)),
        np.log1p(e.astype(np.longdouble)),
        np.array([0.5 * math.erfc(t / math.sqrt(2)) * math.exp(t * t / 2) for t in a.tolist()]),
    )
    for mine, wanted, error in zip(found, exact, errors, strict=True):
        assert np.max(np.abs(mine - wanted) / np.abs(wanted)) < error
    small = np.array([-87.5, -95, -103] if dtype == "float32" else [-709, -720, -744], dtype=dtype)
    special = np.array([np.nan, -np.inf, -800, 0, np.inf, 800], dtype=dtype)
    np.testing.assert_array_equal(elementary(small, e, a)[0], np.exp(small.astype(np.longdouble)).astype(dtype))
    exponentials, logarithms, _, _ = elementary(special, e, a)
    np.testing.assert_array_equal(exponentials, [np.nan, 0, 0, 1, np.inf, np.inf])
    np.testing.assert_array_equal(logarithms[3:5], [0, np.inf])
    assert np.isnan(logarithms[0])
