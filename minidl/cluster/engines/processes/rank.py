"""A rank's process on the engine `processes`: it starts at `entry`, gets its task from the launcher, and runs it."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import threading
from typing import NoReturn

from minidl.cluster.engines import control
from minidl.cluster.engines.processes.endpoint import ProcessEndpoint
from minidl.cluster.engines.processes.shared_page import Page
from minidl.cluster.engines.real_endpoint import RealEndpoint
from minidl.cluster.engines.worker import (
    MAX_DESCRIPTORS,
    RankContext,
    end_with_launcher,
    run_rank,
)


def entry(link: socket.socket) -> NoReturn:
    """The first function of a fresh process; it never returns, because its process runs nothing else."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the launcher alone answers it
    launcher = control.ControlSocket(link)
    try:
        _, body, descriptors = launcher.receive(max_descriptors=MAX_DESCRIPTORS)
        threading.Thread(target=end_with_launcher, args=(link.fileno(),), daemon=True).start()
        run_rank(launcher, pickle.loads(body), descriptors, _endpoint)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(1)  # the launcher has ended, so there is nobody to report to
    os._exit(0)  # at once: finalizing an interpreter that holds numba takes tenths of a second


def _endpoint(rank: RankContext, origin: float) -> RealEndpoint:
    others = [peer for peer in range(rank.start.terms.nodes) if peer != rank.start.rank]
    *links, memory, page = rank.descriptors
    faults = rank.start.terms.faults
    return ProcessEndpoint(
        rank.start.rank,
        {peer: socket.socket(fileno=descriptor) for peer, descriptor in zip(others, links, strict=True)},
        control=rank.launcher.socket.fileno(),
        read_control=rank.read_abort,
        timeout=rank.start.terms.timeout,
        origin=origin,
        network=rank.start.terms.network,
        memory=memory,
        page=Page(page, rank.start.terms.nodes),
        lost=rank.lost,
        tell=rank.tell,
        last_words=rank.last_words,
        may_share=faults is None or not faults.spoils_messages,
    )
