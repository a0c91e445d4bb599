"""Answers to `downpour_worker`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

LOOP = """
def downpour_worker(comm, gradient, steps, lr, n_fetch, n_push, server):
    accumulated = 0.0
    for step in range(steps):
        if step % n_fetch == 0:
            comm.send(request(GET), server)
            weights = comm.recv(server)
        change = -lr * gradient(weights, step)
        accumulated = accumulated + change
        weights = weights + change
        if (step + 1) % n_push == 0:
            comm.send(request(ADD, accumulated), server)
            accumulated = 0.0
    if steps % n_push:
        comm.send(request(ADD, accumulated), server)
    comm.send(request(DONE), server)
    return weights
"""
SERIAL = "one worker, n_fetch = n_push = 1: SGD"
REQUESTS = "a GET every n_fetch steps, an ADD every n_push, the remainder, DONE"
PUSHES = "every step is pushed exactly once, and made locally too"
ALL = (SERIAL, REQUESTS, PUSHES)

MUTANTS = [
    Mutant(
        "downpour_worker",
        "the gradient is not cleared after a push",
        changed(LOOP, "            accumulated = 0.0\n", ""),
        loses=(SERIAL, PUSHES),
        says="after an ADD, accumulate anew from zero",
    ),
    Mutant(
        "downpour_worker",
        "the remainder is not pushed",
        changed(LOOP, "    if steps % n_push:\n        comm.send(request(ADD, accumulated), server)\n", ""),
        loses=(REQUESTS, PUSHES),
        says="What remains goes at the end",
    ),
    Mutant(
        "downpour_worker",
        "pushes after steps 0, n_push, …",
        changed(
            LOOP,
            "(step + 1) % n_push == 0",
            "step % n_push == 0",
            "    if steps % n_push:",
            "    if (steps - 1) % n_push:",
        ),
        loses=(REQUESTS, PUSHES),
        says="and not after step 0",
    ),
    Mutant(
        "downpour_worker",
        "fetches after the step instead of before it",
        changed(
            LOOP,
            "    for step in range(steps):\n        if step % n_fetch == 0:\n"
            "            comm.send(request(GET), server)\n"
            "            weights = comm.recv(server)\n",
            "    comm.send(request(GET), server)\n    weights = comm.recv(server)\n    for step in range(steps):\n",
            "            accumulated = 0.0\n",
            "            accumulated = 0.0\n        if (step + 1) % n_fetch == 0:\n"
            "            comm.send(request(GET), server)\n"
            "            weights = comm.recv(server)\n",
        ),
        loses=(REQUESTS, PUSHES),
        says="expected",
    ),
    Mutant(
        "downpour_worker",
        "no local steps between two fetches",
        changed(LOOP, "        weights = weights + change\n", ""),
        loses=(PUSHES,),
        says="between two GETs it makes its own steps",
    ),
    Mutant(
        "downpour_worker",
        "pushes the gradient, not -lr times it",
        changed(LOOP, "request(ADD, accumulated)", "request(ADD, accumulated / -lr)"),
        loses=(SERIAL, PUSHES),
        says="added without -lr",
    ),
    Mutant(
        "downpour_worker",
        "up the slope",
        changed(LOOP, "-lr * gradient", "lr * gradient"),
        loses=(SERIAL, PUSHES),
        says="up the slope",
    ),
]

MUTANTS += [
    Mutant(
        "downpour_worker",
        "fetches in every step",
        changed(LOOP, "if step % n_fetch == 0", "if True"),
        loses=(REQUESTS, PUSHES),
        says="One in each step; expected one in",
    ),
    Mutant(
        "downpour_worker",
        "pushes in every step",
        changed(LOOP, "if (step + 1) % n_push == 0", "if True", "if steps % n_push", "if False"),
        loses=(REQUESTS, PUSHES),
        says="One in each step; expected one in",
    ),
    Mutant(
        "downpour_worker",
        "pushes only the last gradient",
        changed(LOOP, "accumulated = accumulated + change", "accumulated = change"),
        loses=(PUSHES,),
        says="Only the last step is in it",
    ),
    Mutant(
        "downpour_worker",
        "an ADD at the end in any case",
        changed(LOOP, "    if steps % n_push:", "    accumulated = accumulated + np.zeros_like(weights)\n    if True:"),
        loses=(REQUESTS,),
        says="There is no remainder here",
    ),
    Mutant(
        "downpour_worker",
        "the mean instead of the sum",
        changed(LOOP, "request(ADD, accumulated)", "request(ADD, accumulated / n_push)"),
        loses=(PUSHES,),
        says="The mean over the steps is pushed",
    ),
    Mutant(
        "downpour_worker",
        "never says DONE",
        changed(LOOP, "    comm.send(request(DONE), server)\n", ""),
        loses=ALL,
        says="waits for",
        status=Status.STUCK,
    ),
    Mutant(
        "downpour_worker",
        "a push discards what the fetch should keep: accumulated is cleared by each GET",
        changed(LOOP, "weights = comm.recv(server)", "weights = comm.recv(server)\n            accumulated = 0.0"),
        loses=(PUSHES,),
        says="expected",
    ),
    Mutant(
        "downpour_worker",
        "puts its weights",
        changed(LOOP, "request(ADD, accumulated)", "request(PUT, weights)"),
        loses=(REQUESTS, PUSHES),
        says="PUT replaces what the others have added",
    ),
    Mutant(
        "downpour_worker",
        "steps numbered from 1",
        changed(LOOP, "gradient(weights, step)", "gradient(weights, (step + 1) % steps)"),
        loses=(SERIAL, PUSHES),
        says="expected",
    ),
    Mutant(
        "downpour_worker",
        "the gradient after the step",
        changed(
            LOOP,
            "        accumulated = accumulated + change\n        weights = weights + change\n",
            "        weights = weights + change\n        accumulated = accumulated - lr * gradient(weights, step)\n",
        ),
        loses=ALL,
        says="one gradient a step",
        status=Status.RAISED,
    ),
    Mutant(
        "downpour_worker",
        "adds its unpushed changes to the weights that it fetches",
        changed(LOOP, "weights = comm.recv(server)", "weights = comm.recv(server) + accumulated"),
        loses=(PUSHES,),
        says="expected",
    ),
    Mutant(
        "downpour_worker",
        "computes every gradient twice",
        changed(LOOP, "weights = weights + change", "weights = weights - lr * gradient(weights, step)"),
        loses=ALL,
        says="one gradient a step",
        status=Status.RAISED,
    ),
]

ALTERNATIVES = [
    Alternative(
        "downpour_worker",
        "gradients are kept in a list, and the request is made by hand",
        """
