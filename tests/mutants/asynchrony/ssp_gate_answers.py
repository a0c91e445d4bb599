"""Answers to `ssp_gate`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

GATE = """
def ssp_gate(comm, workers, bound):
    clocks = {worker: 0 for worker in range(workers)}
    waiting = []
    while clocks:
        message = comm.recv(ANY)
        worker = comm.last_source
        if message[0] == DONE:
            del clocks[worker]
        else:
            clocks[worker] += 1
            waiting.append(worker)
        ready = [w for w in waiting if clocks[w] - min(clocks.values()) <= bound]
        for w in ready:
            comm.send(np.zeros(0), w)
            waiting.remove(w)
"""
RULE = "clocks[w] - min(clocks.values()) <= bound"
BOUND = "no step begins more than `bound` ahead of the slowest worker"
WAITING = "every step begins as soon as the bound allows it, and not before"
LEAVING = "a worker that has finished holds nobody back; the bound holds for the others"
REPLIES = "one reply for each CLOCK, and no other message"
ALL = (BOUND, WAITING, LEAVING, REPLIES)

MUTANTS = [
    Mutant(
        "ssp_gate",
        "a barrier, whatever the bound",
        changed(GATE, RULE, "clocks[w] - min(clocks.values()) <= 0"),
        loses=(WAITING, LEAVING),
        says="That is a barrier",
    ),
    Mutant(
        "ssp_gate",
        "off by one: bound + 1 steps ahead",
        changed(GATE, RULE, "clocks[w] - min(clocks.values()) <= bound + 1"),
        loses=(BOUND, WAITING, LEAVING),
        says="a lead of bound + 1 is too much",
    ),
    Mutant(
        "ssp_gate",
        "off by one: less than bound, and a barrier for 0",
        changed(GATE, RULE, "clocks[w] - min(clocks.values()) < max(bound, 1)"),
        loses=(WAITING, LEAVING),
        says="The bound is off by one",
    ),
    Mutant(
        "ssp_gate",
        "nobody waits",
        changed(GATE, RULE, "True"),
        loses=(BOUND, WAITING, LEAVING),
        says="Nobody waits here",
    ),
    Mutant(
        "ssp_gate",
        "looks at the fastest worker",
        changed(GATE, RULE, "max(clocks.values()) - clocks[w] <= bound"),
        loses=(BOUND, WAITING, LEAVING),
        says="ahead of worker",
    ),
    Mutant(
        "ssp_gate",
        "a worker that has finished holds the others back",
        changed(
            GATE,
            "    waiting = []",
            "    waiting, left = [], workers",
            "while clocks",
            "while left",
            "del clocks[worker]",
            "left -= 1\n            clocks[worker] += 1",
        ),
        loses=(LEAVING,),
        says="waits for",
        status=Status.STUCK,
    ),
    Mutant(
        "ssp_gate",
        "only the worker that asks is looked at",
        changed(GATE, "for w in waiting if", "for w in [worker] if w in clocks and"),
        loses=ALL,
        says="waits for",
        status=Status.STUCK,
    ),
]

MUTANTS += [
    Mutant(
        "ssp_gate",
        "waiting workers are looked at only when a CLOCK comes",
        changed(GATE, "            del clocks[worker]\n", "            del clocks[worker]\n            continue\n"),
        loses=(LEAVING,),
        says="Worker 0 has finished",
    ),
    Mutant(
        "ssp_gate",
        "DONE has a reply, too",
        changed(GATE, "del clocks[worker]", "del clocks[worker]\n            comm.send(np.zeros(0), worker)"),
        loses=(REPLIES,),
        says="DONE has no reply",
    ),
    Mutant(
        "ssp_gate",
        "compares with the mean clock",
        changed(GATE, RULE, "clocks[w] - sum(clocks.values()) / len(clocks) <= bound"),
        loses=(BOUND, WAITING, LEAVING),
        says="of the slowest worker that has not finished",
    ),
    Mutant(
        "ssp_gate",
        "all who wait are released when one may go on",
        changed(
            GATE,
            "        for w in ready:\n",
            "        if any(clocks[w] - min(clocks.values()) <= bound for w in waiting):\n"
            "            ready = list(waiting)\n"
            "        for w in ready:\n",
        ),
        loses=(BOUND, WAITING, LEAVING),
        says="ahead of worker",
    ),
    Mutant(
        "ssp_gate",
        "the clocks are never counted",
        changed(GATE, "clocks[worker] += 1", "pass"),
        loses=(BOUND, WAITING, LEAVING),
        says="ahead of worker",
    ),
    Mutant(
        "ssp_gate",
        "ends when the first worker has finished",
        changed(GATE, "while clocks:", "while len(clocks) == workers:"),
        loses=(BOUND, WAITING, LEAVING, REPLIES),
        says="waits for",
        status=Status.STUCK,
    ),
    Mutant(
        "ssp_gate",
        "waits for the clocks of all workers in rank order",
        """
def ssp_gate(comm, workers, bound):
    left = list(range(workers))
    while left:
        kinds = {worker: comm.recv(worker)[0] for worker in left}
        left = [worker for worker in left if kinds[worker] == CLOCK]
        for worker in left:
            comm.send(np.zeros(0), worker)
""",
        loses=(WAITING, LEAVING),
        says="That is a barrier",
    ),
    Mutant(
        "ssp_gate",
        "the reply is the slowest clock",
        changed(GATE, "comm.send(np.zeros(0), w)", "comm.send(np.array([min(clocks.values())]), w)"),
        loses=(REPLIES,),
        says="A reply has no contents",
    ),
    Mutant(
        "ssp_gate",
        "no gate any more once a worker has finished",
        changed(GATE, RULE, "clocks[w] - min(clocks.values()) <= bound or len(clocks) < workers"),
        loses=(LEAVING,),
        says="ahead of worker",
    ),
]

ALTERNATIVES = [
    Alternative(
        "ssp_gate",
        "all who wait have the same clock: a queue, released when the slowest clock grows",
        """
def ssp_gate(comm, workers, bound):
    clocks = np.zeros(workers)
    queue, slowest = [], 0
    while np.isfinite(clocks).any():
        kind = comm.recv(ANY)[0]
        i = comm.last_source
        clocks[i] = clocks[i] + 1 if kind == CLOCK else np.inf
        if kind == CLOCK:
            queue.append(i)
        if clocks.min() > slowest:
            slowest = clocks.min()
            while queue:
                comm.send(np.zeros(0), queue.pop())
        elif kind == CLOCK and clocks[i] - slowest <= bound:
            comm.send(np.zeros(0), queue.pop())
""",
    ),
    Alternative(
        "ssp_gate",
        "counts how many workers have finished each step",
        """
def ssp_gate(comm, workers, bound):
    finished, clock, gone, waiting = {}, [0] * workers, set(), set()
    while len(gone) < workers:
        kind = comm.recv(ANY)[0]
        who = comm.last_source
        clock[who] += 1
        if kind == DONE:
            gone.add(who)
        else:
            waiting.add(who)
        for other in sorted(waiting):
            needed = clock[other] - bound
            if all(each in gone or clock[each] >= needed for each in range(workers)):
                waiting.discard(other)
                comm.isend(np.zeros(0), other).wait()
""",
    ),
]
