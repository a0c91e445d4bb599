"""The ranks of one library: `python -m benchmarks.peers.collectives.ranks SIDE NODES ADDRESS`, under mpiexec for MPICH.

Every rank answers (bytes, repetitions) with the mean seconds of an all-reduce, and whether its sums were right. Between
requests it sleeps, so that the ranks of one library take no processor time from another's. (MPI's ranks spin while they
wait for each other.)
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.peer import serve

AllReduce = Callable[[Any], Any]


def answer_with(rank: int, nodes: int, address: str, all_reduce: AllReduce, barrier: Callable[[], Any]) -> None:
    """Serve as one rank until the command hangs up."""

    def measure(nbytes: int, repetitions: int) -> tuple[float, bool]:
        x = np.full(max(1, nbytes // 4), rank + 1, np.float32)
        all_reduce(x)
        is_correct = bool((x == nodes * (nodes + 1) / 2).all())
        x[:] = 0
        barrier()
        began = time.perf_counter()
        for _ in range(repetitions):
            all_reduce(x)
        return (time.perf_counter() - began) / repetitions, is_correct

    serve(address, measure)


def minidl(nodes: int, address: str) -> None:
    from minidl import cluster

    def program(comm: cluster.Communicator) -> None:
        answer_with(comm.rank, comm.size, address, comm.all_reduce, comm.barrier)

    cluster.launch(program, nodes=nodes)


def gloo(nodes: int, address: str) -> None:
    import torch.multiprocessing

    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(gloo_rank, args=(nodes, address, folder), nprocs=nodes)


def gloo_rank(rank: int, nodes: int, address: str, folder: str) -> None:
    import torch
    import torch.distributed as dist

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=nodes)
    answer_with(rank, nodes, address, lambda x: dist.all_reduce(torch.from_numpy(x)), dist.barrier)


def mpich(nodes: int, address: str) -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.size != nodes or "MPICH" not in MPI.Get_library_version():
        sys.exit(f"{comm.size} ranks of {MPI.Get_library_version().splitlines()[0]}, not {nodes} of MPICH")
    answer_with(comm.rank, nodes, address, lambda x: comm.Allreduce(MPI.IN_PLACE, x), comm.Barrier)


if __name__ == "__main__":
    {"minidl": minidl, "gloo": gloo, "MPICH": mpich}[sys.argv[1]](int(sys.argv[2]), sys.argv[3])
