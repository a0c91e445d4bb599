"""Engines are imported when they are first asked for; for the user nothing else differs."""

import pickle
import subprocess
import sys

import pytest

from minidl import cluster

ENGINES = ("processes", "simulation", "mpi")


def printed_by(program: str) -> str:
    """What a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.timeout(300)
def test_a_name_or_a_launch_imports_its_engine_and_no_other() -> None:
    program = f"""
import sys, minidl.cluster, minidl.parallel
from minidl import cluster
def imported():
    engines = [f"minidl.cluster.engines.{{name}}" for name in {ENGINES}]
    names = (*engines, "multiprocess", "greenlet", "mpi4py", "numba", "matplotlib", "torch")
    return [name.rpartition(".")[2] for name in names if name in sys.modules]
print(imported())
cluster.MPI
print(imported())
print(cluster.launch(lambda comm: comm.rank, nodes=2, on="simulation").results, imported())
cluster.Node, cluster.Processes
print(imported())
print(minidl.parallel.convolution_grids.Node is cluster.Node)
"""
    assert printed_by(program).splitlines() == [
        "[]",
        "['mpi']",
        "[0, 1] ['simulation', 'mpi', 'greenlet']",
        "['processes', 'simulation', 'mpi', 'multiprocess', 'greenlet']",
        "True",
    ]


@pytest.mark.timeout(300)
def test_the_names_of_the_engines_are_completed_before_they_are_imported() -> None:
    names = printed_by("from minidl import cluster; print(*dir(cluster))").split()
    assert set(cluster.__all__) <= set(names)


def test_a_missing_name_is_an_attribute_error_of_the_cluster() -> None:
    with pytest.raises(AttributeError, match=r"module 'minidl.cluster' has no attribute 'Simulatoin'"):
        cluster.Simulatoin  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("engine", [cluster.Processes(threads=1), cluster.Simulation(), cluster.MPI()])
def test_an_engine_survives_pickling(engine: object) -> None:
    assert pickle.loads(pickle.dumps(engine)) == engine


@pytest.mark.timeout(300)
def test_the_fork_server_has_imported_every_engine_before_it_forks_a_rank() -> None:
    def program(comm: cluster.Communicator) -> list[str]:
        return [name for name in ENGINES if f"minidl.cluster.engines.{name}" not in sys.modules]

    assert cluster.launch(program, nodes=1, on=cluster.Processes("forkserver")).results == [[]]
