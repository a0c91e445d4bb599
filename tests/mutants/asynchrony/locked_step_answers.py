"""Answers to `locked_step`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant

LOST, HELD = "no update is lost", "the lock is held for one read and one write"


def step(mistake: str, body: str, loses: tuple[str, ...], says: str, status: Status = Status.WRONG) -> Mutant:
    """A wrong answer of these lines."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return Mutant("locked_step", mistake, f"def locked_step(shared, lock, gradient, lr):\n{lines}", loses, says, status)


MUTANTS = [
    step(
        "no lock",
        "w = shared.read()\nshared.write(w - lr * gradient(w))",
        (LOST, HELD),
        "Updates of others are lost",
    ),
    step(
        "the lock around the computation",
        "with lock:\n    w = shared.read()\n    shared.write(w - lr * gradient(w))",
        (HELD,),
        "with the lock held, the workers compute one after the other",
    ),
    step(
        "read outside of the lock",
        "w = shared.read()\ng = gradient(w)\nwith lock:\n    shared.write(w - lr * g)",
        (LOST, HELD),
        "Updates of others are lost",
    ),
    step(
        "the lock around the read alone",
        "with lock:\n    w = shared.read()\nshared.write(w - lr * gradient(w))",
        (LOST, HELD),
        "Updates of others are lost",
    ),
    step(
        "the lock is never released",
        "g = gradient(shared.read())\nlock.acquire()\nshared.write(shared.read() - lr * g)",
        (HELD,),
        "the lock was not released",
    ),
    step(
        "two locked blocks, one for the read and one for the write",
        "g = gradient(shared.read())\nwith lock:\n    w = shared.read()\nwith lock:\n    shared.write(w - lr * g)",
        (LOST, HELD),
        "Updates of others are lost",
    ),
    step(
        "up the slope",
        "g = gradient(shared.read())\nwith lock:\n    shared.write(shared.read() + lr * g)",
        (LOST,),
        "The sign is wrong",
    ),
    step(
        "the gradient is computed again under the lock",
        "g = gradient(shared.read())\nwith lock:\n    w = shared.read()\n    shared.write(w - lr * gradient(w))",
        (HELD,),
        "with the lock held, the workers compute one after the other",
    ),
    step(
        "the lock is asked for twice",
        "g = gradient(shared.read())\nwith lock:\n    lock.acquire()\n    shared.write(shared.read() - lr * g)",
        (LOST, HELD),
        "this worker has the lock already",
        Status.RAISED,
    ),
    step(
        "the copy is changed, and never written",
        "g = gradient(shared.read())\nwith lock:\n    w = shared.read()\n    w -= lr * g",
        (LOST, HELD),
        "The weights were not changed",
    ),
    step(
        "the first read is under the lock, too",
        "with lock:\n    w = shared.read()\ng = gradient(w)\nwith lock:\n    shared.write(shared.read() - lr * g)",
        (HELD,),
        "One block is enough",
    ),
    step(
        "the gradient at zero",
        "g = gradient(0.0 * shared.read())\nwith lock:\n    shared.write(shared.read() - lr * g)",
        (LOST,),
        "which shared.read() never returned",
    ),
    step(
        "without the learning rate",
        "g = gradient(shared.read())\nwith lock:\n    shared.write(shared.read() - g)",
        (LOST,),
        "The learning rate is missing",
    ),
]

ALTERNATIVES = [
    Alternative(
        "locked_step",
        "acquire and release by hand, in try and finally",
        """
def locked_step(shared, lock, gradient, lr):
    stale = shared.read()
    change = lr * gradient(stale)
    lock.acquire()
    try:
        now = shared.read()
        now -= change
        shared.write(now)
    finally:
        lock.release()
""",
    ),
    Alternative(
        "locked_step",
        "two reads before: the gradient is of the later one",
        """
def locked_step(shared, lock, gradient, lr):
    shared.read()
    direction = np.multiply(-lr, gradient(shared.read()))
    with lock:
        weights = shared.read()
        shared.write(np.add(weights, direction))
""",
    ),
]
