"""Answers to `data_parallel_step`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

EVEN = "the serial run's steps, p divides the minibatch"
RAGGED = "the serial run's steps, uneven shards and ranks without samples"
ONE = "one all-reduce of d numbers, and nothing else"
BITS = "the same weights on all ranks, to the bit"
KEPT = "the arguments stay as they are"

STEP = """
def data_parallel_step(comm, w, v, x, y, total, lr, momentum, weight_decay):
    g = len(x) / total * mean_gradient(w, x, y) if len(x) else np.zeros_like(w)
    comm.all_reduce(g)
    v = momentum * v + g + weight_decay * w
    return w - lr * v, v
"""
SHARE = "len(x) / total * mean_gradient(w, x, y) if len(x) else np.zeros_like(w)"
MEAN = "mean_gradient(w, x, y) if len(x) else np.zeros_like(w)"
UPDATE = "    v = momentum * v + g + weight_decay * w\n    return w - lr * v, v"

MUTANTS = [
    Mutant(
        "data_parallel_step",
        "mean of the ranks' means",
        changed(STEP, SHARE, MEAN, "comm.all_reduce(g)", 'comm.all_reduce(g, op="mean")'),
        loses=(RAGGED,),
        says="This is a mean of the ranks' means",
    ),
    Mutant(
        "data_parallel_step",
        "sum instead of mean: normalised by n, not by kn",
        changed(STEP, SHARE, MEAN),
        loses=(EVEN, RAGGED),
        says="the serial run divides by the whole minibatch",
    ),
    Mutant(
        "data_parallel_step",
        "sum over all samples",
        changed(STEP, "len(x) / total", "len(x)"),
        loses=(EVEN, RAGGED),
        says="divide by `total`",
    ),
    Mutant(
        "data_parallel_step",
        "weight decay once for every rank",
        changed(STEP, "g = len(x)", "g = weight_decay * w + len(x)", " + weight_decay * w\n    return", "\n    return"),
        loses=(EVEN, RAGGED),
        says="Weight decay came in once for every rank",
    ),
    Mutant(
        "data_parallel_step",
        "no weight decay",
        changed(STEP, " + weight_decay * w", ""),
        loses=(EVEN, RAGGED),
        says="Weight decay is missing",
    ),
    Mutant(
        "data_parallel_step",
        "momentum without correction: the velocity has the learning rate in it",
        changed(STEP, UPDATE, "    v = momentum * v + lr * (g + weight_decay * w)\n    return w - v, v"),
        loses=(EVEN, RAGGED),
        says="momentum correction",
    ),
    Mutant(
        "data_parallel_step",
        "the velocities are added up",
        changed(
            STEP,
            "    comm.all_reduce(g)\n" + UPDATE,
            "    v = momentum * v + g + weight_decay * w / comm.size\n    comm.all_reduce(v)\n    return w - lr * v, v",
        ),
        loses=(EVEN, RAGGED),
        says="The velocities of all ranks were added",
    ),
    Mutant(
        "data_parallel_step",
        "the weights are averaged, each velocity is left as it was",
        """
def data_parallel_step(comm, w, v, x, y, total, lr, momentum, weight_decay):
    g = comm.size * len(x) / total * mean_gradient(w, x, y) if len(x) else np.zeros_like(w)
    v = momentum * v + g + weight_decay * w
    w = w - lr * v
    return comm.all_reduce(w, op="mean"), v
""",
        loses=(EVEN, RAGGED, BITS, KEPT),
        says="were the weights averaged",
    ),
    Mutant(
        "data_parallel_step",
        "every rank for itself",
        changed(STEP, SHARE, MEAN, "    comm.all_reduce(g)\n", ""),
        loses=(EVEN, RAGGED, ONE, BITS, KEPT),
        says="nothing was all-reduced",
    ),
    Mutant(
        "data_parallel_step",
        "the sum is made and not used",
        changed(STEP, SHARE, MEAN, "comm.all_reduce(g)", "comm.all_reduce(g.copy())"),
        loses=(EVEN, RAGGED, ONE, BITS, KEPT),
        says="nothing was all-reduced",
    ),
    Mutant(
        "data_parallel_step",
        "rank 0 updates and broadcasts the weights",
        """
