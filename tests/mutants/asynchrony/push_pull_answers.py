"""Answers to `push_pull`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

PARTS = """
def push_pull(comm, delta, servers):
    parts = np.array_split(delta, len(servers))
    for server, part in zip(servers, parts):
        comm.send(request(ADD, part), server)
        comm.send(request(GET), server)
    return np.concatenate([comm.recv(server) for server in servers])
"""
WEIGHTS, TRAFFIC = (
    "delta is added once, and the weights after that are returned",
    "two messages to each server, with its own part only",
)
ROUNDS = "2 S + 1 rounds: all servers work at the same time"
ALL = (WEIGHTS, TRAFFIC, ROUNDS)

MUTANTS = [
    Mutant(
        "push_pull",
        "the whole vector to every server",
        changed(PARTS, "request(ADD, part)", "request(ADD, delta)"),
        loses=ALL,
        says="is the part of servers[k]",
    ),
    Mutant(
        "push_pull",
        "GET before ADD",
        changed(
            PARTS,
            "        comm.send(request(ADD, part), server)\n        comm.send(request(GET), server)",
            "        comm.send(request(GET), server)\n        comm.send(request(ADD, part), server)",
        ),
        loses=(WEIGHTS,),
        says="The weights that come back are to contain delta",
    ),
    Mutant(
        "push_pull",
        "get then put instead of add",
        """
def push_pull(comm, delta, servers):
    weights = []
    for server, part in zip(servers, np.array_split(delta, len(servers))):
        comm.send(request(GET), server)
        weights.append(comm.recv(server) + part)
        comm.send(request(PUT, weights[-1]), server)
    return np.concatenate(weights)
""",
        loses=(WEIGHTS, ROUNDS),
        says="ADD keeps both",
    ),
    Mutant(
        "push_pull",
        "one server after the other",
        changed(
            PARTS,
            "    for server, part",
            "    replies = []\n    for server, part",
            "        comm.send(request(GET), server)\n",
            "        comm.send(request(GET), server)\n        replies.append(comm.recv(server))\n",
            "np.concatenate([comm.recv(server) for server in servers])",
            "np.concatenate(replies)",
        ),
        loses=(ROUNDS,),
        says="All requests can be sent before the first reply is waited for",
    ),
    Mutant(
        "push_pull",
        "the replies in order of arrival",
        changed(PARTS, "comm.recv(server) for", "comm.recv(ANY) for"),
        loses=(WEIGHTS,),
        says="in the order in which the replies came",
    ),
    Mutant(
        "push_pull",
        "parts of n // S elements, the rest to the last server",
        changed(
            PARTS,
            "parts = np.array_split(delta, len(servers))",
            "each, last = len(delta) // len(servers), len(servers) - 1\n"
            "    parts = [delta[k * each : (k + 1) * each] for k in range(last)] + [delta[last * each :]]",
        ),
        loses=ALL,
        says="is the part of servers[k]",
    ),
    Mutant(
        "push_pull",
        "the requests without a kind",
        changed(PARTS, "request(ADD, part)", "part"),
        loses=ALL,
        says="which is no request",
    ),
]

MUTANTS += [
    Mutant(
        "push_pull",
        "delta is added once more to what came",
        changed(PARTS, "for server in servers])", "for server in servers]) + delta"),
        loses=(WEIGHTS,),
        says="delta was added once more here",
    ),
    Mutant(
        "push_pull",
        "pushes the negative",
        changed(PARTS, "request(ADD, part)", "request(ADD, -part)"),
        loses=(WEIGHTS,),
        says="That is the negative",
    ),
    Mutant(
        "push_pull",
        "never asks",
        changed(PARTS, "        comm.send(request(GET), server)\n", ""),
        loses=ALL,
        says="recv",
        status=Status.STUCK,
    ),
    Mutant(
        "push_pull",
        "sends DONE, too",
        changed(
            PARTS,
            "comm.send(request(GET), server)",
            "comm.send(request(GET), server)\n        comm.send(request(DONE), server)",
        ),
        loses=(TRAFFIC,),
        says="3 messages, 2 needed",
    ),
    Mutant(
        "push_pull",
        "a list of parts is returned",
        changed(
            PARTS,
            "np.concatenate([comm.recv(server) for server in servers])",
            "[comm.recv(server) for server in servers]",
        ),
        loses=(WEIGHTS,),
        says="got a list of",
    ),
    Mutant(
        "push_pull",
        "clears delta when it is sent",
        changed(PARTS, "    return np", "    delta[:] = 0\n    return np"),
        loses=(WEIGHTS,),
        says="changed its argument delta",
    ),
    Mutant(
        "push_pull",
        "takes the servers from the caller's list",
        changed(PARTS, "[comm.recv(server) for server in servers]", "[comm.recv(servers.pop(0)) for _ in parts]"),
        loses=(WEIGHTS,),
        says="changed its argument servers: it had",
    ),
    Mutant(
        "push_pull",
        "sends Python objects",
        changed(PARTS, "request(ADD, part)", "('add', part)"),
        loses=ALL,
        says="got another Python object",
    ),
    Mutant(
        "push_pull",
        "the first server gets it all",
        changed(
            PARTS,
            "for server, part in zip(servers, parts)",
            "for server, part in zip(servers[:1], [delta])",
            "for server in servers]",
            "for server in servers[:1]]",
        ),
        loses=ALL,
        says="whose shard has",
    ),
    Mutant(
        "push_pull",
        "counts the servers from the lowest rank",
        changed(PARTS, "    parts =", "    servers = sorted(servers)\n    parts ="),
        loses=(WEIGHTS, TRAFFIC),
        says="is the part of servers[k]",
    ),
]

ALTERNATIVES = [
    Alternative(
        "push_pull",
        "all ADDs, then all GETs; the replies are put where they belong",
        """
def push_pull(comm, delta, servers):
    parts = dict(zip(servers, np.array_split(delta, len(servers))))
    for server in servers:
        comm.send(request(ADD, parts[server]), server)
    for server in servers:
        comm.send(request(GET), server)
    for _ in servers:
        reply = comm.recv(ANY)
        parts[comm.last_source] = reply
    return np.concatenate(list(parts.values()))
""",
    ),
    Alternative(
        "push_pull",
        "isend and irecv, into one array",
        """
def push_pull(comm, delta, servers):
    weights = np.empty(len(delta))
    begun = []
    for server, indices in zip(servers, np.array_split(np.arange(len(delta)), len(servers))):
        adding, getting = comm.isend(request(ADD, delta[indices]), server), comm.isend(request(GET), server)
        begun.append((indices, comm.irecv(server), adding, getting))
    for indices, coming, *going in begun:
        weights[indices] = coming.wait()
        for work in going:
            work.wait()
    return weights
""",
    ),
]
