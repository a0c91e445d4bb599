"""`minidl info` and `minidl networks`: what this machine offers, and the networks that have a name."""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

from minidl import instruction_set
from minidl.cli.display import results_table, say, show
from minidl.cli.ending import ending
from minidl.plots.style import seconds_text


def info() -> None:
    """Show versions, cores, kernels, GPU and MPI."""
    with ending("minidl info"):
        table = Table(title="minidl on this machine", show_header=False, title_justify="left")
        table.add_column(style="bold")
        table.add_column(overflow="fold")
        for name, value in facts():
            table.add_row(name, value)
        Console().print(table)


def facts() -> Iterator[tuple[str, str]]:
    """The rows of the table: name and value."""
    import multiprocess

    from minidl.cores import cores

    start_methods = ", ".join(multiprocess.get_all_start_methods())
    yield "minidl", _version("minidl")
    yield "Python", f"{platform.python_version()} ({platform.python_implementation()}) on {platform.platform()}"
    yield "cores", str(cores())
    yield "numpy", f"{_version('numpy')}, BLAS: {_blas()}"
    if slow := instruction_set.lost():
        yield "AVX-512", slow
    yield "numba", _version("numba")
    yield "kernels", _kernels()
    yield "GPU", _gpu()
    yield "processes", f"multiprocess {_version('multiprocess')}, start methods: {start_methods}"
    yield "MPI", _mpi()


def _version(package: str) -> str:
    from importlib import metadata  # here, so that --help comes at once

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _blas() -> str:
    import numpy  # noqa: F401  (loads the BLAS library)
    from threadpoolctl import threadpool_info

    return "; ".join(map(_library, threadpool_info())) or "unknown"


def _library(pool: dict[str, Any]) -> str:
    """A library with threads: its version, its kernels if it has several, and its number of threads."""
    kernels = f", {pool['architecture']} kernels" if "architecture" in pool else ""
    return f"{pool['internal_api']} {pool['version']}{kernels}, {pool['num_threads']} threads"


def _kernels() -> str:
    from minidl import kernels

    try:
        return f"{kernels.active()} (of {', '.join(kernels.NAMES)})"
    except ValueError as error:  # MINIDL_KERNELS
        return str(error)


def _gpu() -> str:
    if importlib.util.find_spec("cupy") is None:
        return "none that minidl can use: CuPy is not installed (extra `gpu`)"
    try:
        import cupy

        count = cupy.cuda.runtime.getDeviceCount()
        names = [cupy.cuda.runtime.getDeviceProperties(i)["name"].decode() for i in range(count)]
    except Exception as error:  # no driver, CUDA library or device: CuPy defines its own error classes
        return f"CuPy is installed, but cannot use a GPU: {error}"
    return f"{', '.join(names)} (CuPy {cupy.__version__})"


def _mpi() -> str:
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py is not installed (extra `mpi`)"
    try:
        import mpi4py

        mpi4py.rc.initialize = False  # the name of the library needs no MPI
        from mpi4py import MPI

        library = MPI.Get_library_version().split("\n")[0].strip("\0 ")
    except (ImportError, RuntimeError) as error:
        return f"mpi4py {_version('mpi4py')}, but no MPI library: {str(error).splitlines()[0]}"
    return f"mpi4py {_version('mpi4py')}, {library}"


def networks() -> None:
    """Show the networks that --network names: seconds per message, speed, and where the numbers come from."""
    with ending("minidl networks"):
        from minidl.cluster.cost.topologies.text import FORMS  # here, so that --help comes at once

        show(Console(), table_of_networks())
        say(
            Console(),
            "--network also takes a topology, whose links messages share; the link is after @, by default infiniband:\n"
            + "".join(f"  {form.example}@1us/100Gbit  {form.meaning}\n" for form in FORMS.values())
            + "and a file, which minidl calibrate and minidl simulate write and you may write "
            'yourself:\n  {"alpha": 20e-6, "beta": 0.8e-9}  in seconds per message and per byte, or\n'
            '  {"racks": 8, "per_rack": 8, "nic": {"latency": 1e-6, "bytes_per_second": 150e9}, '
            '"uplink": {"latency": 5e-6, "bytes_per_second": 12.5e9}}',
        )


def table_of_networks() -> Table:
    """A row for each network."""
    from minidl.cluster.cost.network import PRESETS  # here, so that --help comes at once

    result = results_table("Networks", "alpha: seconds per message; beta: seconds per byte; gamma is 0")
    for name in ("name", "alpha", "beta", "speed"):
        result.add_column(name, justify="left" if name == "name" else "right", no_wrap=True)
    result.add_column("source", overflow="fold")
    for name, (alpha, beta, source) in PRESETS.items():
        speed = f"{8e-9 / beta:g} Gbit/s"
        result.add_row(name, seconds_text(alpha), f"{beta * 1e9:.3g} ns", speed, source)
    return result
