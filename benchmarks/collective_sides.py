"""The ranks that `collectives.py` measures: of minidl, of gloo (through torch.distributed), of MPICH (through mpi4py).

    python benchmarks/collective_sides.py SIDE NODES ADDRESS

Every rank connects to the benchmark's socket and sleeps until a request arrives, so that the ranks of one library take
no processor time from another's. (MPI's ranks spin while they wait for each other.)
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Client
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float32]]
AllReduce = Callable[[Array], Any]


def serve(rank: int, nodes: int, address: str, all_reduce: AllReduce, barrier: Callable[[], Any]) -> None:
    """Answer each request (bytes, repetitions) with the mean seconds of an all-reduce, until the connection closes."""
    with Client(address, family="AF_UNIX") as connection:
        connection.send(rank)
        while (command := connection.recv()) is not None:
            nbytes, repetitions = command
            x = np.full(max(1, nbytes // 4), rank + 1, np.float32)
            all_reduce(x)
            correct = bool((x == nodes * (nodes + 1) / 2).all())
            x[:] = 0
            barrier()
            began = time.perf_counter()
            for _ in range(repetitions):
                all_reduce(x)
            connection.send(((time.perf_counter() - began) / repetitions, correct))


def minidl(nodes: int, address: str) -> None:
    from minidl import cluster

    def program(comm: cluster.Communicator) -> None:
        serve(comm.rank, comm.size, address, comm.all_reduce, comm.barrier)

    cluster.launch(program, nodes=nodes)


def gloo(nodes: int, address: str) -> None:
    import torch.multiprocessing

    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(gloo_rank, args=(nodes, address, folder), nprocs=nodes)


def gloo_rank(rank: int, nodes: int, address: str, folder: str) -> None:
    import torch.distributed

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    store = f"file://{folder}/store"
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=nodes)
    serve(
        rank,
        nodes,
        address,
        lambda x: torch.distributed.all_reduce(torch.from_numpy(x)),
        torch.distributed.barrier,
    )


def mpich(nodes: int, address: str) -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.size != nodes or "MPICH" not in MPI.Get_library_version():
        sys.exit(f"{comm.size} ranks of {MPI.Get_library_version().splitlines()[0]}, not {nodes} of MPICH")
    serve(comm.rank, nodes, address, lambda x: comm.Allreduce(MPI.IN_PLACE, x), comm.Barrier)


if __name__ == "__main__":
    {"minidl": minidl, "gloo": gloo, "mpich": mpich}[sys.argv[1]](int(sys.argv[2]), sys.argv[3])
