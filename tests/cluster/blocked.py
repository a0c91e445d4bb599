"""For programs on processes: do something only when other ranks wait for a message."""

from __future__ import annotations

import time

import numpy as np

from minidl import cluster
from minidl.cluster.engines.processes.shared_page import EPOCH, WAIT_WORDS


def wait_until_blocked(comm: cluster.Communicator, *ranks: int) -> None:
    """Return when each of these ranks waits for a message, as the page shows that it shares with the launcher."""
    page = np.frombuffer(comm._owner.endpoint._published._words.obj, np.uint64)
    waits = page[: comm.size * WAIT_WORDS].reshape(comm.size, WAIT_WORDS)
    while not (waits[list(ranks), EPOCH] % 2 == 1).all():
        time.sleep(0.01)
