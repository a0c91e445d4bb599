"""What a rank's program stands on when the rank is a process: the mailbox, and what a process can do besides."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from minidl.cluster.board import Fingerprint
from minidl.cluster.engines.mailbox import Mailbox
from minidl.cluster.engines.protocol import Array, Pending

FLOPS_PER_S = 1e10  # of one core: for programs that state their work in operations (`comm.compute(flops=...)`)
BYTES_PER_S = 1e10


class ProcessEndpoint(Mailbox):
    """The endpoint of a rank that is a process."""

    def post_fingerprint(self, group: int, ranks: tuple[int, ...], call: int, fingerprint: Fingerprint) -> None:
        pass

    def start(self, work: Callable[[], Any], lane: int) -> Pending:
        pending = Pending("helper", self.rank, lane, self.now(), payload=work(), source=self.rank, done=True)
        return pending

    def native_all_reduce(self, x: Array, op: str, ranks: tuple[int, ...], tag: int) -> bool:
        return False

    def shared_array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        raise NotImplementedError

    def charge(self, *, seconds: float = 0.0, flops: float = 0.0, nbytes: float = 0.0) -> None:
        """Sleep: what a program states as work is not done here."""
        time.sleep(seconds + max(flops / FLOPS_PER_S, nbytes / BYTES_PER_S))

    def charge_reduction(self, nbytes: int) -> None:
        """Nothing: a reduction has taken its time."""

    def die(self) -> NoReturn:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a killed process goes on")

    def freeze(self) -> NoReturn:
        while True:
            os.kill(os.getpid(), signal.SIGSTOP)
