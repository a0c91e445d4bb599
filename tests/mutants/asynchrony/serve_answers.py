"""Answers to `serve`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

LOOP = """
def serve(comm, shard, workers):
    values, done = shard.copy(), 0
    while done < workers:
        message = comm.recv(ANY)
        kind, given = message[0], message[1:]
        if kind == GET:
            comm.send(values, comm.last_source)
        elif kind == PUT:
            values = given.copy()
        elif kind == ADD:
            values = values + given
        elif kind == DONE:
            done += 1
    return values
"""
ALONE, SUMS = "one worker: GET, PUT and ADD", "several workers: the sum of all ADDs, until the last worker is done"
ORDER = "in order of arrival, without waiting for a particular worker"
TRAFFIC = "one message for each GET, and the caller's shard unchanged"
ALL = (ALONE, SUMS, ORDER, TRAFFIC)

MUTANTS = [
    Mutant(
        "serve",
        "ADD replaces the values: the last worker wins",
        changed(LOOP, "values = values + given", "values = given"),
        loses=(ALONE, SUMS, ORDER),
        says="ADD was treated like PUT",
    ),
    Mutant(
        "serve",
        "PUT adds",
        changed(LOOP, "values = given.copy()", "values = values + given"),
        loses=(ALONE, ORDER),
        says="PUT was treated like ADD",
    ),
    Mutant(
        "serve",
        "ends with the first worker",
        changed(LOOP, "while done < workers", "while done < 1"),
        loses=(SUMS, ORDER, TRAFFIC),
        says="The server ended with the first worker that was done",
    ),
    Mutant(
        "serve",
        "the workers in rank order, one after the other",
        changed(
            LOOP,
            "    while done < workers:\n        message = comm.recv(ANY)",
            "    worker = 0\n    while done < workers:\n        message = comm.recv(done)",
        ),
        loses=(ORDER,),
        says="The server was waiting for another worker",
    ),
    Mutant(
        "serve",
        "the workers in turn, a request of each",
        changed(
            LOOP,
            "values, done = shard.copy(), 0",
            "values, done, here, turn = shard.copy(), 0, list(range(workers)), 0",
            "message = comm.recv(ANY)",
            "worker = here[turn % len(here)]\n        message = comm.recv(worker)\n"
            "        turn = (turn + 1) % len(here)",
            "done += 1",
            "done += 1\n            here.remove(worker)\n            turn = max(0, turn - 1)",
        ),
        loses=(ORDER,),
        says="The server was waiting for another worker",
    ),
    Mutant(
        "serve",
        "every request has a reply",
        changed(
            LOOP,
            "values = values + given",
            "values = values + given\n            comm.send(np.zeros(0), comm.last_source)",
        ),
        loses=(ALONE, ORDER, TRAFFIC),
        says="ADD, PUT and DONE have no reply",
    ),
    Mutant(
        "serve",
        "new values go to all workers",
        changed(
            LOOP,
            "values = values + given",
            "values = values + given\n            for worker in range(workers):\n"
            "                comm.send(values, worker)",
        ),
        loses=(ALONE, ORDER, TRAFFIC),
        says="the server sent",
    ),
]

MUTANTS += [
    Mutant(
        "serve",
        "ends with the worker of the highest rank",
        changed(LOOP, "            done += 1", "            done = workers * (comm.last_source == workers - 1)"),
        loses=(SUMS, ORDER, TRAFFIC),
        says="expected",
    ),
    Mutant(
        "serve",
        "adds into the caller's shard",
        changed(LOOP, "shard.copy()", "shard", "values = values + given", "values += given"),
        loses=(TRAFFIC,),
        says="changes the array itself",
    ),
    Mutant(
        "serve",
        "begins with zeros",
        changed(LOOP, "shard.copy()", "np.zeros_like(shard)"),
        loses=(ALONE, SUMS, ORDER),
        says="expected",
    ),
    Mutant(
        "serve",
        "the kind is added, too",
        changed(LOOP, "message[1:]", "message"),
        loses=ALL,
        says="ValueError",
        status=Status.RAISED,
    ),
    Mutant(
        "serve",
        "returns the shard",
        changed(LOOP, "return values", "return shard"),
        loses=(ALONE, SUMS),
        says="These are the initial values",
    ),
    Mutant(
        "serve",
        "replies with the initial values",
        changed(LOOP, "comm.send(values,", "comm.send(shard,"),
        loses=(ALONE, ORDER),
        says="These are the initial values",
    ),
    Mutant(
        "serve",
        "replies to worker 0",
        changed(LOOP, "comm.send(values, comm.last_source)", "comm.send(values, 0)"),
        loses=(ORDER, TRAFFIC),
        says="recv",
        status=Status.STUCK,
    ),
    Mutant(
        "serve",
        "GETs wait until all workers that are left have asked",
        changed(
            LOOP,
            "values, done = shard.copy(), 0",
            "values, done, waiting = shard.copy(), 0, []",
            "comm.send(values, comm.last_source)",
            "waiting.append(comm.last_source)",
            "done += 1",
            "done += 1\n        if len(waiting) >= workers - done:\n            for worker in waiting:\n"
            "                comm.send(values, worker)\n            waiting = []",
        ),
        loses=(ORDER,),
        says="The server was waiting for another worker",
    ),
    Mutant(
        "serve",
        "counts requests instead of DONEs",
        changed(LOOP, "        elif kind == DONE:\n            done += 1", "        done += kind == GET"),
        loses=ALL,
        says="recv",
        status=Status.STUCK,
    ),
    Mutant(
        "serve",
        "sends the kind with the reply",
        changed(LOOP, "comm.send(values,", "comm.send(request(GET, values),"),
        loses=(ALONE, ORDER, TRAFFIC),
        says="without a kind",
    ),
    Mutant(
        "serve",
        "uses the library's Store",
        "from minidl.parallel import Store\n\ndef serve(comm, shard, workers):\n    return Store(comm).serve()",
        loses=ALL,
        says="may not be used",
        status=Status.RAISED,
    ),
    Mutant(
        "serve",
        "keeps the values in float32",
        changed(
            LOOP,
            "shard.copy()",
            "shard.astype(np.float32)",
            "values = values + given",
            "values = values + given.astype(np.float32)",
            "comm.send(values,",
            "comm.send(values.astype(float),",
            "return values",
            "return values.astype(float)",
        ),
        loses=(ALONE, SUMS, ORDER),
        says="float32, which has 7 digits",
    ),
]

ALTERNATIVES = [
    Alternative(
        "serve",
        "a set of workers at work, which alone are received from",
        """
