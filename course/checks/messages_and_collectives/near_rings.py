"""All-reduces that violate one condition of a ring, on one or two ranks, and rings without all ranks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minidl.cluster import Communicator


def one_chunk_in_two(comm: Communicator, x: np.ndarray) -> None:
    """A ring in which the last rank sends its first chunk in two messages."""
    last = comm.size - 1
    ring_of_messages(comm, x, lambda rank, step: 2 if (rank, step) == (last, 0) else 1)


def one_more_one_fewer(comm: Communicator, x: np.ndarray) -> None:
    """The same, and rank 1 does not send the last chunk if that is empty: as many messages in all as in a ring."""
    last = comm.size - 1

    def messages(rank: int, step: int) -> int:
        is_left_out = len(x) < comm.size and (rank, step) == (1, 2)
        return 0 if is_left_out else 2 if (rank, step) == (last, 0) else 1

    ring_of_messages(comm, x, messages)


def one_fewer(comm: Communicator, x: np.ndarray) -> None:
    """A ring in which rank 1 does not send the last chunk if that is empty."""
    ring_of_messages(comm, x, lambda rank, step: int(len(x) >= comm.size or (rank, step) != (1, 2)))


def ring_of_messages(comm: Communicator, x: np.ndarray, messages: Callable[[int, int], int]) -> None:
    """A ring in which rank r sends its chunk of a step in messages(r, step) messages; an empty chunk in 0, perhaps."""
    p, me = comm.size, comm.rank
    chunks = np.array_split(x, p)
    for step in range(2 * (p - 1)):
        parts = np.array_split(chunks[(me - step) % p], max(1, messages(me, step)))
        begun = [comm.isend(part, (me + 1) % p) for part in parts[: messages(me, step)]]
        came = [comm.recv((me - 1) % p) for _ in range(messages((me - 1) % p, step))]
        for work in begun:
            work.wait()
        place = chunks[(me - step - 1) % p]
        incoming = np.concatenate([np.zeros(0), *came])
        place[...] = place + incoming if step < p - 1 else incoming


def last_messages_swapped(comm: Communicator, x: np.ndarray) -> None:
    """A ring of four ranks or more, but in the last step ranks 1 and 3 send to each other's neighbours."""
    p, me = comm.size, comm.rank
    chunks = np.array_split(x, p)
    for step in range(2 * (p - 1)):
        is_last = p > 3 and step == 2 * (p - 1) - 1
        acts_for = {1: 3, 3: 1} if is_last else {}
        sender, left = acts_for.get(me, me), (me - 1) % p
        outgoing = chunks[(sender - step) % p]
        incoming = comm.sendrecv(outgoing, (sender + 1) % p, acts_for.get(left, left))
        place = chunks[(me - step - 1) % p]
        place[...] = place + incoming if step < p - 1 else incoming


def one_long_message(comm: Communicator, x: np.ndarray) -> None:
    """A ring in which the last rank puts two numbers more behind its first chunk."""
    p, me = comm.size, comm.rank
    chunks = np.array_split(x, p)
    for step in range(2 * (p - 1)):
        more = [0.0, 0.0] if (me, step) == (p - 1, 0) else []
        place = chunks[(me - step - 1) % p]
        incoming = comm.sendrecv(np.append(chunks[(me - step) % p], more), (me + 1) % p, (me - 1) % p)[: len(place)]
        place[...] = place + incoming if step < p - 1 else incoming


def two_rings(comm: Communicator, x: np.ndarray) -> None:
    """A chunk goes round in each half of the ranks, as often as in a ring of all: no rank gets the whole sum."""
    half, me = comm.size // 2, comm.rank
    first, size = (0, half) if me < half else (half, comm.size - half)
    passed_on(comm, x, to=first + (me - first + 1) % size, sources=[first + (me - first - 1) % size])


def one_behind_the_ring(comm: Communicator, x: np.ndarray) -> None:
    """Rank 0 sends to rank 1, which is in a ring with all the others, and gets nothing itself."""
    last, me = comm.size - 1, comm.rank
    passed_on(comm, x, to=me % last + 1, sources=[] if me == 0 else [0, last] if me == 1 else [me - 1])


def passed_on(comm: Communicator, x: np.ndarray, to: int, sources: list[int]) -> None:
    """In as many steps as a ring has: send a chunk to one rank and receive one from each source."""
    chunk = np.array_split(x, comm.size)[0]
    for _ in range(2 * (comm.size - 1)):
        work = comm.isend(chunk, to)
        for source in sources:
            chunk = comm.recv(source)
        work.wait()
