"""Answers to `sparse_sum`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def sparse_sum(comm, indices, values, n):
    total = np.zeros(n, np.float32)
    total[indices] = values
    distance = 1
    while distance < comm.size:
        held = np.flatnonzero(total)
        message = pairs(held, total[held]) if 8 * len(held) < 4 * n else total
        partner = comm.rank ^ distance
        came = comm.sendrecv(message, partner, partner)
        if came.dtype == np.int32:
            more, those = unpacked(came)
            total[more] += those
        else:
            total = total + came
        distance *= 2
    return total
"""
SUM = "the sum, the same on all ranks"
PARTNERS = "one message to one partner in each of log2(p) rounds"
PAIRS = "8 bytes an entry: equal entries are added up before they are sent on"
SWITCH = "the whole vector as soon as it has no more bytes than pairs, and not before"
ALL = (SUM, PARTNERS, PAIRS, SWITCH)


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("sparse_sum", mistake, changed(RIGHT, *replacements), loses, says)


MUTANTS = [
    wrong(
        "never dense",
        (SWITCH,),
        "no fewer bytes than the whole vector",
        "pairs(held, total[held]) if 8 * len(held) < 4 * n else total",
        "pairs(held, total[held])",
    ),
    wrong(
        "always dense",
        (PAIRS, SWITCH),
        "pairs would be fewer bytes",
        "pairs(held, total[held]) if 8 * len(held) < 4 * n else total",
        "total",
    ),
    wrong(
        "dense only when full",
        (SWITCH,),
        "no fewer bytes than the whole vector",
        "8 * len(held) < 4 * n",
        "len(held) < n",
    ),
    wrong(
        "the switch by the rank's own entries",
        (SWITCH,),
        "no fewer bytes than the whole vector",
        "8 * len(held) < 4 * n",
        "8 * len(indices) < 4 * n",
    ),
    wrong(
        "overwritten",
        ALL,
        "overwritten instead of added",
        "total[more] += those",
        "total[more] = those",
    ),
    wrong(
        "only the own entries are sent on",
        ALL,
        "own entries were sent on",
        "held = np.flatnonzero(total)",
        "held = np.asarray(indices)",
        "total[held]",
        "np.asarray(values)",
    ),
    wrong(
        "gathered",
        (PARTNERS, PAIRS, SWITCH),
        "p - 1 times",
        "    distance = 1\n",
        "    for each in comm.all_gather(pairs(indices, values)):\n"
        "        if each is not None:\n"
        "            pass\n"
        "    total = np.zeros(n, np.float32)\n"
        "    for each in comm.all_gather(pairs(indices, values)):\n"
        "        more, those = unpacked(each)\n"
        "        total[more] += those\n"
        "    return total\n"
        "    distance = 1\n",
    ),
    wrong(
        "an all-reduce",
        (PARTNERS, PAIRS, SWITCH),
        "whole vectors",
        "    distance = 1\n",
        "    comm.all_reduce(total)\n    return total\n    distance = 1\n",
    ),
    wrong(
        "the farthest partner first",
        (PARTNERS, PAIRS, SWITCH),
        "the other order",
        "    distance = 1\n    while distance < comm.size:",
        "    distance = comm.size // 2\n    while distance >= 1:",
        "distance *= 2",
        "distance //= 2",
    ),
    wrong(
        "a round too few",
        ALL,
        "The first round alone was made",
        "while distance < comm.size:",
        "while distance < min(comm.size, 2):",
    ),
    wrong(
        "concatenated, so that equal entries stay",
        (PAIRS, SWITCH),
        "sent several times",
        "    total = np.zeros(n, np.float32)\n    total[indices] = values\n",
        "    total = np.zeros(n, np.float32)\n"
        "    total[indices] = values\n"
        "    have, what = np.asarray(indices), np.asarray(values)\n",
        "        held = np.flatnonzero(total)\n"
        "        message = pairs(held, total[held]) if 8 * len(held) < 4 * n else total\n",
        "        message = pairs(have, what) if 8 * len(have) < 4 * n else total\n",
        "            total[more] += those\n",
        "            total[more] += 0\n"
        "            np.add.at(total, more, those)\n"
        "            have, what = np.append(have, more), np.append(what, those)\n",
        "            total = total + came\n",
        "            total = total + came\n            have = np.arange(n)\n",
    ),
    wrong(
        "64-bit values",
        (PAIRS, SWITCH),
        "8 bytes",
        "message = pairs(held, total[held]) if 8 * len(held) < 4 * n else total",
        "message = np.stack([held, total[held].astype(np.float64).view(np.int64)]) if 8 * len(held) < 4 * n else total",
        "came.dtype == np.int32",
        "came.dtype == np.int64",
        "more, those = unpacked(came)",
        "more, those = came[0], came[1].view(np.float64)",
    ),
    wrong(
        "two messages a round",
        (PARTNERS, PAIRS, SWITCH),
        "two messages",
        "        came = comm.sendrecv(message, partner, partner)\n"
        "        if came.dtype == np.int32:\n"
        "            more, those = unpacked(came)\n"
        "            total[more] += those\n"
        "        else:\n"
        "            total = total + came\n",
        "        if 8 * len(held) < 4 * n or 1:\n"
        "            more = comm.sendrecv(held.astype(np.int32), partner, partner)\n"
        "            those = comm.sendrecv(total[held], partner, partner)\n"
        "            total[more] += those\n",
    ),
    wrong(
        "the mean",
        ALL,
        "the sum is wanted",
        "return total",
        "return total / np.float32(comm.size)",
    ),
    wrong(
        "in float64",
        ALL,
        "float64",
        "total = np.zeros(n, np.float32)",
        "total = np.zeros(n)",
    ),
    wrong(
        "entries also with as many bytes as the vector",
        (SWITCH,),
        "if 8 j < 4 n",
        "8 * len(held) < 4 * n",
        "8 * len(held) <= 4 * n",
    ),
    wrong(
        "half of an odd number, rounded down",
        (SWITCH,),
        "if 8 j < 4 n",
        "8 * len(held) < 4 * n",
        "len(held) < n // 2",
    ),
    wrong(
        "only positive numbers",
        ALL,
        "expected",
        "np.flatnonzero(total)",
        "np.flatnonzero(total > 0)",
    ),
]

