"""The communicator: the object by which the program of a rank sends, receives and calls collectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from minidl import random
from minidl.cluster import collectives
from minidl.cluster.algorithm import chosen
from minidl.cluster.channel import Channel
from minidl.cluster.cost.fastest import fastest_all_reduce
from minidl.cluster.diagnosis.errors import CollectiveMismatch
from minidl.cluster.diagnosis.fingerprints import SAME, Fingerprint
from minidl.cluster.engines.protocol import Endpoint
from minidl.cluster.faults import RankFaults
from minidl.cluster.groups import Groups
from minidl.cluster.missing_attributes import add_hints
from minidl.cluster.operands import Operand, check_items
from minidl.cluster.rank import Rank
from minidl.cluster.trace.recorder import Recorder
from minidl.cluster.work import Work
from minidl.missing_names import without_missing


class Communicator(Groups):
    """Messages and collectives among the `size` ranks of a group; this rank has number `rank`.

    Words and semantics are those of torch.distributed and MPI; results are returned.

    Payloads
        A payload is a numpy array of any shape, or any object that can be pickled. A Tensor p is refused: pass p.data.
        A send of up to 64 KiB returns at once. A larger one returns when the receiver has the message, so two ranks
        that both send first wait for each other.

    Collectives
        Every rank of the group makes the same calls in the same order.
        op         "sum", "mean", "max", "min" or "prod", for reductions
        async_op   True: return a Work at once and run concurrently with the program
        label      a name that must be equal on all ranks, so that calls made in another order raise an error

    Memory
        broadcast, reduce and all_reduce write into their array and return it (broadcast on rank `src` only reads it).
        All other results are new: they share no memory with the arguments of any rank.
        Arrays of an operation in progress (`async_op=True`, `irecv` with `out`) are in flight until `wait()` returns.
        Passing one to another operation raises RuntimeError, unless both only read it. A numpy statement that changes
        it is not noticed. `isend` copies, so its array may be changed at once.

    Raises
        RankFailed           another rank has failed; from any blocking call
        CommTimeout          the call was blocked for longer than the launch's `timeout`
        Deadlock             ranks wait for each other in a circle, or for one that has returned
        CollectiveMismatch   ranks have called different collectives

    >>> import numpy as np
    >>> from minidl import cluster
    >>> def program(comm):
    ...     return comm.all_reduce(np.full(2, comm.rank + 1.0)).tolist()
    >>> cluster.launch(program, nodes=4).results
    [[10.0, 10.0], [10.0, 10.0], [10.0, 10.0], [10.0, 10.0]]
    """

    def __init__(
        self, owner: Rank, ranks: tuple[int, ...], group: int, rng: np.random.Generator, axis: str = ""
    ) -> None:
        super().__init__(owner, ranks, group, rng, axis)
        self._inside: Communicator | None = None  # the communicator that background work uses

    def __repr__(self) -> str:
        return f"<Communicator: rank {self.rank} of {self.size}>"

    def __dir__(self) -> list[str]:
        return without_missing(super().__dir__(), Communicator)

    # One to all, all to one

    def broadcast(self, x: Any, src: int = 0, *, async_op: bool = False, label: str | None = None) -> Any:
        """Send x from rank `src` to all ranks: arrays are written in place, other objects are returned as copies.

        The array may have any layout and be a memmap or another subclass; dtype and size must equal those on `src`.
        A rank that passes no array (None, say) gets a new one. ValueError for a read-only array, except on `src`;
        CollectiveMismatch for another dtype or size than on `src`.
        """
        src = self._rank("src", src)
        is_source = self.rank == src
        if not is_source and isinstance(x, np.ndarray) and not x.flags.writeable:
            raise ValueError(
                "broadcast writes into x, but x is read-only: pass a copy, x.copy(), or None for a new array"
            )

        def work(channel: Channel) -> Any:
            contiguous = x.copy() if isinstance(x, np.ndarray) and not x.flags.c_contiguous else x
            try:
                result = collectives.broadcast_tree(channel, contiguous, src)
            except ValueError as error:
                if is_source or not isinstance(x, np.ndarray):
                    raise
                raise CollectiveMismatch(
                    f"the array that rank {self.rank} passes to broadcast is not like that of rank {src}: {error}",
                    rank=self._ranks[self.rank],
                ) from error
            if isinstance(x, np.ndarray) and result is not x:
                x[...] = result
                return x
            return result

        reads, writes = (x, None) if is_source else (None, x)
        return self._collective(work, Fingerprint("broadcast", root=src, label=label), async_op, reads, writes)

    def reduce(self, x: Any, dst: int = 0, op: str = "sum", *, async_op: bool = False, label: str | None = None) -> Any:
        """Combine x over all ranks: rank `dst` gets the result in place and returns it, the others return None.

        x and op are as in `all_reduce`.
        """
        dst = self._rank("dst", dst)
        operand = Operand(x, op, "reduce", self.size, is_written=self.rank == dst)

        def work(channel: Channel) -> Any:
            total = collectives.reduce_tree(channel, operand.flat, dst, op)
            return None if total is None else operand.result(total, self.size)

        reads, writes = (None, x) if self.rank == dst else (x, None)
        return self._collective(work, operand.fingerprint("reduce", root=dst, label=label), async_op, reads, writes)

    def gather(self, x: Any, dst: int = 0, *, async_op: bool = False, label: str | None = None) -> Any:
        """Rank `dst` returns the list of every rank's x, which may differ in shape; the others return None."""
        dst = self._rank("dst", dst)
        return self._collective(
            lambda channel: collectives.gather(channel, x, dst),
            Fingerprint("gather", root=dst, label=label),
            async_op,
            reads=x,
        )

    def scatter(self, x: Any, src: int = 0, *, async_op: bool = False, label: str | None = None) -> Any:
        """Rank `src` passes a list with one item for each rank, the others None; every rank returns its item."""
        src = self._rank("src", src)
        if self.rank == src:
            check_items("scatter", x, self.size)
        return self._collective(
            lambda channel: collectives.scatter(channel, x, src),
            Fingerprint("scatter", root=src, label=label),
            async_op,
            reads=x,
        )

    # All to all

    def all_reduce(
        self,
        x: Any,
        op: str = "sum",
        algorithm: str | Callable[..., Any] = "auto",
        *,
        async_op: bool = False,
        label: str | None = None,
        **options: Any,
    ) -> Any:
        """Combine x over all ranks; every rank gets the same bits. An array changes in place; a number is returned.

        Parameters
            x           numbers, of the same shape and dtype on all ranks
            op          "sum", "mean", "max", "min" or "prod"
            algorithm   "ring", "tree", "recursive_doubling", "rabenseifner", "parameter_server",
                        "pipelined_chain" (option `segments`), "hierarchical" (option `per_group`),
                        "ordered": in rank order, like a loop on one node,
                        "auto": the engine's own method if it has one, else the fastest by the cost model,
                        or a function f(comm, x, op, **options) of your own that changes the vector x in place, like
                        those in `minidl/cluster/collectives/all_reduce.py`

        Raises
            ValueError      unknown op or algorithm, or a read-only array
            TypeError       x is not numeric, a masked array, or for op "mean" an array of integers; a function that
                            cannot be called so, or that returns another array
            OverflowError   a whole number whose sum could exceed 64 bits

        Notes
            A named algorithm gives the same bits on every engine. "auto" may not, because engines choose differently
            and floating-point sums depend on the order.
            Arrays keep their dtype: an int64 sum wraps around as in numpy, and the sum of booleans is `or`. The mean of
            float16 or bfloat16 is computed and sent in float32.
            A single whole number is reduced exactly or raises OverflowError: the sum is refused if the same number on
            all ranks would not fit in 64 bits. Its mean is a float. The sum of single booleans is a count.
        """
        operand = Operand(x, op, "all_reduce", self.size, is_written=True)
        how = chosen(algorithm, op, options)

        def work(channel: Channel) -> Any:
            flat, endpoint = operand.flat, self._owner.endpoint
            if how.function is not None:
                channel.play(how.function, flat, op, **options)
            elif not endpoint.native_all_reduce(flat, op, self._ranks, channel.tag, channel.recorder):
                best, settings = fastest_all_reduce(self.network, self._ranks, flat.nbytes, flat.itemsize)
                channel.play(collectives.ALL_REDUCE[best], flat, op, **settings)
            return operand.result(flat, self.size)

        fingerprint = operand.fingerprint("all_reduce", algorithm=how.name, label=label)
        return self._collective(work, fingerprint, async_op, writes=x)

    def all_gather(self, x: Any, *, async_op: bool = False, label: str | None = None) -> Any:
        """Return the list of every rank's x: any objects; arrays may differ in shape."""
        return self._collective(
            lambda channel: channel.play(collectives.all_gather_ring, x),
            Fingerprint("all_gather", label=label),
            async_op,
            reads=x,
        )

    def reduce_scatter(self, x: Any, op: str = "sum", *, async_op: bool = False, label: str | None = None) -> Any:
        """Combine the array x over all ranks; rank i returns chunk i of `np.array_split(result, size)`, a new array."""
        operand = Operand(x, op, "reduce_scatter", self.size)
        if operand.is_scalar or x.ndim == 0:
            what = type(x).__name__ if operand.is_scalar else "one without dimensions"
            raise TypeError(f"reduce_scatter takes an array, not {what}: there is nothing to split")

        def work(channel: Channel) -> Any:
            chunk = channel.play(collectives.reduce_scatter_ring, operand.contiguous, op)
            return operand.mean_of(chunk, self.size)

        return self._collective(work, operand.fingerprint("reduce_scatter", label=label), async_op, reads=x)

    def all_to_all(self, x: Sequence[Any], *, async_op: bool = False, label: str | None = None) -> Any:
        """Send item i of the list x to rank i; return the list of received items, item i from rank i."""
        check_items("all_to_all", x, self.size)
        return self._collective(
            lambda channel: channel.play(collectives.all_to_all_pairwise, x),
            Fingerprint("all_to_all", label=label),
            async_op,
            reads=x,
        )

    def barrier(self, *, async_op: bool = False, label: str | None = None) -> Any:
        """Return once every rank has called it. It does not complete earlier operations with `async_op=True`."""
        return self._collective(
            lambda channel: channel.play(collectives.barrier_dissemination),
            Fingerprint("barrier", label=label),
            async_op,
        )

    def check_same(self, what: str, digest: str) -> None:
        """Raise CollectiveMismatch unless all ranks pass the same digest. No message is sent, and nobody waits.

        The last rank to call compares. Under MPI that takes `cluster.MPI(debug=True)`, as for all collectives.
        what: names it in the error: "rank 2 and ranks 0 and 1 have different {what}"
        """
        self._post(Fingerprint(f"{SAME}{what}", label=digest))

    # Shared memory

    def shared_array(
        self, name: str, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32
    ) -> npt.NDArray[Any]:
        """Return the array called `name`: the same memory on all ranks of this communicator, zeros at first.

        Nothing orders the reads and writes of different ranks. The ranks must share a machine.
        """
        whole_shape = (shape,) if isinstance(shape, int) else tuple(shape)
        return self._owner.endpoint.shared_array(f"{self._group}/{self._ranks[0]}/{name}", whole_shape, np.dtype(dtype))

    # Concurrently with the program

    def abandon(self) -> None:
        """Drop the results and errors of this rank's collectives in progress.

        For a program that returns something although another rank has failed: an operation that nobody waits for would
        otherwise make this rank fail too.
        """
        self._owner.endpoint.abandon_helpers()
        for pending in list(self._owner.in_flight.uses):
            self._owner.in_flight.end(pending)

    def background(self, work: Callable[[Communicator], Any]) -> Work:
        """Run `work(comm)` concurrently with the program, for example to answer messages while the rank computes.

        Returns a Work: its `wait()` returns the result of `work`, or raises its exception.

        Each rank may start work at any time; it is not a collective. `work` gets a communicator with the ranks and
        messages of this one. Until it ends, collectives of this communicator belong to it, so give it a communicator
        of its own: `comm.split(0)`. It runs in a thread, in a simulation in a task of the same rank; several run in the
        order in which they were started. The trace shows it in a lane of its own; planned faults do not affect it.
        Groups that it needs are made before: `split` and `mesh` raise RuntimeError in `work`.

        >>> from minidl import cluster
        >>> def program(comm):
        ...     answering = comm.split(0)
        ...     if comm.rank == 1:
        ...         answer = answering.background(lambda inside: inside.send(2 * inside.recv(0), 0))
        ...         comm.compute(seconds=10.0)
        ...         return answer.wait()
        ...     answering.send(21, 1)
        ...     return answering.recv(1), comm.now()
        >>> cluster.launch(program, nodes=2, on="simulation").results
        [(42, 0.0), None]
        """
        owner = self._owner
        owner.enter("background", self.axis)
        if self._inside is None:
            rank = Rank(owner.endpoint, self._lane(), None, owner.in_flight, in_background=True)
            self._inside = Communicator(rank, self._ranks, self._group, self.rng, self.axis)
            self._inside._calls = self._calls
        inside = self._inside
        pending = self._start("background", lambda _: work(inside))
        owner.leave()
        return Work(owner, "background", pending, self._finish_concurrent, self.axis)


add_hints(Communicator)


def world(endpoint: Endpoint, recorder: Recorder, seed: int, faults: RankFaults | None) -> Communicator:
    """Return the communicator of all ranks, which an engine passes to the program."""
    rng = random.stream(random.Purpose.PROGRAM, seed, endpoint.rank)
    random.use(rng)
    return Communicator(Rank(endpoint, recorder, faults), _everyone(endpoint.size), 0, rng)


@lru_cache(1)
def _everyone(size: int) -> tuple[int, ...]:
    """All ranks; the same tuple for all simulated ones, because thousands of thousands take gigabytes."""
    return tuple(range(size))
