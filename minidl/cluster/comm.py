"""The communicator: what a rank's program holds in its hand."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from minidl import random
from minidl.cluster import collectives
from minidl.cluster.engines.protocol import Endpoint, Pending
from minidl.cluster.recorder import Recorder, Shares

ANY = -1  # receive from any rank

MAX_TAG = 1 << 32
USER, COLLECTIVE = 0, 1  # contexts: a collective's messages never meet those that the program sends itself

REDUCE = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


class Communicator:
    """Messages and collectives among the `size` ranks of a run, of which this is number `rank`.

    A payload is a numpy array of any shape, or any object that can be pickled. Sends of up to 64 KiB return at once;
    larger ones return when the receiver has the message, so that two ranks that both send first wait for each other.
    Every blocking call raises RankFailed when another rank has failed, CommTimeout after the launch's `timeout`, and
    Deadlock when the rank it waits for has already returned.

    >>> import numpy as np
    >>> from minidl import cluster
    >>> def program(comm):
    ...     return comm.all_reduce(np.full(2, comm.rank + 1.0)).tolist()
    >>> cluster.launch(program, nodes=4).results
    [[10.0, 10.0], [10.0, 10.0], [10.0, 10.0], [10.0, 10.0]]

    Words, argument order and semantics are those of torch.distributed and MPI.
    """

    def __init__(self, endpoint: Endpoint, recorder: Recorder, seed: int) -> None:
        self.rank = endpoint.rank
        self.size = endpoint.size
        self.rng = random.manual_seed((seed, self.rank))
        self.last_source = ANY
        self._endpoint = endpoint
        self._recorder = recorder
        self._context = USER
        self._inside = _InsideCollective(self)

    def __repr__(self) -> str:
        return f"<Communicator: rank {self.rank} of {self.size}>"

    # Point to point

    def send(self, x: Any, dst: int, tag: int = 0) -> None:
        """Send x to rank `dst`; messages of one tag arrive in the order in which they were sent."""
        dst, tag = self._rank("dst", dst), self._tag(tag)
        self._enter("send")
        self._finish_send(self._post_send(x, dst, tag), dst)
        self._leave()

    def recv(self, src: int, tag: int = 0, out: npt.NDArray[Any] | None = None) -> Any:
        """Receive the next message of this tag from rank `src`, or from any rank with `src=cluster.ANY`.

        Returns the array or object; `comm.last_source` then says who sent it. With `out`, a contiguous array of the
        message's dtype and size, it is written there and `out` is returned.
        """
        source, tag = self._source(src), self._tag(tag)
        self._enter("recv")
        payload = self._finish_receive(self._endpoint.post_receive(source, tag, out))
        self._leave()
        return payload

    def sendrecv(self, x: Any, dst: int, src: int, tag: int = 0, out: npt.NDArray[Any] | None = None) -> Any:
        """Send x to `dst` and receive from `src` at once: a ring of these cannot deadlock, whatever the size."""
        dst, source, tag = self._rank("dst", dst), self._source(src), self._tag(tag)
        self._enter("sendrecv")
        receive = self._endpoint.post_receive(source, tag, out)
        send = self._post_send(x, dst, tag)
        payload = self._finish_receive(receive)
        self._finish_send(send, dst)
        self._leave()
        return payload

    def isend(self, x: Any, dst: int, tag: int = 0) -> Work:
        """Start to send, and `wait()` on the Work that is returned; x has been copied and may be changed."""
        dst, tag = self._rank("dst", dst), self._tag(tag)
        self._enter("isend")
        send = self._post_send(x, dst, tag)
        self._leave()
        return Work(self, "isend", send, dst)

    def irecv(self, src: int, tag: int = 0, out: npt.NDArray[Any] | None = None) -> Work:
        """Start to receive; the message is what `wait()` on the Work returns."""
        source, tag = self._source(src), self._tag(tag)
        self._enter("irecv")
        receive = self._endpoint.post_receive(source, tag, out)
        self._leave()
        return Work(self, "irecv", receive, None)

    # Collectives: every rank makes the same call

    def broadcast(self, x: Any, src: int = 0) -> Any:
        """Give every rank what rank `src` has: arrays are written in place; of other objects the copy is returned.

        A rank that passes no array (None, say) gets a new one.
        """
        src = self._rank("src", src)
        self._enter("broadcast")
        contiguous = x.copy() if isinstance(x, np.ndarray) and not x.flags.c_contiguous else x
        result = collectives.broadcast_tree(self._inside, contiguous, src)
        if isinstance(x, np.ndarray) and result is not x:
            x[...] = result
            result = x
        self._leave()
        return result

    def all_reduce(self, x: Any, op: str = "sum", algorithm: str = "auto") -> Any:
        """Combine x over all ranks; every rank gets the same bits. Arrays in place; of a scalar, the new value.

        op: "sum", "mean", "max", "min" or "prod". algorithm: "ring"; "ordered", which reduces in rank order like a loop
        on one node; or "auto", at present the ring. x: numbers of the same shape and dtype on all ranks; the mean of
        whole numbers is a float, the sum of True and False is a count (in an array, which stays boolean, it is `or`).
        Errors: ValueError for an unknown op or algorithm, TypeError for what is no number and for the mean of integers.
        """
        if op not in REDUCE:
            raise ValueError(f"unknown op {op!r}: choose one of {', '.join(REDUCE)}")
        name = "ring" if algorithm == "auto" else algorithm
        if name not in collectives.ALL_REDUCE:
            choices = ", ".join(["auto", *collectives.ALL_REDUCE])
            raise ValueError(f"unknown algorithm {algorithm!r} for all_reduce: choose one of {choices}")
        is_array = isinstance(x, np.ndarray)
        array = x if is_array else np.array(_number(x, op))
        if array.dtype.kind not in "biufc" or not (is_array or array.ndim == 0):
            raise TypeError(f"all_reduce takes an array of numbers or a number, not {type(x).__name__} ({array.dtype})")
        if op == "mean" and array.dtype.kind not in "fc":
            raise TypeError(
                f"the mean of {array.dtype} has no place in an {array.dtype} array: convert it to float first"
            )
        self._enter("all_reduce")
        flat = np.ascontiguousarray(array).reshape(-1)
        collectives.ALL_REDUCE[name](self._inside, flat, op)
        if op == "mean":
            flat /= self.size
        if not array.flags.c_contiguous:
            array[...] = flat.reshape(array.shape)
        self._leave()
        if is_array:
            return x
        return array[()] if isinstance(x, np.generic) else array.item()

    def barrier(self) -> None:
        """Return when every rank has called this."""
        self._enter("barrier")
        collectives.barrier_dissemination(self._inside)
        self._leave()

    def reduce_into(self, a: npt.NDArray[Any], b: npt.NDArray[Any], op: str = "sum") -> None:
        """a becomes `a op b`, element by element: the arithmetic of a reduction."""
        REDUCE[op](a, b, out=a)
        self._recorder.reduced(a.nbytes)

    # Time, traces, progress

    def now(self) -> float:
        """Seconds since the program began on all ranks."""
        return self._endpoint.now()

    def mark(self, label: str) -> None:
        """Label the compute from here to the next mark in the trace: "forward", "backward"."""
        self._recorder.mark(label)

    def shares(self) -> Shares:
        """The fractions of this rank's time spent computing, communicating and waiting, up to now."""
        return self._recorder.shares()

    @property
    def bytes_sent(self) -> int:
        """The bytes that this rank has sent up to now."""
        return self._recorder.bytes_sent

    def tell(self, obj: Any) -> None:
        """Hand an object to the `listener` of the launch while the run goes on; without a listener nothing happens."""
        self._endpoint.tell(obj)

    # Below the surface

    def _enter(self, operation: str) -> None:
        self._recorder.enter(operation)

    def _leave(self) -> None:
        self._recorder.leave()

    def _post_send(self, x: Any, dst: int, tag: int) -> Pending:
        pending = self._endpoint.post_send(x, dst, tag)
        self._recorder.sent(pending.nbytes, dst)
        return pending

    def _finish_send(self, pending: Pending, dst: int) -> None:
        if not pending.done:
            self._endpoint.wait(pending)
            self._recorder.delivered(dst, pending.peer_posted)

    def _finish_receive(self, pending: Pending) -> Any:
        self._endpoint.wait(pending)
        self.last_source = pending.source
        self._recorder.received(pending.nbytes, pending.source, pending.peer_posted)
        return pending.payload

    def _rank(self, name: str, rank: int) -> int:
        number = operator.index(rank)
        if not 0 <= number < self.size:
            raise ValueError(f"{name} must be a rank from 0 to {self.size - 1}, got {rank}")
        return number

    def _source(self, src: int) -> int | None:
        return None if src == ANY else self._rank("src", src)

    def _tag(self, tag: int) -> int:
        number = operator.index(tag)
        if not 0 <= number < MAX_TAG:
            raise ValueError(f"tag must be at least 0 and below 2**32, got {tag}")
        return self._context * MAX_TAG + number


