"""The communicator: the object by which the program of a rank sends, receives and calls collectives."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache, partial
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from minidl import random
from minidl.arguments import whole_number
from minidl.cluster import collectives
from minidl.cluster.algorithm import chosen
from minidl.cluster.call_log import CallLog
from minidl.cluster.call_site import call_site
from minidl.cluster.channel import Channel
from minidl.cluster.cost.formulas import fastest_all_reduce
from minidl.cluster.cost.memory import Memory
from minidl.cluster.cost.network import Network
from minidl.cluster.device import Device, DeviceError
from minidl.cluster.diagnosis.errors import CollectiveMismatch
from minidl.cluster.diagnosis.fingerprints import SAME, Fingerprint
from minidl.cluster.engines.protocol import Endpoint, Pending
from minidl.cluster.faults import RankFaults
from minidl.cluster.group import ANY, RankGroup, divided
from minidl.cluster.mesh import Mesh
from minidl.cluster.missing_attributes import add_hints
from minidl.cluster.operands import Operand, check_items
from minidl.cluster.rank import Rank
from minidl.cluster.trace.recorder import Recorder
from minidl.cluster.trace.recording import Shares
from minidl.cluster.work import Until, Work
from minidl.from_pytorch import without_missing


class Communicator:
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
        self,
        owner: Rank,
        group: RankGroup,
        rng: np.random.Generator,
        axis: str = "",
        calls: CallLog | None = None,
        whole: Communicator | None = None,
    ) -> None:
        self.rank = group.rank
        self.size = group.size
        self.rng = rng
        self.axis = axis
        self.last_source = ANY
        self._owner = owner
        self._group = group
        self._channel = Channel(owner, owner.recorder, group.ranks, group.rank, group.first_tag)
        self._calls = calls or CallLog(owner, group)
        self._whole = whole  # the communicator of which this one has the first ranks
        self._first_ranks: dict[int, Communicator] = {}  # by their number
        self._inside: Communicator | None = None  # the communicator that background work uses

    def __repr__(self) -> str:
        return f"<Communicator: rank {self.rank} of {self.size}>"

    def __dir__(self) -> list[str]:
        return without_missing(super().__dir__(), Communicator)

    # Messages

    def send(self, x: Any, dst: int, tag: int = 0) -> None:
        """Send x to rank `dst`; messages with the same tag arrive in the order in which they were sent."""
        owner = self._owner
        to, whole_tag = self._group.destination(dst, tag)
        owner.enter("send", self.axis, x)
        pending = self._channel.post_send(x, to, whole_tag, False)
        if not pending.done:
            self._channel.finish_send(pending)
        owner.leave()

    def recv(self, src: int | Collection[int], tag: int = 0, out: npt.NDArray[Any] | None = None) -> Any:
        """Receive the next message with this tag and return its array or object; `comm.last_source` is its sender.

        Parameters
            src   a rank; `cluster.ANY` for any rank; or a collection, for any of its ranks. A receive from a collection
                  raises once all its ranks have failed, so a server that waits for some clients cannot wait forever.
            tag   0 to 2**32 - 1, the same as the sender's
            out   None, or a contiguous array with the message's dtype and size: it is filled and returned
        """
        owner = self._owner
        source, whole_tag = self._group.source(src, tag)
        owner.enter("recv", self.axis, None, out)
        payload = self._received(owner.endpoint.post_receive(source, whole_tag, out))
        owner.leave()
        return payload

    def sendrecv(self, x: Any, dst: int, src: int, tag: int = 0, out: npt.NDArray[Any] | None = None) -> Any:
        """Send x to `dst` and receive from `src` at the same time; a ring of these calls cannot deadlock."""
        owner, channel = self._owner, self._channel
        to, whole_tag = self._group.destination(dst, tag)
        source, _ = self._group.source(src, tag)
        owner.enter("sendrecv", self.axis, x, out)
        receive = owner.endpoint.post_receive(source, whole_tag, out)
        send = channel.post_send(x, to, whole_tag, False)
        payload = self._received(receive)
        channel.finish_send(send)
        owner.leave()
        return payload

    def isend(self, x: Any, dst: int, tag: int = 0) -> Work:
        """Start to send, and return a Work to `wait()` on; x is copied, so it may be changed at once."""
        owner = self._owner
        to, whole_tag = self._group.destination(dst, tag)
        owner.enter("isend", self.axis, x)
        pending = self._channel.post_send(x, to, whole_tag, False)
        owner.leave()
        return Work(owner, "isend", pending, self._channel.finish_send, self.axis)

    def irecv(self, src: int, tag: int = 0, out: npt.NDArray[Any] | None = None) -> Work:
        """Start to receive, and return a Work: its `wait()` returns the message. Until then `out` is in flight."""
        owner = self._owner
        source, whole_tag = self._group.source(src, tag)
        owner.enter("irecv", self.axis, None, out)
        pending = owner.endpoint.post_receive(source, whole_tag, out)
        if out is not None:
            owner.in_flight.begin(pending, "irecv", call_site().place, None, out)
        owner.leave()
        return Work(owner, "irecv", pending, self._received, self.axis)

    def _received(self, pending: Pending) -> Any:
        """Wait for a message and return it."""
        owner = self._owner
        owner.endpoint.wait(pending)
        owner.recorder.received(pending.nbytes, pending.source, pending.posted, pending.peer_posted)
        self.last_source = self._group.number_of[pending.source]
        return pending.payload

    # One to all, all to one

    def broadcast(self, x: Any, src: int = 0, *, async_op: bool = False, label: str | None = None) -> Any:
        """Send x from rank `src` to all ranks: arrays are written in place, other objects are returned as copies.

        The array may have any layout and be a memmap or another subclass; dtype and size must equal those on `src`.
        A rank that passes no array (None, say) gets a new one. ValueError for a read-only array, except on `src`;
        CollectiveMismatch for another dtype or size than on `src`.
        """
        src = self._group.checked("src", src)
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
                    rank=self._group.ranks[self.rank],
                ) from error
            if isinstance(x, np.ndarray) and result is not x:
                x[...] = result
                return x
            return result

        reads, writes = (x, None) if is_source else (None, x)
        fingerprint = Fingerprint("broadcast", root=src, label=label)
        return self._calls.run(work, fingerprint, self.axis, async_op, reads, writes)

    def reduce(self, x: Any, dst: int = 0, op: str = "sum", *, async_op: bool = False, label: str | None = None) -> Any:
        """Combine x over all ranks: rank `dst` gets the result in place and returns it, the others return None.

        x and op are as in `all_reduce`.
        """
        dst = self._group.checked("dst", dst)
        operand = Operand(x, op, "reduce", self.size, is_written=self.rank == dst)

        def work(channel: Channel) -> Any:
            total = collectives.reduce_tree(channel, operand.flat, dst, op)
            return None if total is None else operand.result(total, self.size)

        reads, writes = (None, x) if self.rank == dst else (x, None)
        fingerprint = operand.fingerprint("reduce", root=dst, label=label)
        return self._calls.run(work, fingerprint, self.axis, async_op, reads, writes)

    def gather(self, x: Any, dst: int = 0, *, async_op: bool = False, label: str | None = None) -> Any:
        """Rank `dst` returns the list of every rank's x, which may differ in shape; the others return None."""
        dst = self._group.checked("dst", dst)
        fingerprint = Fingerprint("gather", root=dst, label=label)
        return self._calls.run(
            lambda channel: collectives.gather(channel, x, dst), fingerprint, self.axis, async_op, reads=x
        )

    def scatter(self, x: Any, src: int = 0, *, async_op: bool = False, label: str | None = None) -> Any:
        """Rank `src` passes a list with one item for each rank, the others None; every rank returns its item."""
        src = self._group.checked("src", src)
        if self.rank == src:
            check_items("scatter", x, self.size)
        fingerprint = Fingerprint("scatter", root=src, label=label)
        return self._calls.run(
            lambda channel: collectives.scatter(channel, x, src), fingerprint, self.axis, async_op, reads=x
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
                            does not take (comm, x, op) and the options, or that returns another array
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
            elif not endpoint.native_all_reduce(flat, op, self._group.ranks, channel.tag, channel.recorder):
                best, settings = fastest_all_reduce(self.network, self._group.ranks, flat.nbytes, flat.itemsize)
                channel.play(collectives.ALL_REDUCE[best], flat, op, **settings)
            return operand.result(flat, self.size)

        fingerprint = operand.fingerprint("all_reduce", algorithm=how.name, label=label)
        return self._calls.run(work, fingerprint, self.axis, async_op, writes=x)

    def all_gather(self, x: Any, *, async_op: bool = False, label: str | None = None) -> Any:
        """Return the list of every rank's x: any objects; arrays may differ in shape."""
        fingerprint = Fingerprint("all_gather", label=label)
        return self._calls.run(
            lambda channel: channel.play(collectives.all_gather_ring, x), fingerprint, self.axis, async_op, reads=x
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

        return self._calls.run(work, operand.fingerprint("reduce_scatter", label=label), self.axis, async_op, reads=x)

    def all_to_all(self, x: Sequence[Any], *, async_op: bool = False, label: str | None = None) -> Any:
        """Send item i of the list x to rank i; return the list of received items, item i from rank i."""
        check_items("all_to_all", x, self.size)
        fingerprint = Fingerprint("all_to_all", label=label)
        return self._calls.run(
            lambda channel: channel.play(collectives.all_to_all_pairwise, x), fingerprint, self.axis, async_op, reads=x
        )

    def barrier(self, *, async_op: bool = False, label: str | None = None) -> Any:
        """Return once every rank has called it. It does not complete earlier operations with `async_op=True`."""
        fingerprint = Fingerprint("barrier", label=label)
        return self._calls.run(
            lambda channel: channel.play(collectives.barrier_dissemination), fingerprint, self.axis, async_op
        )

    def check_same(self, what: str, digest: str) -> None:
        """Raise CollectiveMismatch unless all ranks pass the same digest. No message is sent, and nobody waits.

        The last rank to call compares. Under MPI this needs `cluster.MPI(debug=True)`, as for all collectives.
        what: names it in the error: "rank 2 and ranks 0 and 1 have different {what}"
        """
        self._calls.post(Fingerprint(f"{SAME}{what}", label=digest), call_site())

    # Communicators of some of the ranks

    @overload
    def split(self, color: int, key: int = 0) -> Communicator: ...

    @overload
    def split(self, color: None, key: int = 0) -> None: ...

    def split(self, color: Any, key: int = 0) -> Communicator | None:
        """Return a communicator of the ranks with the same color, numbered from 0 by key, then by rank here.

        Every rank calls it, as MPI's Comm_split; one with the color None gets None.
        """
        if isinstance(color, Collection) and not isinstance(color, str):
            raise TypeError(
                f"split: color is one number, equal on the ranks of a group, not a {type(color).__name__}: for a list "
                "of ranks, type comm.split(0 if comm.rank in ranks else None)"
            )
        mine = color, key, self._owner.next_group("split")
        given = self._calls.run(
            lambda channel: channel.play(collectives.all_gather_ring, mine), Fingerprint("split"), self.axis
        )
        groups, first = divided(self._group.ranks, tuple(given))
        numbers = self._owner.take_groups(first, len(groups))
        if color is None:
            return None
        number = numbers[list(groups).index(color)]
        return self._of(groups[color], number, self.axis)

    def mesh(self, shape: Sequence[int], names: Sequence[str]) -> Mesh[Communicator]:
        """Arrange the ranks as a grid with a communicator along each axis: `comm.mesh((2, 4), ("dp", "tp"))["tp"]`."""
        return Mesh(self, shape, names)

    def _groups_of(self, mesh: Mesh[Communicator]) -> Callable[[tuple[str, ...]], Communicator]:
        """Agree with the other ranks on a mesh; the returned function makes the group of this rank along some axes.

        Groups along the same axes have no rank in common, so each selection of axes needs only one number. The first
        number must be free on all ranks, which the ranks have to agree on, because they may have made different numbers
        of groups. If only one axis has several ranks, the group along it is this communicator, and in all others this
        rank is alone: it chooses their numbers by itself.
        """
        fingerprint = Fingerprint("mesh", shape=mesh.shape, axes=mesh.names)
        first = self._owner.next_group("mesh")
        if sum(extent > 1 for extent in mesh.shape) > 1:
            free = np.array([first])
            tree = collectives.ALL_REDUCE["tree"]
            self._calls.run(lambda channel: channel.play(tree, free, "max"), fingerprint, self.axis)
            first = int(free[0])
        else:
            self._calls.post(fingerprint, call_site())
        return partial(self._group_along, mesh, self._owner.take_groups(first, 1 << len(mesh.names)))

    def _group_along(self, mesh: Mesh[Communicator], numbers: range, axes: tuple[str, ...]) -> Communicator:
        selection = sum(1 << mesh.names.index(name) for name in axes)
        along = mesh.ranks_along(axes)
        if len(along) == self.size:
            named = copy.copy(self)  # another object for the same group; both number its calls together
            named.axis = _name(mesh, axes)
            return named
        ranks = tuple(self._group.ranks[rank] for rank in along)
        return self._of(ranks, numbers[selection], _name(mesh, axes))

    def first_ranks(self, count: int) -> Communicator:
        """Return the communicator of ranks 0 to count - 1, without a message; the other ranks do not call it.

        Repeated calls return the same communicator. If `count` is the size, that is this communicator itself. A run
        whose last ranks are servers uses it for its nodes.
        """
        hint = f"rank {self.rank} is to be one of the first ranks of this communicator, which has {self.size}"
        count = whole_number("count", count, at_least=self.rank + 1, at_most=self.size, hint=hint)
        self._owner.next_group("first_ranks")  # raises an error in background work
        whole = self._whole or self
        if count == whole.size:
            return whole
        if count not in whole._first_ranks:
            group = whole._group
            whole._first_ranks[count] = self._of(group.ranks[:count], group.number + count, whole=whole)
        return whole._first_ranks[count]

    def _of(
        self, ranks: tuple[int, ...], number: int, axis: str = "", whole: Communicator | None = None
    ) -> Communicator:
        """Return a communicator of these world ranks, this one included, whose group has that number."""
        group = RankGroup(ranks, number, self._owner.endpoint.rank)
        return Communicator(self._owner, group, self.rng, axis, whole=whole)

    def world_rank(self, rank: int) -> int:
        """Return the number in the whole run of this communicator's rank `rank`."""
        return self._group.ranks[self._group.checked("rank", rank)]

    # Work and time

    def compute(self, flops: float = 0.0, seconds: float = 0.0, nbytes: float = 0.0, label: str = "") -> None:
        """Charge `seconds`, plus the time that this node needs for the flops or for the bytes, whichever is longer.

        Parameters
            flops     floating-point operations
            seconds   time that does not depend on the node
            nbytes    bytes read and written
            label     label of this computation in the trace

        In a simulation the virtual clock advances, by the speed of its `cluster.Node`. On real engines the rank sleeps
        for as long as a node of 10 GFLOP/s and 10 GB/s would take.
        """
        if not (0 <= flops < math.inf and 0 <= seconds < math.inf and 0 <= nbytes < math.inf):
            work = f"flops={flops}, seconds={seconds}, nbytes={nbytes}"
            raise ValueError(f"work must be finite and at least 0, got {work}")
        owner, recorder = self._owner, self._owner.recorder
        owner.settle()
        recorder.worked("")
        try:
            owner.charge(float(seconds), float(flops), float(nbytes))  # the clock has double precision
        finally:
            recorder.worked(label)

    def until(self, work: Work) -> Until:
        """Return a block of computation that is left as soon as `work`, an `irecv` of this rank, is done.

            news = comm.irecv(0)
            with comm.until(news) as block:
                comm.compute(seconds=10)
            if block.interrupted:  # the message arrived before the 10 s were over
                ...

        The rest of the block is skipped. A simulation leaves it at the virtual time at which the message arrives, even
        in the middle of `compute` or of counted kernel arithmetic; the remaining work takes no virtual time. On
        processes and under MPI the rank leaves at its next check: once per millisecond in `compute`, at the beginning
        of every other communicator call, and in `block.look()`. `work.wait()` receives the message as always.

        Keep collectives out of the block: a rank that leaves before one does not call it, and the others block.

        Raises
            ValueError     `work` is not an `irecv`
            RuntimeError   the program is inside another such block
        """
        if work.pending.kind != "receive":
            raise ValueError(f"comm.until takes what irecv returns, got {work.pending}")
        return Until(self._owner, work.pending)

    def reduce_into(self, a: npt.NDArray[Any], b: npt.NDArray[Any], op: str = "sum") -> None:
        """Change a to `a op b`, element by element, and charge the time of a reduction."""
        self._channel.reduce_into(a, b, op)

    def now(self) -> float:
        """Seconds since the program began on all ranks."""
        self._owner.settle()
        return self._owner.endpoint.now()

    @property
    def network(self) -> Network | None:
        """The network model of a simulation or emulation; None if real messages are not slowed down."""
        return self._owner.endpoint.network

    @property
    def memory(self) -> Memory | None:
        """The two tiers of memory of a simulated node, None if it has one; without limit on real engines."""
        return self._owner.endpoint.memory

    @property
    def device(self) -> Device:
        """The device of this rank. Raises DeviceError in a simulation whose nodes have one tier of memory."""
        if self.memory is None:
            raise DeviceError(
                "the simulated nodes have one tier of memory, and no host to offload to: give "
                "cluster.Simulation(memory=cluster.Memory(device=2e9, link=(10e-6, 16e9))), here 2 GB behind a link of "
                "10 us and 16 GB/s"
            )
        return Device(self._owner)

    def mark(self, label: str) -> None:
        """Label the computation in the trace from here to the next mark, for example "forward"."""
        if self._owner.watch is not None:
            self._owner.watch("mark", label)
        if self._owner.until is not None:
            self._owner.settle()
        self._owner.recorder.mark(label)

    def watch(self, look: Callable[[str, str], None] | None) -> None:
        """From now on, call `look(kind, name)` at each mark and communicator call of this rank's program.

        kind: "mark", with its label as the name, before it takes effect; or "call", with the operation, such as
        "all_reduce", before it begins. None ends it.
        """
        self._owner.watch = look

    def shares(self) -> Shares:
        """Return the fractions of this rank's time so far that it computed, communicated and waited."""
        return self._owner.recorder.shares()

    @property
    def bytes_sent(self) -> int:
        """Bytes that this rank has sent so far."""
        return self._owner.recorder.bytes_sent

    def tell(self, obj: Any) -> None:
        """Pass an object to the `listener` of the launch during the run; without a listener nothing happens."""
        self._owner.endpoint.tell(obj)

    # Shared memory

    def shared_array(
        self, name: str, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32
    ) -> npt.NDArray[Any]:
        """Return the array called `name`: the same memory on all ranks of this communicator, zeros at first.

        Nothing orders the reads and writes of different ranks. The ranks must share a machine.
        """
        whole_shape = (shape,) if isinstance(shape, int) else tuple(shape)
        return self._owner.endpoint.shared_array(
            f"{self._group.number}/{self._group.ranks[0]}/{name}", whole_shape, np.dtype(dtype)
        )

    # Concurrently with the program

    def abandon(self) -> None:
        """Drop the results and errors of this rank's collectives in progress.

        A program calls it to return a result although another rank has failed. Otherwise an operation that nobody waits
        for would make this rank fail too.
        """
        self._owner.endpoint.abandon_helpers()
        for pending in list(self._owner.in_flight.uses):
            self._owner.in_flight.end(pending)

    def background(self, work: Callable[[Communicator], Any]) -> Work:
        """Run `work(comm)` concurrently with the program, for example to answer messages while the rank computes.

        Returns a Work: its `wait()` returns the result of `work`, or raises its exception.

        Each rank may start work at any time; it is not a collective. `work` gets a communicator with the ranks and
        messages of this one. Until it ends, collectives of this communicator belong to it, so give it a communicator
        of its own: `comm.split(0)`. It runs in a thread or, in a simulation, in a task of the same rank. Several run
        one by one, in the order in which they were started. The trace shows it in a lane of its own; planned faults do
        not affect it. Make the groups that it needs before you start it: `split` and `mesh` raise RuntimeError in
        `work`.

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
            rank = Rank(owner.endpoint, self._calls.lane(), None, owner)
            calls = CallLog(rank, self._group, self._calls.numbers)
            self._inside = Communicator(rank, self._group, self.rng, self.axis, calls)
        inside = self._inside
        begun = self._calls.start("background", self.axis, lambda _: work(inside))
        owner.leave()
        return begun


def _name(mesh: Mesh[Any], axes: tuple[str, ...]) -> str:
    """The axes with more than one rank, as the ledger names them: "dp,pp"."""
    return ",".join(name for name in axes if mesh.shape[mesh.names.index(name)] > 1)


add_hints(Communicator)


def world(endpoint: Endpoint, recorder: Recorder, seed: int, faults: RankFaults | None) -> Communicator:
    """Return the communicator of all ranks, which an engine passes to the program."""
    rng = random.stream(random.Purpose.PROGRAM, seed, endpoint.rank)
    random.use(rng)
    group = RankGroup(_everyone(endpoint.size), 0, endpoint.rank)
    return Communicator(Rank(endpoint, recorder, faults), group, rng)


@lru_cache(1)
def _everyone(size: int) -> tuple[int, ...]:
    """All ranks, as one tuple for all simulated ranks: thousands of tuples with thousands of ranks take gigabytes."""
    return tuple(range(size))
