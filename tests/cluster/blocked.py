"""For runs on processes: act only when ranks wait for a message, and get the reports of all ranks on a busy machine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.engines import supervisor
from minidl.cluster.engines.processes.shared_page import EPOCH, WAIT_WORDS


def wait_until_blocked(comm: cluster.Communicator, *ranks: int) -> None:
    """Return when each of these ranks waits for a message, as the page shows that it shares with the launcher."""
    page = np.frombuffer(comm._owner.endpoint._published._words.obj, np.uint64)
    waits = page[: comm.size * WAIT_WORDS].reshape(comm.size, WAIT_WORDS)
    while not (waits[list(ranks), EPOCH] % 2 == 1).all():
        time.sleep(0.01)


@contextlib.contextmanager
def all_reports_awaited() -> Iterator[None]:
    """Inside, the launcher of a run that has failed waits for the report of every rank."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supervisor, "GRACE_SECONDS", 60.0)
        yield