def downpour_worker(comm, gradient, steps, lr, n_fetch, n_push, server):
    kept = []
    def push():
        comm.send(np.append(ADD, -lr * np.sum(kept, axis=0)), server)
        kept.clear()
    w = None
    for t in range(steps):
        if not t % n_fetch:
            comm.send(np.array([GET]), server)
            w = np.array(comm.recv(server))
        kept.append(gradient(w, t))
        w -= lr * kept[-1]
        if len(kept) == n_push:
            push()
    if kept:
        push()
    comm.isend(np.array([DONE]), server).wait()
    return w
""",
    ),
    Alternative(
        "downpour_worker",
        "counters that run down",
        """
def downpour_worker(comm, gradient, steps, lr, n_fetch, n_push, server):
    until_fetch, until_push, update = 0, n_push, None
    for step in range(steps):
        if until_fetch == 0:
            comm.send(request(GET), server)
            local, until_fetch = comm.recv(server), n_fetch
        g = gradient(local, step)
        update = -lr * g if update is None else update - lr * g
        local = local - lr * g
        until_fetch, until_push = until_fetch - 1, until_push - 1
        if until_push == 0:
            comm.send(request(ADD, update), server)
            update, until_push = None, n_push
    if update is not None:
        comm.send(request(ADD, update), server)
    comm.send(request(DONE), server)
    return local
""",
    ),
]