ALTERNATIVES = [
    Alternative(
        "sparse_sum",
        "a dictionary of entries",
        """
def sparse_sum(comm, indices, values, n):
    entries = dict(zip(indices.tolist(), values))
    for i in range(comm.size.bit_length() - 1):
        if 2 * len(entries) < n:
            message = pairs(list(entries), list(entries.values()))
        else:
            message = np.zeros(n, np.float32)
            message[list(entries)] = list(entries.values())
        came = comm.sendrecv(message, comm.rank ^ 2**i, comm.rank ^ 2**i)
        if came.ndim == 1:
            more = [(j, x) for j, x in enumerate(came) if x]
        else:
            more = zip(*(each.tolist() for each in unpacked(came)))
        for j, x in more:
            entries[j] = np.float32(entries.get(j, 0) + np.float32(x))
    total = np.zeros(n, np.float32)
    total[list(entries)] = list(entries.values())
    return total
""",
    ),
    Alternative(
        "sparse_sum",
        "recursively, with isend and irecv",
        """
def sparse_sum(comm, indices, values, n):
    total = np.zeros(n, dtype="float32")
    np.add.at(total, indices, values)

    def from_round(total, distance):
        if distance >= comm.size:
            return total
        partner = comm.rank ^ distance
        where = np.nonzero(total)[0]
        message = total if len(where) * 2 >= n else pairs(where, total[where])
        sending, receiving = comm.isend(message, partner), comm.irecv(partner)
        came = receiving.wait()
        sending.wait()
        more = np.zeros(n, dtype="float32")
        if came.dtype == np.float32:
            more = came
        else:
            places, numbers = unpacked(came)
            more[places] = numbers
        return from_round(total + more, 2 * distance)

    return from_round(total, 1)
""",
    ),
]
