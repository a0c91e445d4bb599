"""Planned faults: which rank dies, stops, slows down, or loses or corrupts messages, and in which call.

The same plan gives the same faults in every engine and in every run. The trace shows those that took effect.

The engine passes `plan.of(endpoint, recorder.fault, sleeps=...)` to the communicator, which calls, in this order, for
every communicator call of the program:

    faults.computed()
    recorder.enter(operation)
    faults.begin(operation, recorder.call)
    payload = faults.message(payload, dst, recorder.call)    for each message; DROPPED: not posted, but counts as sent
    recorder.leave()
    faults.end()

A block of `comm.until` calls `faults.computed(until=...)` whenever it checks for the message that ends it.
"""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from minidl.arguments import one_of, real_number, whole_number
from minidl.random import Purpose, stream

At = int | str | tuple[str, int] | tuple[str, float]

OPERATIONS = (
    *("send", "recv", "sendrecv", "isend", "irecv", "broadcast", "reduce", "gather", "scatter", "all_reduce"),
    *("all_gather", "reduce_scatter", "all_to_all", "barrier", "split", "mesh"),
)

DROPPED = object()  # in place of a message that is lost


class Target(Protocol):
    """The methods of a rank's endpoint that faults call."""

    rank: int

    def now(self) -> float: ...

    def charge(self, *, seconds: float = ..., until: Any = ...) -> None: ...

    def die(self) -> None: ...

    def freeze(self) -> None: ...


@dataclass(frozen=True)
class Fault:
    """A fault on `rank` in call `at`: `kind` is "kill", "stop", "drop" or "corrupt".

    dst   drop or corrupt only messages to this rank; None: to any
    """

    kind: str
    rank: int
    at: At
    dst: int | None = None

    def __str__(self) -> str:
        to = "" if self.dst is None else f" to rank {self.dst}"
        return f"{self.kind}{to}"


@dataclass(frozen=True)
class FaultPlan:
    """The faults of a run: `launch(..., faults=FaultPlan(seed=1).kill(2, at="all_reduce"))`.

    Each method returns a plan with one more fault. `at` is the communicator call of the rank in which it happens:

        "all_reduce"        its first all_reduce
        ("all_reduce", 3)   its third all_reduce
        3                   its third call of any kind
        ("seconds", 2.5)    its first call that begins 2.5 s after the launch, or later

    >>> plan = FaultPlan(seed=1).kill(2, at=("all_reduce", 3)).slow(0, 2.5)
    >>> plan.slowdown(0), plan.slowdown(1)
    (2.5, 1.0)
    """

    seed: int = 0
    faults: tuple[Fault, ...] = ()
    slowdowns: tuple[tuple[int, float], ...] = ()

    def kill(self, rank: int, at: At) -> FaultPlan:
        """Kill the rank in that call, as a crash would."""
        return self._and(Fault("kill", _rank(rank), _at(at)))

    def stop(self, rank: int, at: At) -> FaultPlan:
        """Stop the rank for good in that call without ending it; the other ranks notice by their timeout."""
        return self._and(Fault("stop", _rank(rank), _at(at)))

    def slow(self, rank: int, factor: float) -> FaultPlan:
        """Make everything that the rank computes take `factor` times as long."""
        factor = real_number("factor", factor, at_least=1, hint="a rank can be slowed down, not sped up")
        return replace(self, slowdowns=(*self.slowdowns, (_rank(rank), factor)))

    def drop(self, rank: int, at: At, dst: int | None = None) -> FaultPlan:
        """Lose the messages that the rank sends in that call; with `dst`, only those to that rank."""
        return self._and(Fault("drop", _rank(rank), _at(at), None if dst is None else _rank(dst)))

    def corrupt(self, rank: int, at: At, dst: int | None = None) -> FaultPlan:
        """Flip one bit in each message that the rank sends in that call; with `dst`, only in those to that rank."""
        return self._and(Fault("corrupt", _rank(rank), _at(at), None if dst is None else _rank(dst)))

    @property
    def spoils_messages(self) -> bool:
        """Whether messages are lost or corrupted; then all ranks must build their collectives from messages."""
        return any(fault.kind in ("drop", "corrupt") for fault in self.faults)

    def of_ranks(self, ranks: Sequence[int]) -> FaultPlan:
        """Return the plan of these ranks alone, which are numbered anew, in this order.

        >>> FaultPlan().kill(0, at=1).kill(2, at=5).of_ranks([1, 2]).faults
        (Fault(kind='kill', rank=1, at=5, dst=None),)
        """
        new = {rank: number for number, rank in enumerate(ranks)}
        faults = [
            replace(fault, rank=new[fault.rank], dst=None if fault.dst is None else new[fault.dst])
            for fault in self.faults
            if fault.rank in new and (fault.dst is None or fault.dst in new)
        ]
        slowdowns = [(new[rank], factor) for rank, factor in self.slowdowns if rank in new]
        return replace(self, faults=tuple(faults), slowdowns=tuple(slowdowns))

    def without(self, ranks: Collection[int]) -> FaultPlan:
        """Return the plan without the faults of these ranks; the others keep their numbers.

        >>> FaultPlan().kill(0, at=1).kill(2, at=5).without([0]).faults
        (Fault(kind='kill', rank=2, at=5, dst=None),)
        """
        faults = tuple(fault for fault in self.faults if fault.rank not in ranks)
        return replace(self, faults=faults, slowdowns=tuple(each for each in self.slowdowns if each[0] not in ranks))

    def slowdown(self, rank: int) -> float:
        """Return the factor by which the rank's computation is slowed down."""
        return float(np.prod([factor for slow, factor in self.slowdowns if slow == rank]))

    def check(self, nodes: int) -> None:
        """Raise ValueError if the plan names a rank that a run on `nodes` ranks does not have."""
        named = [f.rank for f in self.faults] + [f.dst for f in self.faults if f.dst is not None]
        for rank in [*named, *(rank for rank, _ in self.slowdowns)]:
            if rank >= nodes:
                raise ValueError(f"the fault plan names rank {rank}, but the run has ranks 0 to {nodes - 1}")

    def of(self, endpoint: Target, record: Callable[[str], None], *, sleeps: bool) -> RankFaults | None:
        """Return the faults planned for the rank of this endpoint, or None.

        Parameters
            endpoint   the endpoint of the rank
            record     called with a description of each fault that takes effect
            sleeps     True: a slow rank sleeps, on engines with a real clock; False: the engine itself multiplies its
                       computation by `slowdown(rank)`
        """
        mine = [fault for fault in self.faults if fault.rank == endpoint.rank]
        slowdown = self.slowdown(endpoint.rank)
        if not mine and slowdown == 1:
            return None
        return RankFaults(mine, slowdown if sleeps else 1.0, self.seed, endpoint, record)

    def _and(self, fault: Fault) -> FaultPlan:
        return replace(self, faults=(*self.faults, fault))


