"""Answers to `bucketed_all_reduce`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

SUMS = "every layer's sum, in the order of the layers"
KEPT = "the gradients stay as they are"
BUCKETS = "one all-reduce for each bucket, of the right size"
STARTS = "each starts as soon as its bucket is full"
ENDS = "all end as early as they can"

BUCKETED = """
def bucketed_all_reduce(comm, layers, bucket_bytes):
    bucket, in_flight = [], []

    def start():
        joined = np.concatenate(bucket)
        lengths = [len(gradient) for gradient in bucket]
        in_flight.append((comm.all_reduce(joined, async_op=True), joined, lengths))
        bucket.clear()

    for gradient in backward(comm, layers):
        bucket.append(gradient)
        if sum(gradient.nbytes for gradient in bucket) >= bucket_bytes:
            start()
    if bucket:
        start()
    sums = []
    for work, joined, lengths in in_flight:
        work.wait()
        sums += np.split(joined, np.cumsum(lengths)[:-1])
    return sums[::-1]
"""
FULL = "sum(gradient.nbytes for gradient in bucket) >= bucket_bytes"
BEGIN = "in_flight.append((comm.all_reduce(joined, async_op=True), joined, lengths))"
LAST = "    if bucket:\n        start()\n    sums"
FINISH = """    sums = []
    for work, joined, lengths in in_flight:
        work.wait()
"""

MUTANTS = [
    Mutant(
        "bucketed_all_reduce",
        "waits right after each all-reduce",
        changed(BUCKETED, BEGIN, BEGIN + "\n        in_flight[-1][0].wait()"),
        loses=(STARTS, ENDS),
        says="Did it wait for the all-reduce before?",
    ),
    Mutant(
        "bucketed_all_reduce",
        "not asynchronous",
        changed(
            BUCKETED,
            BEGIN,
            "comm.all_reduce(joined)\n        in_flight.append((None, joined, lengths))",
            "        work.wait()\n",
            "",
        ),
        loses=(STARTS, ENDS),
        says="Did it wait for the all-reduce before?",
    ),
    Mutant(
        "bucketed_all_reduce",
        "starts after backward",
        changed(BUCKETED, "in backward(comm, layers)", "in list(backward(comm, layers))"),
        loses=(STARTS, ENDS),
        says="All of them began after backward",
    ),
    Mutant(
        "bucketed_all_reduce",
        "one all-reduce for each gradient",
        changed(BUCKETED, FULL, "True"),
        loses=(BUCKETS, STARTS, ENDS),
        says="Every gradient has an all-reduce of its own",
    ),
    Mutant(
        "bucketed_all_reduce",
        "everything in one bucket",
        changed(BUCKETED, FULL, "False"),
        loses=(BUCKETS, STARTS, ENDS),
        says="All gradients are in one bucket",
    ),
    Mutant(
        "bucketed_all_reduce",
        "the last bucket is forgotten",
        changed(BUCKETED, LAST, "    sums"),
        loses=(SUMS, KEPT, BUCKETS, STARTS, ENDS),
        says="The last bucket need not be full",
    ),
    Mutant(
        "bucketed_all_reduce",
        "a bucket that holds exactly bucket_bytes is not full",
        changed(BUCKETED, FULL, FULL.replace(">=", ">")),
        loses=(BUCKETS,),
        says="A bucket that holds exactly bucket_bytes is full, too",
    ),
    Mutant(
        "bucketed_all_reduce",
        "the list goes from the last layer to the first",
        changed(BUCKETED, "sums[::-1]", "sums"),
        loses=(SUMS, KEPT),
        says="layer 0",
    ),
    Mutant(
        "bucketed_all_reduce",
        "odd ranks start their buckets in the reverse order",
        """
def bucketed_all_reduce(comm, layers, bucket_bytes):
    buckets = [[]]
    for gradient in backward(comm, layers):
        buckets[-1].append(gradient)
        if sum(each.nbytes for each in buckets[-1]) >= bucket_bytes:
            buckets.append([])
    buckets = [bucket for bucket in buckets if bucket]
    joined = [np.concatenate(bucket) for bucket in buckets]
    order = list(range(len(joined)))
    if comm.rank % 2:
        order.reverse()
    for work in [comm.all_reduce(joined[i], async_op=True) for i in order]:
        work.wait()
    sums = []
    for bucket, total in zip(buckets, joined):
        sums += np.split(total, np.cumsum([len(gradient) for gradient in bucket])[:-1])
    return sums[::-1]
