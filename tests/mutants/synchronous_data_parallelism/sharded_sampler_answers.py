"""Answers to `sharded_sampler`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

ONCE = "every sample once an epoch over all ranks"
EVEN = "the minibatches of the serial run, p divides batch_size"
RAGGED = "the minibatches of the serial run in even shards, p divides neither them nor the last one"

SAMPLER = """
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    order = epoch_order(n, seed, epoch)
    minibatches = [order[start : start + batch_size] for start in range(0, n, batch_size)]
    return [np.array_split(minibatch, p)[rank] for minibatch in minibatches]
"""
SHARD = "np.array_split(minibatch, p)[rank]"

MUTANTS = [
    Mutant(
        "sharded_sampler",
        "every rank has a shuffle of its own",
        changed(SAMPLER, "epoch_order(n, seed, epoch)", "np.random.default_rng((seed, epoch, rank)).permutation(n)"),
        loses=(ONCE, EVEN, RAGGED),
        says="Each rank has a shuffle of its own",
    ),
    Mutant(
        "sharded_sampler",
        "padding: samples are repeated until all shards are equally long",
        changed(
            SAMPLER,
            "    return",
            "    minibatches = [np.resize(m, -(-len(m) // p) * p) for m in minibatches]\n    return",
        ),
        loses=(ONCE, RAGGED),
        says="(padding)",
    ),
    Mutant(
        "sharded_sampler",
        "drops the last, shorter minibatch",
        changed(SAMPLER, "range(0, n, batch_size)", "range(0, n - batch_size + 1, batch_size)"),
        loses=(ONCE, RAGGED),
        says="These are the samples of the last, shorter minibatch",
    ),
    Mutant(
        "sharded_sampler",
        "shards of batch_size // p samples: the rest is dropped",
        changed(SAMPLER, SHARD, "minibatch[rank * (batch_size // p) : (rank + 1) * (batch_size // p)]"),
        loses=(ONCE, RAGGED),
        says="the rest has to be read, too",
    ),
    Mutant(
        "sharded_sampler",
        "the epoch is shared out first, in blocks",
        """
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    own = np.array_split(epoch_order(n, seed, epoch), p)[rank]
    count = -(-n // batch_size)
    return np.array_split(own, count) if count else []
""",
        loses=(EVEN, RAGGED),
        says="The epoch was shared out first",
    ),
    Mutant(
        "sharded_sampler",
        "batch_size samples on every rank",
        """
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    own = epoch_order(n, seed, epoch)[rank::p]
    return [own[start : start + batch_size] for start in range(0, len(own), batch_size)]
""",
        loses=(EVEN, RAGGED),
        says="batch_size counts the samples of all ranks together",
    ),
    Mutant(
        "sharded_sampler",
        "the same shuffle in every epoch",
        changed(SAMPLER, "epoch_order(n, seed, epoch)", "epoch_order(n, seed, 0)"),
        loses=(EVEN, RAGGED),
        says="Is the order of the epoch that of epoch_order",
    ),
    Mutant(
        "sharded_sampler",
        "no shuffle",
        changed(SAMPLER, "epoch_order(n, seed, epoch)", "np.arange(n)"),
        loses=(EVEN, RAGGED),
        says="These are the samples as they are stored",
    ),
    Mutant(
        "sharded_sampler",
        "the first ranks take rounded-up shards, the last one has what is left",
        changed(SAMPLER, SHARD, "minibatch[rank * -(-len(minibatch) // p) : (rank + 1) * -(-len(minibatch) // p)]"),
        loses=(RAGGED,),
        says="the one that all others wait for",
    ),
    Mutant(
        "sharded_sampler",
        "the last rank takes the whole rest",
        changed(
            SAMPLER,
            SHARD,
            "minibatch[rank * (len(minibatch) // p) : (rank + 1) * (len(minibatch) // p) if rank < p - 1 else None]",
        ),
        loses=(RAGGED,),
        says="may differ by 1",
    ),
    Mutant(
        "sharded_sampler",
        "leaves out empty shards",
        changed(
            SAMPLER,
            "    return [",
            "    shards = [",
            "for minibatch in minibatches]",
            "for minibatch in minibatches]\n    return [shard for shard in shards if len(shard)]",
        ).replace("return [shard for shard in shards if len(shard)]\n    return", "return"),
        loses=(RAGGED,),
        says="returns an empty array for it",
    ),
    Mutant(
        "sharded_sampler",
        "the last minibatch first",
        changed(SAMPLER, "    return [", "    minibatches.reverse()\n    return ["),
        loses=(EVEN, RAGGED),
        says="Return the shards in the order of the minibatches",
    ),
    Mutant(
        "sharded_sampler",
        "one array for the whole epoch",
        "def sharded_sampler(n, batch_size, p, rank, seed, epoch):\n    return epoch_order(n, seed, epoch)[rank::p]",
        loses=(ONCE, EVEN, RAGGED),
        says="expected a list of arrays",
    ),
    Mutant(
        "sharded_sampler",
        "returns the shards of all ranks",
        changed(SAMPLER, SHARD, "np.array_split(minibatch, p)"),
        loses=(ONCE, EVEN, RAGGED),
        says="expected an array of sample numbers",
    ),
    Mutant(
        "sharded_sampler",
        "forgets to return",
        changed(SAMPLER, "    return [", "    ["),
        loses=(ONCE, EVEN, RAGGED),
        says="without a `return`",
    ),
    Mutant(
        "sharded_sampler",
        "uses the library's sampler",
        """
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    from minidl.data import DistributedSampler

    own = np.array(list(DistributedSampler(n, p, rank, order=lambda e: epoch_order(n, seed, epoch))))
    return np.array_split(own, max(1, -(-n // batch_size)))
""",
        loses=(ONCE, EVEN, RAGGED),
        says="may not be used in sharded_sampler",
        status=Status.RAISED,
    ),
]

ALTERNATIVES = [
    Alternative(
        "sharded_sampler",
        "every p-th sample of a minibatch, as lists",
        changed(SAMPLER, SHARD, "list(minibatch[rank::p])"),
    ),
    Alternative(
        "sharded_sampler",
        "the ranks take turns at the longer shards, in a tuple",
        """
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    position = np.argsort(epoch_order(n, seed, epoch))  # of each sample in the epoch
    minibatch, within = position // batch_size, position % batch_size
    return tuple(
        np.flatnonzero((minibatch == k) & (within % p == (rank + k) % p)) for k in range(-(-n // batch_size))
    )
""",
    ),
    Alternative(
        "sharded_sampler",
        "a loop that deals one sample after the other",
        """
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    shards = []
    for place, sample in enumerate(epoch_order(n, seed, epoch)):
        if place % batch_size == 0:
            shards.append([])
        if (place % batch_size) % p == p - 1 - rank:
            shards[-1].append(int(sample))
    return [np.array(shard, dtype=int) for shard in shards]
""",
    ),
]
