"""What a ratio depends on in addition to the code: the machine, the versions, and the instruction set of each side."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

from minidl import __version__, instruction_set, kernels
from minidl.cores import cores

PACKAGES = ("numpy", "numba", "torch", "jax", "mpi4py", "mpich")


def conditions() -> Iterator[tuple[str, str]]:
    """The rows above the table: name and value."""
    yield "date", time.strftime("%Y-%m-%d %H:%M")
    yield "machine", f"{processor_name()}, {cores()} cores; {platform.system()} {platform.release()}"
    yield "load", f"{os.getloadavg()[0]:.1f}"  # processes that were running or waiting when it began
    found = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES if is_installed(name))
    yield "versions", f"minidl {__version__}, kernels {kernels.active()}; Python {platform.python_version()}, {found}"
    yield "instruction sets", of_minidl()


def is_installed(package: str) -> bool:
    """Whether there is a package of this name, importable or with commands alone."""
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def processor_name() -> str:
    """The processor's own name where Linux reports it."""
    try:
        lines = Path(instruction_set.CPUINFO).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def of_minidl() -> str:
    """numpy's matrix products, and the kernels that numba compiles for this processor."""
    from llvmlite.binding import get_host_cpu_features

    features = get_host_cpu_features()
    widest = next((name for name in ("avx512f", "avx2", "avx", "neon") if features.get(name)), "no vectors known")
    openblas = instruction_set.openblas()
    return f"numpy {f'OpenBLAS {openblas}' if openblas else 'not OpenBLAS'}, numba {widest}"
