"""Answers to `gossip`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def gossip(comm, x, weights, steps):
    own = comm.rank
    others = [rank for rank in weights if rank != own]
    for _ in range(steps):
        sends = [comm.isend(x, rank) for rank in others]
        new = weights[own] * x
        for rank in others:
            new = new + weights[rank] * comm.recv(rank)
        for send in sends:
            send.wait()
        x = new
    return x
"""
ONCE = "one step: each machine's own average"
OFTEN = "several steps: the mean stays, and the distance to it shrinks by the consensus factor"
MESSAGES = "in each step one message of n words to each neighbour, and nothing else"
TOGETHER = "all machines send at the same time"
ALL = (ONCE, OFTEN, MESSAGES, TOGETHER)


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str, status: Status = Status.WRONG) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("gossip", mistake, changed(RIGHT, *replacements), loses, says, status)


MUTANTS = [
    wrong(
        "the machine's own number is missing",
        (ONCE, OFTEN, TOGETHER),
        "own number is missing",
        "weights[own] * x",
        "0 * x",
    ),
    wrong(
        "the plain mean with the neighbours",
        (ONCE, OFTEN, TOGETHER),
        "weights are not used",
        "new = weights[own] * x",
        "new = x / len(weights)",
        "weights[rank] * comm",
        "1 / len(weights) * comm",
    ),
    wrong(
        "sums", (ONCE, OFTEN, TOGETHER), "sums without weights", "weights[own] * x", "x", "weights[rank] * comm", "comm"
    ),
    wrong(
        "the numbers of the beginning in each step",
        (OFTEN,),
        "numbers of the beginning are sent",
        "        x = new\n",
        "",
        "    for _ in range(steps):",
        "    new = x\n    for _ in range(steps):",
        "weights[own] * x",
        "weights[own] * new",
        "return x",
        "return new",
    ),
    wrong(
        "one step too few",
        (ONCE, OFTEN, MESSAGES, TOGETHER),
        "numbers of the beginning",
        "range(steps)",
        "range(steps - 1)",
    ),
    wrong(
        "one step too many", (ONCE, OFTEN, MESSAGES, TOGETHER), "one step too many", "range(steps)", "range(steps + 1)"
    ),
    wrong(
        "messages in float32",
        (ONCE, OFTEN, MESSAGES, TOGETHER),
        "expected",
        "comm.isend(x, rank)",
        "comm.isend(x.astype(np.float32), rank)",
    ),
    wrong(
        "a message twice",
        (MESSAGES, TOGETHER),
        "one message to each neighbour",
        "for rank in others]\n        new",
        "for rank in others for _ in (0, 1)]\n        new",
        "weights[rank] * comm.recv(rank)",
        "weights[rank] / 2 * (comm.recv(rank) + comm.recv(rank))",
    ),
    wrong(
        "a barrier in each step",
        (MESSAGES, TOGETHER),
        "comm.barrier",
        "        x = new\n",
        "        x = new\n        comm.barrier()\n",
    ),
    wrong(
        "from whomever it comes",
        (OFTEN,),
        "expected",
        "comm.recv(rank)",
        "comm.recv(set(others))",
    ),
    wrong(
        "in any order, so that a fast neighbour counts twice",
        (OFTEN,),
        "expected",
        "weights[rank] * comm.recv(rank)",
        "(got := comm.recv(set(others))) * weights[comm.last_source]",
    ),
    Mutant(
        "gossip",
        "everybody gathers everything",
        """
def gossip(comm, x, weights, steps):
    for _ in range(steps):
        parts = comm.all_gather(x)
        x = sum(weights[rank] * parts[rank] for rank in weights)
    return x
""",
        (MESSAGES, TOGETHER),
        "comm.all_gather",
    ),
    Mutant(
        "gossip",
        "an all-reduce",
        """
def gossip(comm, x, weights, steps):
    return comm.all_reduce(x.copy()) / comm.size
""",
        (ONCE, OFTEN, MESSAGES, TOGETHER),
        "mean of all machines",
    ),
    Mutant(
        "gossip",
        "one neighbour after the other",
        """
def gossip(comm, x, weights, steps):
    for _ in range(steps):
        new = weights[comm.rank] * x
        for rank in weights:
            if rank != comm.rank:
                new = new + weights[rank] * comm.sendrecv(x, rank, rank)
        x = new
    return x
""",
        (TOGETHER,),
        "holds up its neighbours",
    ),
    Mutant(
        "gossip",
        "the lower rank of a pair sends first",
        """
def gossip(comm, x, weights, steps):
    for _ in range(steps):
        new = weights[comm.rank] * x
        for rank in weights:
            if rank < comm.rank:
                came = comm.recv(rank)
                comm.send(x, rank)
                new = new + weights[rank] * came
            elif rank > comm.rank:
                comm.send(x, rank)
                new = new + weights[rank] * comm.recv(rank)
        x = new
    return x
""",
        (TOGETHER,),
        "comm.isend",
    ),
    Mutant(
        "gossip",
        "machines use what their neighbours have already mixed",
        """
def gossip(comm, x, weights, steps):
    for _ in range(steps):
        new = weights[comm.rank] * x
        for rank in [r for r in weights if r > comm.rank]:
            comm.send(x, rank)
        for rank in [r for r in weights if r > comm.rank]:
            new = new + weights[rank] * comm.recv(rank)
        for rank in [r for r in weights if r < comm.rank]:
            new = new + weights[rank] * comm.recv(rank)
        for rank in [r for r in weights if r < comm.rank]:
            comm.send(new, rank)
        x = new
    return x
""",
        (ONCE, OFTEN, TOGETHER),
        "expected",
    ),
    wrong(
        "everybody receives first",
        ALL,
        "rank",
        "        sends = [comm.isend(x, rank) for rank in others]\n",
        "",
        "        for send in sends:\n            send.wait()\n",
        "        for rank in others:\n            comm.send(x, rank)\n",
        status=Status.STUCK,
    ),
    wrong(
        "sends to itself, too",
        (MESSAGES,),
        "knows its own number",
        "for rank in others]",
        "for rank in weights]",
        "new = weights[own] * x",
        "new = weights[own] * comm.recv(own)",
    ),
    wrong(
        "messages that are already weighted, with the weight behind",
        (MESSAGES,),
        "nothing else",
        "comm.isend(x, rank)",
        "comm.isend(np.append(weights[rank] * x, weights[rank]), rank)",
        "weights[rank] * comm.recv(rank)",
        "comm.recv(rank)[:-1]",
    ),
    wrong(
        "never waits for its sends",
        (MESSAGES,),
        "without waiting for the end of",
        "        for send in sends:\n            send.wait()\n",
        "",
    ),
    wrong("the array is changed", (ONCE,), "changed its argument x", "        x = new\n", "        x[:] = new\n"),
    wrong(
        "the weights are changed",
        (ONCE,),
        "changed its argument weights: its keys",
        "    own = comm.rank\n",
        "    own = comm.rank\n    mine = weights.pop(own)\n",
        "weights[own] * x",
        "mine * x",
    ),
]

ALTERNATIVES = [
    Alternative(
        "gossip",
        "receives are begun first",
        """
def gossip(comm, x, weights, steps):
    near = sorted(set(weights) - {comm.rank})
    x = np.array(x)
    for _ in range(steps):
        coming = {rank: comm.irecv(rank) for rank in near}
        going = [comm.isend(x, rank) for rank in near]
        parts = {rank: work.wait() for rank, work in coming.items()}
        for work in going:
            work.wait()
        parts[comm.rank] = x
        x = np.sum([weights[rank] * parts[rank] for rank in sorted(parts)], axis=0)
    return x
""",
    ),
    Alternative(
        "gossip",
        "moves towards the neighbours; weighted messages in order of arrival",
        """
def gossip(comm, x, weights, steps):
    near = set(weights) - {comm.rank}
    for step in range(steps):
        sends = [comm.isend(weights[rank] * x, rank, tag=step) for rank in near]
        left, new = set(near), x * (1 - sum(weights[rank] for rank in near))
        while left:
            new = new + comm.recv(left, tag=step)
            left = left - {comm.last_source}
        for send in sends:
            send.wait()
        x = new
    return x.copy()
""",
    ),
]
