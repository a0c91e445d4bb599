"""The kernels are chosen by name: at once, for a while, by the environment, and for one context only."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from minidl import Tensor, kernels
from minidl.kernels import reference
from tests.kernels import stand_in


def in_a_fresh_context(function: object) -> object:
    return contextvars.Context().run(function)  # type: ignore[arg-type]


def test_use_takes_effect_at_once_and_in_a_with_statement_for_a_while() -> None:
    def program() -> list[str]:
        kernels.use("numpy")
        seen = [kernels.active()]
        with kernels.use("numba"):
            with pytest.raises(KeyError), kernels.use("numpy"):
                seen.append(kernels.active())
                raise KeyError
            seen.append(kernels.active())
        return [*seen, kernels.active()]

    assert in_a_fresh_context(program) == ["numpy", "numpy", "numba", "numpy"]


def test_the_environment_chooses_unless_the_program_does_and_numba_is_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for value, name, module in (("numpy", "numpy", "reference"), ("numba", "numba", "jit"), ("", "numba", "jit")):
        monkeypatch.setenv("MINIDL_KERNELS", value)
        assert in_a_fresh_context(kernels.active) == name
        assert in_a_fresh_context(kernels.current).__name__ == f"minidl.kernels.{module}"  # type: ignore[attr-defined]
        assert in_a_fresh_context(lambda: kernels.use("numpy") and kernels.active()) == "numpy"
    monkeypatch.delenv("MINIDL_KERNELS")
    assert in_a_fresh_context(kernels.active) == "numba"


def test_an_unknown_name_is_refused_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="kernels must be 'numpy', 'numba' or 'cupy', got 'jax'"):
        kernels.use("jax")
    monkeypatch.setenv("MINIDL_KERNELS", "fast")
    with pytest.raises(ValueError, match="MINIDL_KERNELS must be 'numpy', 'numba' or 'cupy', got 'fast'"):
        in_a_fresh_context(kernels.current)


def test_the_choice_belongs_to_the_context() -> None:
    def program() -> list[str]:
        kernels.use("numpy")
        seen: list[str] = []
        inner = contextvars.copy_context()
        inner.run(kernels.use, "numba")
        seen.append(inner.run(kernels.active))
        thread = threading.Thread(target=lambda: seen.append(kernels.use("numba") and kernels.active()))
        thread.start()
        thread.join()
        return [*seen, kernels.active()]

    assert in_a_fresh_context(program) == ["numba", "numba", "numpy"]


def test_without_cupy_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)  # import cupy raises ImportError
    with pytest.raises(
        ImportError, match=r"need the package CuPy and an NVIDIA GPU.*choose the kernels numpy or numba"
    ):
        kernels.use("cupy")
    monkeypatch.setenv("MINIDL_KERNELS", "cupy")
    with pytest.raises(ImportError, match="need the package CuPy"):
        in_a_fresh_context(lambda: Tensor([1.0]))


def test_with_cupy_new_tensors_are_placed_on_it() -> None:
    with stand_in.installed() as cupy:
        with kernels.use("cupy"):
            assert kernels.current() is reference
            for data in (1.0, [1.0, 2.0], np.ones(3), np.float32(2), cupy.ones(3)):
                tensor = Tensor(data)
                assert type(tensor.data) is cupy.ndarray
                assert kernels.array_module(tensor.data) is cupy
        assert type(Tensor([1.0]).data) is np.ndarray
        assert kernels.array_module(np.ones(1)) is np
        assert kernels.array_module(np.float32(1)) is np


def test_importing_minidl_does_not_import_numba() -> None:
    code = """if True:
        import sys, minidl
        assert "numba" not in sys.modules
        minidl.Tensor([1.0]).relu()
        print("numba" in sys.modules)
    """
    for name, imported in (("numba", "True"), ("numpy", "False")):
        result = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "MINIDL_KERNELS": name},
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        assert result.stdout.strip() == imported