def _number(x: Any, op: str) -> Any:
    """A single x as a number that can hold the result."""
    if op == "mean" and isinstance(x, (int, np.integer, np.bool_)):
        return np.float64(x)
    return int(x) if op == "sum" and isinstance(x, (bool, np.bool_)) else x


class _InsideCollective(Communicator):
    """The communicator as a collective sees it: its own context, and its messages are recorded under the collective."""

    def __init__(self, outside: Communicator) -> None:
        self.rank = outside.rank
        self.size = outside.size
        self._endpoint = outside._endpoint
        self._recorder = outside._recorder
        self._context = COLLECTIVE

    def _enter(self, operation: str) -> None:
        """The collective has entered already."""

    def _leave(self) -> None:
        """The collective leaves by itself."""


class Work:
    """A send or receive that was started by `isend` or `irecv`."""

    def __init__(self, comm: Communicator, operation: str, pending: Pending, dst: int | None) -> None:
        self._comm = comm
        self._operation = operation
        self._pending = pending
        self._dst = dst
        self._waited = False

    def wait(self) -> Any:
        """Return when it is done: the message that was received, or None after a send."""
        if not self._waited:
            self._waited = True
            self._comm._enter(self._operation)
            if self._dst is not None:
                self._comm._finish_send(self._pending, self._dst)
            else:
                self._comm._finish_receive(self._pending)
            self._comm._leave()
        return self._pending.payload
