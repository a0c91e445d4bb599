"""The communicator: what a rank's program holds in its hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from minidl import random
from minidl.cluster import collectives, cost
from minidl.cluster.channel import Channel
from minidl.cluster.cost import rounds as tree_cost
from minidl.cluster.diagnosis.call_site import call_site
from minidl.cluster.diagnosis.fingerprints import Fingerprint
from minidl.cluster.engines.protocol import Endpoint, Pending
from minidl.cluster.faults import RankFaults
from minidl.cluster.mesh import Mesh
from minidl.cluster.messages import Messages
from minidl.cluster.operands import Operand, check_algorithm
from minidl.cluster.rank import Rank
from minidl.cluster.trace.recorder import Recorder
from minidl.cluster.work import Work


class Communicator(Messages):
    """Messages and collectives among the `size` ranks of a run, of which this is number `rank`.

    A payload is a numpy array of any shape, or any object that can be pickled. Sends of up to 64 KiB return at once;
    larger ones return when the receiver has the message, so that two ranks that both send first wait for each other.
    Collectives are calls that every rank makes, in the same order; with `async_op=True` they return a Work at once and
    run concurrently with the program. `label` tells apart calls that a mix-up could exchange. Reductions take
    `op`: "sum", "mean", "max", "min" or "prod".

    Memory: broadcast, reduce and all_reduce write into the array that they are given and return it (broadcast on rank
    `src` returns what it was given). Everything else that a call returns is new: it shares no memory with what any
    rank has passed. Arrays of an operation that has begun (`async_op=True`, `irecv` with `out`) are in flight until
    `wait()` returns: to give one to another operation raises RuntimeError, unless both only read it. A line of numpy
    that changes it goes unnoticed. `isend` copies, so its array is free at once.

    Every blocking call raises RankFailed when another rank has failed, CommTimeout after the launch's `timeout`,
    Deadlock when the ranks wait for each other in a circle or for one that has returned, and CollectiveMismatch when
    they have called different collectives.

    >>> import numpy as np
    >>> from minidl import cluster
    >>> def program(comm):
    ...     return comm.all_reduce(np.full(2, comm.rank + 1.0)).tolist()
    >>> cluster.launch(program, nodes=4).results
    [[10.0, 10.0], [10.0, 10.0], [10.0, 10.0], [10.0, 10.0]]

    Words, argument order and semantics are those of torch.distributed and MPI.
    """

    def __init__(self, owner: Rank, ranks: tuple[int, ...], group: int, rng: np.random.Generator) -> None:
        super().__init__(owner, ranks, group)
        self.rng = rng
        self._calls = itertools.count()  # numbers the collectives of this group
        self._inside: Communicator | None = None  # what work in the background has in its hand

    def __repr__(self) -> str:
        return f"<Communicator: rank {self.rank} of {self.size}>"

    # One to all, all to one

    def broadcast(self, x: Any, src: int = 0, async_op: bool = False, label: str | None = None) -> Any:
        """Give every rank what rank `src` has: arrays are written in place, other objects are returned as copies.

        The array may be of any dtype and layout, a memmap or another subclass, with the dtype and size that `src` has.
        A rank that passes no array (None, say) gets a new one. ValueError for a read-only array, except on `src`.
        """
        src = self._rank("src", src)
        is_source = self.rank == src
        if not is_source and isinstance(x, np.ndarray) and not x.flags.writeable:
            raise ValueError(
                "broadcast writes into x, but x is read-only: pass a copy, x.copy(), or None for a new array"
            )

        def work(channel: Channel) -> Any:
            contiguous = x.copy() if isinstance(x, np.ndarray) and not x.flags.c_contiguous else x
            result = collectives.broadcast_tree(channel, contiguous, src)
            if isinstance(x, np.ndarray) and result is not x:
                x[...] = result
                return x
            return result

        reads, writes = (x, None) if is_source else (None, x)
        return self._collective(work, Fingerprint("broadcast", root=src, label=label), async_op, reads, writes)

    def reduce(self, x: Any, dst: int = 0, op: str = "sum", async_op: bool = False, label: str | None = None) -> Any:
        """Combine x over all ranks; rank `dst` gets the result, in place, and returns it; the others return None.

        Numbers as for `all_reduce`.
        """
        dst = self._rank("dst", dst)
        operand = Operand(x, op, "reduce", self.size, is_written=self.rank == dst)

        def work(channel: Channel) -> Any:
            total = collectives.reduce_tree(channel, operand.flat, dst, op)
            return None if total is None else operand.result(total, self.size)

        reads, writes = (None, x) if self.rank == dst else (x, None)
        return self._collective(work, operand.fingerprint("reduce", root=dst, label=label), async_op, reads, writes)

    def gather(self, x: Any, dst: int = 0, async_op: bool = False, label: str | None = None) -> Any:
        """Rank `dst` gets the list of what every rank has, which may differ in shape; the others get None."""
        dst = self._rank("dst", dst)
        return self._collective(
            lambda channel: collectives.gather(channel, x, dst),
            Fingerprint("gather", root=dst, label=label),
            async_op,
            reads=x,
        )

    def scatter(self, x: Any, src: int = 0, async_op: bool = False, label: str | None = None) -> Any:
        """Rank `src` has a list of one item for each rank; every rank gets its own. The others pass None."""
        src = self._rank("src", src)
        if self.rank == src:
            self._check_items("scatter", x)
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
        algorithm: str = "auto",
        async_op: bool = False,
        label: str | None = None,
        **options: Any,
    ) -> Any:
        """Combine x over all ranks; every rank gets the same bits. Arrays in place; of a scalar, the new value.

        Parameters
            x           numbers, of the same shape and dtype on all ranks
            op          "sum", "mean", "max", "min" or "prod"
            algorithm   "ring", "tree", "recursive_doubling", "rabenseifner", "parameter_server", "pipelined_chain"
                        (option `segments`), "hierarchical" (option `per_group`), "ordered" (in rank order, like a loop
                        on one node), or "auto": the engine's own way if it has one, else the cheapest by the cost model

        A named algorithm gives the same bits on every engine. "auto" does not promise that, because engines choose
        differently, and floating-point sums depend on the order.

        Arrays keep their dtype: the sum of int64 wraps around as numpy's does, the sum of True and False is `or`. The
        mean of float16 is computed and sent in float32. A single whole number is reduced exactly or raises
        OverflowError: its sum if the same number on all ranks would not fit in 64 bits. Its mean is a float, and the
        sum of True and False is a count.

        Errors: ValueError for an unknown op or algorithm and for a read-only array; TypeError for no number, for
        a masked array, and for the mean of an array of integers.
        """
        operand = Operand(x, op, "all_reduce", self.size, is_written=True)
        check_algorithm(algorithm, collectives.ALL_REDUCE, options)

        def work(channel: Channel) -> Any:
            flat, endpoint = operand.flat, self._owner.endpoint
            if algorithm != "auto":
                collectives.ALL_REDUCE[algorithm](channel, flat, op, **options)
            elif not endpoint.native_all_reduce(flat, op, self._ranks, channel.tag, channel.recorder):
                best, settings = self._best_all_reduce(flat.nbytes, flat.itemsize)
                collectives.ALL_REDUCE[best](channel, flat, op, **settings)
            return operand.result(flat, self.size)

        how = f"{algorithm}({', '.join(f'{k}={v}' for k, v in sorted(options.items()))})" if options else algorithm
        fingerprint = operand.fingerprint("all_reduce", algorithm=how, label=label)
        return self._collective(work, fingerprint, async_op, writes=x)

    def all_gather(self, x: Any, async_op: bool = False, label: str | None = None) -> Any:
        """The list of what every rank has; the items may be any objects, and arrays may differ in shape."""
        return self._collective(
            lambda channel: collectives.all_gather_ring(channel, x),
            Fingerprint("all_gather", label=label),
            async_op,
            reads=x,
        )

    def reduce_scatter(self, x: Any, op: str = "sum", async_op: bool = False, label: str | None = None) -> Any:
        """Combine the array x over all ranks; each gets its chunk, `np.array_split(result, size)[rank]`, anew."""
        operand = Operand(x, op, "reduce_scatter", self.size)
        if operand.is_scalar or x.ndim == 0:
            what = type(x).__name__ if operand.is_scalar else "one without dimensions"
            raise TypeError(f"reduce_scatter takes an array, not {what}: there is nothing to split")

        def work(channel: Channel) -> Any:
            chunk = collectives.reduce_scatter_ring(channel, operand.contiguous, op)
            return operand.mean_of(chunk, self.size)

        return self._collective(work, operand.fingerprint("reduce_scatter", label=label), async_op, reads=x)

    def all_to_all(self, x: Sequence[Any], async_op: bool = False, label: str | None = None) -> Any:
        """Item i of the list x goes to rank i; returns the list of what came, item i from rank i."""
        self._check_items("all_to_all", x)
        return self._collective(
            lambda channel: collectives.all_to_all_pairwise(channel, x),
            Fingerprint("all_to_all", label=label),
            async_op,
            reads=x,
        )

    def barrier(self, async_op: bool = False, label: str | None = None) -> Any:
        """Return when every rank has called this."""
        return self._collective(collectives.barrier_dissemination, Fingerprint("barrier", label=label), async_op)

    # Groups

    @overload
    def split(self, color: int, key: int = 0) -> Communicator: ...

    @overload
    def split(self, color: None, key: int = 0) -> None: ...

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """A communicator of the ranks that gave the same color, numbered from 0 by key, then by rank here.

        Every rank calls it; one that gives the color None gets None. As MPI's Comm_split.
        """
        given = self._collective(
            lambda channel: collectives.all_gather_ring(channel, (color, key, self._owner.next_group)),
            Fingerprint("split"),
        )
        colors = sorted({other for other, _, _ in given if other is not None})
        first = max(free for _, _, free in given)
        self._owner.next_group = first + len(colors)  # hence no two groups with a common rank have the same number
        if color is None:
            return None
        members = sorted((k, rank) for rank, (other, k, _) in enumerate(given) if other == color)
        ranks = tuple(self._ranks[rank] for _, rank in members)
        return Communicator(self._owner, ranks, first + colors.index(color), self.rng)

    def mesh(self, shape: Sequence[int], names: Sequence[str]) -> Mesh[Communicator]:
        """The ranks as a grid, with a communicator along each axis: `comm.mesh((2, 4), ("dp", "tp"))["tp"]`."""
        return Mesh(self, shape, names)

    def shared_array(
        self, name: str, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32
    ) -> npt.NDArray[Any]:
        """The array of that name, the same memory on all ranks of this communicator; zeros at first.

        Nothing orders the reads and writes of different ranks. Needs ranks that can share memory: not MPI on several
        machines.
        """
        whole_shape = (shape,) if isinstance(shape, int) else tuple(shape)
        return self._owner.endpoint.shared_array(f"{self._group}/{self._ranks[0]}/{name}", whole_shape, np.dtype(dtype))

    # Concurrently with the program

    def background(self, work: Callable[[Communicator], Any]) -> Work:
        """Run `work(comm)` while the program goes on; `wait()` on the Work that is returned gives what it returned.

        So a rank can answer messages while it computes. Unlike a collective, each rank starts work whenever it likes.
        The work's `comm` has the ranks and the messages of this communicator. Collectives of this communicator belong
        to the work until it has ended: take one of its own, `comm.split(0)`. Work runs in a thread, in a simulation in
        a task of the same rank, several in the order in which they were started; its messages are recorded in a lane
        of their own, and planned faults do not reach it. What it raises, `wait()` raises.

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
        owner.enter("background")
        lane, number = owner.lane_of(self._group), owner.recorder.call
        recorder = owner.recorder.lane(lane)
        if self._inside is None:
            rank = Rank(owner.endpoint, recorder, None, owner.in_flight)
            self._inside = Communicator(rank, self._ranks, self._group, self.rng)
            self._inside._calls = self._calls
        inside = self._inside

        def run_work() -> Any:
            recorder.begin("background", number)
            result = work(inside)
            recorder.leave()
            return result

        pending = owner.endpoint.start(run_work, lane)
        owner.leave()
        return Work(owner, "background", pending, self._finish_beside)

    # Below the surface

    def _collective(
        self,
        work: Callable[[Channel], Any],
        fingerprint: Fingerprint,
        async_op: bool = False,
        reads: Any = None,
        writes: Any = None,
    ) -> Any:
        """Do a collective's work under its number and name: here, or beside the program."""
        owner, operation = self._owner, fingerprint.operation
        if owner.in_flight.uses:
            owner.in_flight.check(operation, reads, writes)
        owner.enter(operation)
        call, site = next(self._calls), call_site()
        owner.endpoint.post_fingerprint(self._group, self._ranks, call, fingerprint._replace(site=site))
        tag = self._whole_tag(call, is_collective=True)
        if not async_op:
            result = work(Channel(owner, owner.recorder, self._ranks, self.rank, tag))
            owner.leave()
            return result
        lane, number = owner.lane_of(self._group), owner.recorder.call
        recorder = owner.recorder.lane(lane)

        def beside() -> Any:
            recorder.begin(operation, number)
            result = work(Channel(owner, recorder, self._ranks, self.rank, tag))
            recorder.leave()
            return result

        pending = owner.endpoint.start(beside, lane)
        owner.in_flight.begin(pending, operation, site.place, reads, writes)
        owner.leave()
        return Work(owner, operation, pending, self._finish_beside)

    def _finish_beside(self, pending: Pending) -> None:
        self._owner.endpoint.wait(pending)
        self._owner.recorder.waited()

    def _best_all_reduce(self, nbytes: int, itemsize: int) -> tuple[str, dict[str, int]]:
        """What "auto" means here: the algorithm that the cost model finds the fastest, and its options."""
        network = self.network
        if network is not None and network.topology is not None:
            return tree_cost.best_all_reduce(network, self._ranks, nbytes, itemsize)
        return cost.best_all_reduce(self.size, nbytes, network, itemsize), {}

    def _check_items(self, operation: str, items: Any) -> None:
        if not hasattr(items, "__len__") or len(items) != self.size:
            got = f"{len(items)} items" if hasattr(items, "__len__") else type(items).__name__
            raise ValueError(f"{operation} takes a list of {self.size} items, one for each rank, got {got}")


def world(endpoint: Endpoint, recorder: Recorder, seed: int, faults: RankFaults | None) -> Communicator:
    """The communicator of all ranks, which an engine hands to the program."""
    rng = random.stream(random.Purpose.PROGRAM, seed, endpoint.rank)
    random.use(rng)
    return Communicator(Rank(endpoint, recorder, faults), tuple(range(endpoint.size)), 0, rng)
