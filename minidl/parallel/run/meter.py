"""The meter of a rank: its seconds and bytes of training. Earlier launches of the run count, evaluation does not."""

from __future__ import annotations

from minidl.cluster.comm import Communicator


class Meter:
    """Measures the training of one rank.

    sent_before     bytes that it sent in earlier launches, evaluation included
    bytes_before    bytes of training in earlier launches
    seconds_before  seconds of training in earlier launches
    at_evaluation   seconds of training when the last evaluation began, and bytes of training in this launch
    """

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self._started = 0.0
        self._evaluation_seconds, self._evaluation_bytes = 0.0, 0
        self.sent_before = self.bytes_before = 0
        self.seconds_before = 0.0
        self.at_evaluation = 0.0, 0

    def start(self) -> None:
        """Training begins now."""
        self._started = self._comm.now()

    def seconds(self) -> float:
        """Seconds of training since the start of the run."""
        return float(self.seconds_before + self._comm.now() - self._started - self._evaluation_seconds)

    def bytes_sent(self) -> int:
        """Bytes that the rank has sent since the start of the run, evaluation included."""
        return self.sent_before + self._comm.bytes_sent

    def training(self) -> tuple[float, int]:
        """Seconds of training since the start of the run, and bytes of training in this launch."""
        return self.seconds(), self._comm.bytes_sent - self._evaluation_bytes

    def begin_evaluation(self) -> tuple[float, int]:
        """Stop counting, because evaluation begins; returns `training()`."""
        self.at_evaluation = self.training()
        return self.at_evaluation

    def end_evaluation(self) -> None:
        """Count again, because training goes on."""
        seconds, nbytes = self.at_evaluation
        self._evaluation_seconds += self.seconds() - seconds
        self._evaluation_bytes = self._comm.bytes_sent - nbytes

    def leave_out(self, nbytes: int) -> None:
        """Exclude these bytes, which have been sent, from training."""
        self._evaluation_bytes += nbytes
