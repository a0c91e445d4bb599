"""Answers to `local_sgd`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def local_sgd(comm, x, gradient, lr, period, steps, first):
    for step in range(steps):
        x = x - lr * gradient(x, step)
        if step < first or (step - first) % period == period - 1 or step == steps - 1:
            total = x.copy()
            comm.all_reduce(total)
            x = total / comm.size
    return x
"""
SYNCHRONOUS = "a period of 1: minibatch SGD"
PERIODS = "longer periods, the last of which may be incomplete"
POST_LOCAL = "a round after each of the first steps (post-local SGD)"
ROUNDS = "one all-reduce of n words in each round, and nothing else"
ALL = (SYNCHRONOUS, PERIODS, POST_LOCAL)


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str, status: Status = Status.WRONG) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("local_sgd", mistake, changed(RIGHT, *replacements), loses, says, status)


MUTANTS = [
    wrong(
        "no round after the last step",
        (PERIODS, POST_LOCAL, ROUNDS),
        "The last round is missing",
        " or step == steps - 1",
        "",
    ),
    wrong("the sum instead of the mean", ALL, "sums of the weights", "total / comm.size", "total"),
    wrong(
        "a round before a period is over",
        (PERIODS, POST_LOCAL, ROUNDS),
        "after one step",
        "period == period - 1",
        "period == 0",
    ),
    wrong(
        "periods counted from step 0",
        (POST_LOCAL, ROUNDS),
        "begin after the first",
        "(step - first) % period == period - 1",
        "(step + 1) % period == 0",
    ),
    wrong(
        "no rounds at first",
        (POST_LOCAL, ROUNDS),
        "of the first `first` steps has a round",
        "step < first or (step - first)",
        "step",
    ),
    wrong(
        "one step too many at first",
        (PERIODS, POST_LOCAL, ROUNDS),
        "One step too many",
        "step < first",
        "step <= first",
    ),
    wrong(
        "a round in every step",
        (PERIODS, POST_LOCAL, ROUNDS),
        "whatever the period",
        "if step < first",
        "if True or step < first",
    ),
    wrong(
        "one-shot averaging",
        (*ALL, ROUNDS),
        "one-shot averaging",
        "step < first or (step - first) % period == period - 1 or step",
        "step",
    ),
    Mutant(
        "local_sgd",
        "gradients averaged instead of weights",
        """
def local_sgd(comm, x, gradient, lr, period, steps, first):
    for step in range(steps):
        g = gradient(x, step)
        if step < first or (step - first) % period == period - 1 or step == steps - 1:
            g = comm.all_reduce(g.copy()) / comm.size
        x = x - lr * g
    return x
""",
        (PERIODS, POST_LOCAL),
        "the weights stay apart",
    ),
    wrong(
        "the mean is not taken over",
        ALL,
        "goes on with the mean",
        "x = total / comm.size",
        "mean = total / comm.size",
        "return x",
        "return mean",
    ),
    wrong(
        "an all-reduce of the gradient in every step",
        (PERIODS, POST_LOCAL, ROUNDS),
        "whatever the period",
        "gradient(x, step)",
        "comm.all_reduce(gradient(x, step)) / comm.size",
    ),
    wrong(
        "a second all-reduce after the last step",
        (ROUNDS,),
        "one round is enough",
        "    return x",
        "    return comm.all_reduce(x.copy()) / comm.size",
    ),
    wrong(
        "the weights are gathered",
        (ROUNDS,),
        "no comm.all_gather",
        "            comm.all_reduce(total)\n            x = total / comm.size",
        "            x = np.mean(comm.all_gather(x), axis=0)",
    ),
    wrong(
        "rank 0 averages, and broadcasts",
        (ROUNDS,),
        "no comm.broadcast",
        "            comm.all_reduce(total)\n            x = total / comm.size",
        "            comm.reduce(total)\n            x = comm.broadcast(total / comm.size)",
    ),
    wrong(
        "the weights are changed in place",
        (SYNCHRONOUS,),
        "changed its argument x at [0]",
        "x = x - lr * gradient(x, step)",
        "x -= lr * gradient(x, step)",
    ),
    wrong(
        "the mean before the step",
        ALL,
        "comes after the step",
        "        x = x - lr * gradient(x, step)\n",
        "",
        "    return x",
        "        x = x - lr * gradient(x, step)\n    return x",
    ),
    wrong(
        "a barrier before the round",
        (ROUNDS,),
        "no comm.barrier",
        "            comm.all_reduce(total)",
        "            comm.barrier()\n            comm.all_reduce(total)",
    ),
    wrong(
        "rank 0 alone sums",
        (*ALL, ROUNDS),
        "rank 0",
        "            comm.all_reduce(total)",
        "            if comm.rank == 0:\n                comm.all_reduce(total)",
        status=Status.STUCK,
    ),
    wrong(
        "twice the words",
        (ROUNDS,),
        "has the shape of x",
        "            comm.all_reduce(total)",
        "            total = comm.all_reduce(np.concatenate([total, total]))[: len(x)]",
    ),
]

ALTERNATIVES = [
    Alternative(
        "local_sgd",
        "a list of lengths of periods",
        """
def local_sgd(comm, x, gradient, lr, period, steps, first):
    lengths = [1] * min(first, steps)
    while sum(lengths) < steps:
        lengths.append(min(period, steps - sum(lengths)))
    numbers = iter(range(steps))
    for length in lengths:
        for _ in range(length):
            x = x - lr * gradient(x, next(numbers))
        x = comm.all_reduce(x / comm.size)
    return x
""",
    ),
    Alternative(
        "local_sgd",
        "the mean of the movements since the last round",
        """
def local_sgd(comm, x, gradient, lr, period, steps, first):
    common, moved = x.copy(), np.zeros_like(x)
    left = 1 if first else period
    for step in range(steps):
        moved -= lr * gradient(common + moved, step)
        left -= 1
        if left == 0 or step + 1 == steps:
            own = comm.reduce_scatter(moved)
            moved = np.concatenate([np.ravel(each) for each in comm.all_gather(own)]) / comm.size
            common, moved = common + moved, np.zeros_like(x)
            left = 1 if step + 1 < first else period
    return common
""",
    ),
]
