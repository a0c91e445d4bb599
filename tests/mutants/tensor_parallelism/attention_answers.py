"""Answers to `attention`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def attention(comm, x, wqkv, wo, heads):
    p, d = comm.size, x.shape[1]
    if heads % p:
        raise ValueError(f"{heads} heads cannot be divided over {p} ranks")
    width = d // heads
    y = np.zeros_like(x)
    for i in range(comm.rank * heads // p, (comm.rank + 1) * heads // p):
        columns = np.arange(i * width, (i + 1) * width)
        q, k, v = x @ wqkv[:, columns], x @ wqkv[:, d + columns], x @ wqkv[:, 2 * d + columns]
        y += one_head(q, k, v) @ wo[columns, :]
    comm.all_reduce(y)
    return y
"""
OUTPUT = "y, whole on each rank"
TRAFFIC = "one all-reduce of T d words, and nothing else"
READS = "each rank reads its heads' weights only"
UNEVEN = "heads that p does not divide are refused"


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str, status: Status = Status.WRONG) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("attention", mistake, changed(RIGHT, *replacements), loses, says, status)


CHECK = '    if heads % p:\n        raise ValueError(f"{heads} heads cannot be divided over {p} ranks")\n'

MUTANTS = [
    wrong("uneven heads are computed", (UNEVEN,), "Each rank refuses it", CHECK, ""),
    wrong(
        "rank 0 alone refuses",
        (UNEVEN,),
        "Each rank refuses it",
        "    if heads % p:\n",
        "    if heads % p and comm.rank == 0:\n",
    ),
    wrong(
        "rank 0 alone refuses, the others return",
        (UNEVEN,),
        "expected a ValueError with the numbers",
        "    width = d // heads\n",
        "    width = d // heads\n    if heads % p:\n        return x\n",
        "    if heads % p:\n        raise",
        "    if heads % p and comm.rank == 0:\n        raise",
    ),
    wrong(
        "an all-reduce before heads are refused",
        (UNEVEN,),
        "Each rank refuses it",
        "    if heads % p:\n",
        "    if heads % p:\n        comm.all_reduce(np.ones(1))\n",
    ),
    wrong("no sum", (OUTPUT, TRAFFIC, READS), "This is a partial sum", "    comm.all_reduce(y)\n", ""),
    wrong("the mean of the ranks", (OUTPUT, READS), "the mean over the ranks", "return y", "return y / p"),
    wrong(
        "heads of another error",
        (UNEVEN,),
        "how many heads and how many ranks",
        'ValueError(f"{heads} heads cannot be divided over {p} ranks")',
        'ValueError("does not fit")',
    ),
    wrong("an assertion", (UNEVEN,), "expected a ValueError", CHECK, "    assert heads % p == 0\n"),
    wrong(
        "one consecutive block of Q, K and V",
        (OUTPUT, READS),
        "no consecutive block",
        "q, k, v = x @ wqkv[:, columns], x @ wqkv[:, d + columns], x @ wqkv[:, 2 * d + columns]",
        "own, first = d // p, 3 * comm.rank * d // p - comm.rank * d // p\n"
        "        q, k, v = (x @ wqkv[:, first + n * own + columns] for n in range(3))",
    ),
    wrong(
        "Q, K and V of a head next to each other",
        (OUTPUT, READS),
        "of Q",
        "q, k, v = x @ wqkv[:, columns], x @ wqkv[:, d + columns], x @ wqkv[:, 2 * d + columns]",
        "start = 3 * i * width\n        q, k, v = np.split(x @ wqkv[:, start : start + 3 * width], 3, axis=1)",
    ),
    wrong(
        "the heads of a rank as one wide head",
        (OUTPUT, READS),
        "as one wide head",
        "width = d // heads",
        "width, heads = d // p, p",
    ),
    wrong("whole wo", (READS,), "has room for", "wo[columns, :]", "wo[:, :][columns]", status=Status.RAISED),
    wrong(
        "whole wqkv",
        (READS,),
        "has room for",
        "y = np.zeros_like(x)",
        "y = np.zeros_like(x)\n    all_of_it = wqkv[:, :]",
        status=Status.RAISED,
    ),
    wrong(
        "every head on every rank",
        (OUTPUT, READS),
        "attention on rank",
        "range(comm.rank * heads // p, (comm.rank + 1) * heads // p)",
        "range(heads)",
    ),
    wrong("keys and values interchanged", (OUTPUT, READS), "K and V are interchanged", "q, k, v =", "q, v, k ="),
    wrong(
        "an all-reduce for each head",
        (TRAFFIC,),
        "only y is a partial sum",
        "        y += one_head(q, k, v) @ wo[columns, :]\n    comm.all_reduce(y)\n",
        "        z = one_head(q, k, v) @ wo[columns, :]\n        comm.all_reduce(z)\n        y += z\n",
    ),
    wrong(
        "the outputs of heads are gathered",
        (TRAFFIC,),
        "no comm.all_gather",
        "    comm.all_reduce(y)\n",
        "    y = sum(comm.all_gather(y))\n",
    ),
    wrong("without wo", (OUTPUT, READS), "", " @ wo[columns, :]", " @ np.eye(d)[columns]"),
]

ALTERNATIVES = [
    Alternative(
        "attention",
        "all heads of a rank in one product",
        """
def attention(comm, x, wqkv, wo, heads):
    own, rest = divmod(heads, comm.size)
    if rest:
        raise ValueError("number of heads " + str(heads) + ", ranks " + str(comm.size))
    T, d = x.shape
    n = d // comm.size
    first = comm.rank * n
    q, k, v = ((x @ wqkv[:, s : s + n]).reshape(T, own, -1) for s in (first, d + first, 2 * d + first))
    scores = np.einsum("thc,shc->hts", q, k) / np.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(-1, keepdims=True))
    a = np.einsum("hts,shc->thc", e / e.sum(-1, keepdims=True), v).reshape(T, n)
    return comm.all_reduce(a @ wo[first : first + n])
""",
    ),
    Alternative(
        "attention",
        "heads as a list, and one index of all columns",
        """
def attention(comm, x, wqkv, wo, heads):
    if heads % comm.size != 0:
        raise ValueError(f"{comm.size} ranks, {heads} heads")
    d = x.shape[1]
    own = np.array_split(np.arange(d), comm.size)[comm.rank]
    product = x @ wqkv[:, np.concatenate([own, own + d, own + 2 * d])]
    q, k, v = np.split(product, 3, axis=1)
    count = heads // comm.size
    a = np.hstack([one_head(*each) for each in zip(*(np.split(m, count, axis=1) for m in (q, k, v)))])
    y = a @ wo[own, :]
    comm.all_reduce(y)
    return y
""",
    ),
]