""",
        loses=(SUMS, KEPT, BUCKETS, STARTS, ENDS),
        says="all_reduce",
        status=Status.RAISED,
    ),
    Mutant(
        "bucketed_all_reduce",
        "the first layer's gradient first",
        changed(BUCKETED, "in backward(comm, layers)", "in list(backward(comm, layers))[::-1]", "sums[::-1]", "sums"),
        loses=(BUCKETS, STARTS, ENDS),
        says="buckets",
    ),
    Mutant(
        "bucketed_all_reduce",
        "reduces gradients before they are computed",
        changed(
            BUCKETED,
            "in backward(comm, layers)",
            "in (gradient for gradient, _ in reversed(layers))",
            FINISH,
            "    for _ in backward(comm, layers):\n        pass\n" + FINISH,
        ),
        loses=(STARTS, ENDS),
        says="before its gradients were computed",
    ),
    Mutant(
        "bucketed_all_reduce",
        "a bucket is closed when the next gradient does not fit",
        changed(
            BUCKETED,
            "        bucket.append(gradient)\n        if " + FULL + ":\n            start()\n",
            "        if bucket and sum(each.nbytes for each in bucket) + gradient.nbytes > bucket_bytes:\n"
            "            start()\n        bucket.append(gradient)\n",
        ),
        loses=(BUCKETS, STARTS, ENDS),
        says="bucket",
    ),
    Mutant(
        "bucketed_all_reduce",
        "a full bucket starts when the next gradient is there",
        changed(
            BUCKETED,
            "        bucket.append(gradient)\n        if " + FULL + ":\n            start()\n",
            "        if " + FULL + ":\n            start()\n        bucket.append(gradient)\n",
        ).replace("if sum(gradient", "if bucket and sum(gradient"),
        loses=(STARTS, ENDS),
        says="Does it start only when the next gradient is there?",
    ),
    Mutant(
        "bucketed_all_reduce",
        "bytes taken for elements",
        changed(BUCKETED, "gradient.nbytes for", "len(gradient) for"),
        loses=(BUCKETS, STARTS, ENDS),
        says="expected",
    ),
    Mutant(
        "bucketed_all_reduce",
        "the mean of the ranks",
        changed(BUCKETED, "async_op=True)", 'op="mean", async_op=True)'),
        loses=(SUMS, KEPT),
        says="This is the mean",
    ),
    Mutant(
        "bucketed_all_reduce",
        "does not wait",
        changed(BUCKETED, "        work.wait()\n", ""),
        loses=(SUMS, KEPT),
        says="the sum was read before wait()",
    ),
    Mutant(
        "bucketed_all_reduce",
        "returns the buckets",
        changed(BUCKETED, "sums += np.split(joined, np.cumsum(lengths)[:-1])", "sums.append(joined)"),
        loses=(SUMS, KEPT, ENDS),
        says="These are the buckets",
    ),
    Mutant(
        "bucketed_all_reduce",
        "the gradients themselves are written into",
        changed(
            BUCKETED,
            "    return sums[::-1]",
            "    for (gradient, _), total in zip(layers, sums[::-1]):\n        gradient[...] = total\n"
            "    return [gradient for gradient, _ in layers]",
        ),
        loses=(KEPT,),
        says="the caller's gradient of layer 0 was changed",
    ),
    Mutant(
        "bucketed_all_reduce",
        "float32 on the way",
        changed(BUCKETED, "joined = np.concatenate(bucket)", "joined = np.concatenate(bucket).astype(np.float32)"),
        loses=(SUMS, KEPT, BUCKETS, STARTS, ENDS),
        says="expected an array of float64",
    ),
    Mutant(
        "bucketed_all_reduce",
        "an all-reduce of nothing when the last bucket is empty",
        changed(
            BUCKETED,
            "np.concatenate(bucket)",
            "np.concatenate([*bucket, np.zeros(0)])",
            LAST,
            "    start()\n    sums",
            "np.split(joined, np.cumsum(lengths)[:-1])",
            "np.split(joined, np.cumsum(lengths)[:-1]) if lengths else []",
        ),
        loses=(BUCKETS, STARTS),
        says="An all-reduce has no element",
    ),
    Mutant(
        "bucketed_all_reduce",
        "fails without layers",
        changed(BUCKETED, LAST, "    if bucket or not in_flight:\n        start()\n    sums"),
        loses=(SUMS, KEPT, BUCKETS),
        says="concatenate",
        status=Status.RAISED,
    ),
]

ALTERNATIVES = [
    Alternative(
        "bucketed_all_reduce",
        "the buckets are planned first; slices of one long vector",
        """
def bucketed_all_reduce(comm, layers, bucket_bytes):
    lengths = [len(gradient) for gradient, _ in layers]
    ends = np.cumsum(lengths)
    everything = np.zeros(sum(lengths))
    layer = upper = len(layers)
    works = []
    for gradient in backward(comm, layers):
        layer -= 1
        everything[ends[layer] - lengths[layer] : ends[layer]] = gradient
        if 8 * sum(lengths[layer:upper]) >= bucket_bytes or layer == 0:
            part = everything[ends[layer] - lengths[layer] : ends[upper - 1]]
            works.append(comm.all_reduce(part, async_op=True, label=str(len(works))))
            upper = layer
    for work in works:
        work.wait()
    return [everything[end - length : end] for length, end in zip(lengths, ends)]
""",
    ),
    Alternative(
        "bucketed_all_reduce",
        "one bucket array is filled at a time; the ring; waits in reverse order; a tuple",
        """
def bucketed_all_reduce(comm, layers, bucket_bytes):
    found, works, filling = {}, [], np.zeros(0)
    names = []
    for back, gradient in enumerate(backward(comm, layers), start=1):
        filling = np.append(filling, gradient)
        names.append(len(layers) - back)
        if 8 * len(filling) >= bucket_bytes or back == len(layers):
            works.append((comm.all_reduce(filling, algorithm="ring", async_op=True), filling, names))
            filling, names = np.zeros(0), []
    for work, joined, names in works[::-1]:
        work.wait()
        place = 0
        for layer in names:
            length = len(layers[layer][0])
            found[layer] = joined[place : place + length].copy()
            place += length
    return tuple(found[layer] for layer in range(len(layers)))
""",
    ),
]
