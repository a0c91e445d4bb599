"""Answers to `elastic`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def elastic(comm, x, centre, gradient, lr, alpha, period, steps):
    for step in range(steps):
        g = gradient(x, step)
        if step % period == 0:
            pull = alpha * (x - centre)
            moved = pull.copy()
            comm.all_reduce(moved)
            x = x - lr * g - pull
            centre = centre + moved
        else:
            x = x - lr * g
    return x, centre
"""
ONE = "one worker and the centre"
SEVERAL = "several workers: weights of their own, and one centre"
TOTAL = "pulls alone conserve the centre plus all workers"
ROUNDS = "one all-reduce of n words in every period-th step"


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str, status: Status = Status.WRONG) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("elastic", mistake, changed(RIGHT, *replacements), loses, says, status)


MUTANTS = [
    wrong(
        "the centre moves by the new weights (algorithm 1, line 14)",
        (ONE, SEVERAL, TOTAL),
        "weights before the step",
        "            moved = pull.copy()\n            comm.all_reduce(moved)\n            x = x - lr * g - pull\n",
        "            x = x - lr * g - pull\n            moved = alpha * (x - centre)\n"
        "            comm.all_reduce(moved)\n",
    ),
    wrong(
        "the centre moves by the mean of the pulls",
        (SEVERAL, TOTAL),
        "not by their mean",
        "centre + moved",
        "centre + moved / comm.size",
    ),
    wrong(
        "each worker moves a centre of its own",
        (SEVERAL, TOTAL, ROUNDS),
        "the pulls of all workers",
        "            comm.all_reduce(moved)\n",
        "",
    ),
    wrong(
        "alpha multiplied by the learning rate",
        (ONE, SEVERAL, TOTAL),
        "not multiplied by lr again",
        "pull = alpha",
        "pull = lr * alpha",
    ),
    wrong("the centre is pushed away", (ONE, SEVERAL, TOTAL), "the centre's pull is wrong", "+ moved", "- moved"),
    wrong("the workers are pushed away", (ONE, SEVERAL, TOTAL), "worker's pull is wrong", "- pull\n", "+ pull\n"),
    wrong(
        "the workers are pulled towards the new centre",
        (ONE, SEVERAL, TOTAL),
        "the new one",
        "            x = x - lr * g - pull\n            centre = centre + moved",
        "            centre = centre + moved\n            x = x - lr * g - alpha * (x - centre)",
    ),
    wrong(
        "the gradient after the pull",
        (ONE, SEVERAL),
        "before the pull",
        "        g = gradient(x, step)\n",
        "",
        "x = x - lr * g - pull",
        "x = x - pull\n            x = x - lr * gradient(x, step)",
        "            x = x - lr * g\n",
        "            x = x - lr * gradient(x, step)\n",
    ),
    wrong(
        "a pull in every step",
        (ONE, SEVERAL, ROUNDS),
        "whatever the period",
        "if step % period == 0",
        "if True",
    ),
    wrong(
        "the first pull after `period` steps",
        (ONE, SEVERAL, ROUNDS),
        "The first pull is in step 0",
        "step % period == 0",
        "(step + 1) % period == 0",
    ),
    wrong(
        "an all-reduce in every step, of zeros between pulls",
        (ROUNDS,),
        "a round in each step",
        "            x = x - lr * g\n",
        "            x = x - lr * g\n            comm.all_reduce(np.zeros_like(x))\n",
    ),
    wrong(
        "the centre has the gradients, too",
        (ONE, SEVERAL, ROUNDS),
        "The centre has no gradient",
        "            moved = pull.copy()",
        "            moved = pull - lr * g",
        "            x = x - lr * g\n",
        "            x = x - lr * g\n            s = lr * g\n            comm.all_reduce(s)\n"
        "            centre = centre - s\n",
    ),
    wrong(
        "the workers take the centre's weights",
        (ONE, SEVERAL, TOTAL),
        "keep weights of their own",
        "            centre = centre + moved\n",
        "            centre = centre + moved\n            x = centre.copy()\n",
    ),
    wrong(
        "the weights are gathered",
        (ROUNDS,),
        "no comm.all_gather",
        "            comm.all_reduce(moved)\n",
        "            moved = alpha * sum(each - centre for each in comm.all_gather(x))\n",
    ),
    wrong(
        "the arguments are changed",
        (ONE,),
        "changed its argument centre at [0]",
        "            centre = centre + moved\n",
        "            centre += moved\n",
    ),
    wrong(
        "the all-reduce writes the sum into the worker's pull",
        (SEVERAL, TOTAL),
        "writes into the array",
        "            moved = pull.copy()\n            comm.all_reduce(moved)\n",
        "            moved = comm.all_reduce(pull)\n",
    ),
    wrong(
        "the gradient at the centre",
        (ONE, SEVERAL),
        "not at the centre",
        "gradient(x, step)",
        "gradient(centre, step)",
    ),
    wrong("the results swapped", (ONE, SEVERAL, TOTAL), "in this order", "return x, centre", "return centre, x"),
    wrong(
        "an all-reduce for each half",
        (ROUNDS,),
        "takes one all-reduce",
        "            comm.all_reduce(moved)\n",
        "            comm.all_reduce(moved[:1])\n            comm.all_reduce(moved[1:])\n",
    ),
    wrong(
        "rank 0 alone sums",
        (SEVERAL, TOTAL, ROUNDS),
        "rank 0",
        "            comm.all_reduce(moved)\n",
        "            if comm.rank == 0:\n                comm.all_reduce(moved)\n",
        status=Status.STUCK,
    ),
]

ALTERNATIVES = [
    Alternative(
        "elastic",
        "the sum of the weights instead of the pulls, overlapped with the gradient",
        """
def elastic(comm, x, centre, gradient, lr, alpha, period, steps):
    for step in range(steps):
        before, total = x, x.copy()
        work = comm.all_reduce(total, async_op=True) if step % period == 0 else None
        x = before - lr * gradient(before, step)
        if work is not None:
            work.wait()
            x = x - alpha * (before - centre)
            centre = (1 - comm.size * alpha) * centre + alpha * total
    return [x, centre]
""",
    ),
    Alternative(
        "elastic",
        "a pull, then the rest of the period alone; reduce-scatter and all-gather",
        """
def elastic(comm, x, centre, gradient, lr, alpha, period, steps):
    x, centre = x.copy(), centre.copy()
    for first in range(0, steps, period):
        pull = alpha * (x - centre)
        own = comm.reduce_scatter(pull.copy())
        moved = np.concatenate([np.ravel(part) for part in comm.all_gather(own)])
        x -= lr * gradient(x, first) + pull
        centre += moved
        for step in range(first + 1, min(steps, first + period)):
            x -= lr * gradient(x, step)
    return x, centre
""",
    ),
]