def data_parallel_step(comm, w, v, x, y, total, lr, momentum, weight_decay):
    g = len(x) / total * mean_gradient(w, x, y) if len(x) else np.zeros_like(w)
    comm.reduce(g, dst=0)
    w, v = w.copy(), v.copy()
    if comm.rank == 0:
        v = momentum * v + g + weight_decay * w
        w = w - lr * v
    comm.broadcast(w)
    comm.broadcast(v)
    return w, v
""",
        loses=(ONE,),
        says="got comm.broadcast",
    ),
    Mutant(
        "data_parallel_step",
        "two all-reduces: the gradient, and the number of samples",
        changed(
            STEP,
            "    comm.all_reduce(g)\n",
            "    comm.all_reduce(g)\n    g = g * total / comm.all_reduce(np.array([float(len(x))]))[0]\n",
        ),
        loses=(ONE,),
        says="`total` is an argument",
    ),
    Mutant(
        "data_parallel_step",
        "a rank without samples takes no part",
        changed(STEP, "    g = " + SHARE, "    if len(x) == 0:\n        return w, v\n    g = " + SHARE),
        loses=(RAGGED,),
        says="had returned",
        status=Status.STUCK,
    ),
    Mutant(
        "data_parallel_step",
        "the gradient of no samples",
        changed(STEP, " if len(x) else np.zeros_like(w)", ""),
        loses=(RAGGED,),
        says="no sample, so there is no mean",
        status=Status.RAISED,
    ),
    Mutant(
        "data_parallel_step",
        "in place, into the caller's arrays",
        changed(STEP, UPDATE, "    v *= momentum\n    v += g + weight_decay * w\n    w -= lr * v\n    return w, v"),
        loses=(KEPT,),
        says="the caller's w was changed",
    ),
    Mutant(
        "data_parallel_step",
        "float32 on the way",
        changed(STEP, "    comm.all_reduce(g)", "    g = comm.all_reduce(g.astype(np.float32)).astype(float)"),
        loses=(EVEN, RAGGED, ONE),
        says="to float32 perhaps",
    ),
    Mutant(
        "data_parallel_step",
        "all gradients are gathered, and added up with the own one first",
        changed(
            STEP,
            "    comm.all_reduce(g)\n",
            "    every = comm.all_gather(g)\n    g = every[comm.rank].copy()\n"
            "    for i in range(1, comm.size):\n        g += every[(comm.rank + i) % comm.size]\n",
        ),
        loses=(ONE, BITS, KEPT),
        says="got comm.all_gather",
    ),
    Mutant(
        "data_parallel_step",
        "decoupled weight decay",
        changed(STEP, UPDATE, "    v = momentum * v + g\n    return w - lr * v - lr * weight_decay * w, v"),
        loses=(EVEN, RAGGED),
        says="Weight decay is to go through the velocity",
    ),
    Mutant(
        "data_parallel_step",
        "returns the weights alone",
        changed(STEP, "return w - lr * v, v", "return w - lr * v"),
        loses=(EVEN, RAGGED, ONE, BITS, KEPT),
        says="expected (w, v)",
    ),
    Mutant(
        "data_parallel_step",
        "an all-reduce, and no training",
        "def data_parallel_step(comm, w, v, *rest):\n    comm.all_reduce(np.zeros_like(w))\n    return w, v",
        loses=(EVEN, RAGGED, ONE, BITS, KEPT),
        says="The weights are as they were",
    ),
]

ALTERNATIVES = [
    Alternative(
        "data_parallel_step",
        "a mean of the ranks with weights p len(x) / total; weight decay goes in before it, once on average",
        """
def data_parallel_step(comm, w, v, x, y, total, lr, momentum, weight_decay):
    g = weight_decay * w
    if len(x):
        g += comm.size * len(x) / total * mean_gradient(w, x, y)
    g = comm.all_reduce(g, op="mean", algorithm="ring")
    new_v = momentum * v + g
    return w - lr * new_v, new_v
""",
    ),
    Alternative(
        "data_parallel_step",
        "the sum over the samples, asynchronously; its own gradient formula",
        """
def data_parallel_step(comm, w, v, x, y, total, lr, momentum, weight_decay):
    g = x.T @ (1 / (1 + np.exp(-(x @ w))) - y)
    comm.all_reduce(g, async_op=True).wait()
    v = momentum * v + (g / total + weight_decay * w)
    return [w - lr * v, v]
""",
    ),
]
