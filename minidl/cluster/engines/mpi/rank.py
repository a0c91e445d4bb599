"""A rank that mpiexec has started for a launch: `python -m minidl.cluster.engines.mpi.rank NAME`.

It connects to the launcher's socket of that name, initializes MPI, and runs the program like any rank that is a
process. Then it stays until the launcher ends the run, because other ranks may still want messages that it has sent.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import sys
import threading
import time
from typing import NoReturn

from mpi4py import MPI

from minidl import mpiexec
from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.engines import control
from minidl.cluster.engines.mpi import environment
from minidl.cluster.engines.mpi.cleanup import end_job, forget_names, segments
from minidl.cluster.engines.mpi.endpoint import MPIEndpoint, SharedFile
from minidl.cluster.engines.real_endpoint import RealEndpoint
from minidl.cluster.engines.worker import (
    MAX_DESCRIPTORS,
    RankContext,
    end_with_launcher,
    run_rank,
)

LOOK_SECONDS = 0.001
GRACE_SECONDS = 5.0  # for the other processes of a job without a launcher to end


def main(name: str, debug: bool) -> NoReturn:
    """Run one rank for the launcher whose socket has that name; never returns."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the launcher alone answers it
    link, known = socket.socket(socket.AF_UNIX), segments()
    try:
        # First, so that the launcher notices a death in MPI_Init, where the other ranks would wait forever.
        link.connect(environment.address(name))
        link.sendall(environment.HELLO.pack(mpiexec.rank()))
        MPI.Init_thread()
        comm = MPI.COMM_WORLD
        forget_names(comm)
        memory = SharedFile(comm)
        launcher = control.ControlSocket(link)
        _, body, descriptors = launcher.receive(max_descriptors=MAX_DESCRIPTORS)
        threading.Thread(target=end_with_launcher, args=(link.fileno(),), daemon=True).start()
        start = pickle.loads(body)
        environment.runs_program = True
        news = select.poll()
        news.register(link.fileno(), select.POLLIN)
        endpoint: MPIEndpoint | None = None

        def endpoint_of(rank: RankContext, origin: float) -> RealEndpoint:
            nonlocal endpoint

            def error() -> ClusterError | None:
                return rank.read_abort() if news.poll(0) else None

            endpoint = MPIEndpoint(
                comm,
                timeout=start.terms.timeout,
                news=error,
                tell=rank.tell,
                last_words=rank.last_words,
                memory=memory,
                may_reduce=start.terms.faults is None or not start.terms.faults.spoils_messages,
                debug=debug,
            )
            endpoint.begin(origin)
            return endpoint

        run_rank(launcher, start, descriptors, endpoint_of)
        while endpoint is not None:
            endpoint.progress()
            time.sleep(LOOK_SECONDS)
    except ClusterError:
        os._exit(1)  # another rank has failed since this one has reported
    except (EOFError, BrokenPipeError, ConnectionResetError, ConnectionRefusedError):
        end_job(name, known, GRACE_SECONDS)  # the launcher has ended, so there is nobody to report to
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "debug")