def serve(comm, shard, workers):
    at_work, total = set(range(workers)), np.array(shard)
    while at_work:
        kind, *values = comm.recv(at_work)
        if kind == DONE:
            at_work.remove(comm.last_source)
        if kind == GET:
            comm.isend(total.copy(), comm.last_source).wait()
        if kind == PUT:
            total[:] = values
        if kind == ADD:
            total[:] += values
    return total
""",
    ),
    Alternative(
        "serve",
        "a list of updates, added up only when somebody asks",
        """
def serve(comm, shard, workers):
    base, updates, left = shard, [], workers
    while left > 0:
        message = comm.recv(ANY)
        worker = comm.last_source
        match message[0]:
            case 0.0:
                comm.send(sum(updates, base), worker)
            case 1.0:
                base, updates = message[1:], []
            case 2.0:
                updates.append(message[1:])
            case _:
                left -= 1
    return sum(updates, base)
""",
    ),
    Alternative(
        "serve",
        "handlers in a dictionary",
        """
def serve(comm, shard, workers):
    values, done = np.copy(shard), set()
    handlers = {
        GET: lambda worker, given: comm.send(values, worker),
        PUT: lambda worker, given: np.copyto(values, given),
        ADD: lambda worker, given: np.add(values, given, out=values),
        DONE: lambda worker, given: done.add(worker),
    }
    while len(done) < workers:
        message = comm.recv(ANY)
        handlers[float(message[0])](comm.last_source, message[1:])
    return values
""",
    ),
]