class RankFaults:
    """The faults of one rank; the communicator calls its methods, see the docstring of this module."""

    def __init__(
        self, faults: list[Fault], slowdown: float, seed: int, endpoint: Target, record: Callable[[str], None]
    ) -> None:
        self._faults = faults
        self._slowdown = slowdown
        self._seed = seed
        self._endpoint = endpoint
        self._record = record
        self._calls: dict[str, int] = {}  # made so far, by operation
        self._spoiled: dict[int, list[Fault]] = {}  # drops and corruptions, by call
        self._messages = 0
        self._computing_since = endpoint.now()

    def computed(self, until: object = None) -> None:
        """Charge the extra time of a slow rank for computation since its last call, at most until `until` is done."""
        if self._slowdown > 1:
            seconds = self._endpoint.now() - self._computing_since
            self._endpoint.charge(seconds=(self._slowdown - 1) * seconds, until=until)
            self._computing_since = self._endpoint.now()

    def begin(self, operation: str, call: int) -> None:
        """Begin the rank's `call`-th communicator call; a kill or a stop does not return."""
        count = self._calls[operation] = self._calls.get(operation, 0) + 1
        now = ("seconds", self._endpoint.now())
        for fault in list(self._faults):
            if isinstance(fault.at, tuple) and fault.at[0] == "seconds":
                if fault.at > now:
                    continue
                self._faults.remove(fault)  # it takes effect once
            elif fault.at not in (call, (operation, count)):
                continue
            if fault.kind in ("kill", "stop"):
                self._record(f"{fault} in {operation} (call {call})")
                if fault.kind == "kill":
                    self._endpoint.die()
                self._endpoint.freeze()
            self._spoiled.setdefault(call, []).append(fault)

    def message(self, payload: Any, dst: int, call: int) -> Any:
        """Return the payload of a message of that call to world rank `dst`: unchanged, a corrupt copy, or DROPPED."""
        for fault in self._spoiled.get(call, ()):
            if fault.dst not in (None, dst):
                continue
            self._record(f"{fault.kind} a message to rank {dst} (call {call})")
            if fault.kind == "drop":
                return DROPPED
            self._messages += 1
            rng = stream(Purpose.FAULT, self._seed, fault.rank, call, self._messages)
            payload = _with_a_bit_flipped(payload, rng)
        return payload

    def end(self) -> None:
        """End the call; from here on the rank computes."""
        self._computing_since = self._endpoint.now()


def _with_a_bit_flipped(payload: Any, rng: np.random.Generator) -> Any:
    """Return a copy of the payload with one bit flipped: in one of its arrays, or in the number that it is."""
    if isinstance(payload, (bool, np.bool_)):
        return not payload
    if isinstance(payload, int) and abs(payload) >= 1 << 63:
        return payload ^ 1
    if isinstance(payload, (int, float, complex, np.generic)):
        number = np.array(payload)
        flipped = _with_a_bit_flipped(number, rng)
        return flipped[()] if isinstance(payload, np.generic) else flipped.item()
    buffers: list[pickle.PickleBuffer] = []
    contiguous = payload.copy(order="C") if isinstance(payload, np.ndarray) else payload
    pickled = pickle.dumps(contiguous, 5, buffer_callback=buffers.append)
    copies = [bytearray(buffer.raw()) for buffer in buffers]
    ends = np.cumsum([len(copy) for copy in copies])
    if not copies or not ends[-1]:
        return payload
    place = int(rng.integers(ends[-1]))
    index = int(np.searchsorted(ends, place, side="right"))
    copies[index][place - int(ends[index])] ^= 1 << int(rng.integers(8))
    return pickle.loads(pickled, buffers=copies)


def _rank(rank: int) -> int:
    return whole_number("rank", rank, at_least=0)


def _at(at: At) -> At:
    if isinstance(at, tuple) and len(at) == 2 and at[0] == "seconds":
        return "seconds", real_number("at: seconds", at[1], at_least=0)
    number: Any
    if isinstance(at, tuple) and len(at) == 2 and isinstance(at[0], str):
        name, number = at
    else:
        name, number = (at, 1) if isinstance(at, str) else ("", at)
    try:
        is_possible = operator.index(number) >= 1
    except TypeError:
        is_possible = False
    if not is_possible:
        raise ValueError(
            f"at must be an operation, an operation and a number from 1, a call from 1, or ('seconds', s), got {at!r}"
        )
    if name:
        one_of("at", name, OPERATIONS)
    return (name, operator.index(number)) if name else operator.index(number)
