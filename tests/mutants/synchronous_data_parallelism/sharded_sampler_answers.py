ANSWERS = r"""
=== parts
once: every sample once an epoch over all ranks
even: the minibatches of the serial run, p divides batch_size
ragged: the minibatches of the serial run in even shards, p divides neither them nor the last one
=== base
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    order = epoch_order(n, seed, epoch)
    minibatches = [order[start : start + batch_size] for start in range(0, n, batch_size)]
    return [np.array_split(minibatch, p)[rank] for minibatch in minibatches]
=== wrong: every rank has a shuffle of its own :: all :: Each rank has a shuffle of its own
-    order = epoch_order(n, seed, epoch)
+    order = np.random.default_rng((seed, epoch, rank)).permutation(n)
=== wrong: the same shuffle in every epoch :: even, ragged :: Is the order of the epoch that of epoch_order
+    order = epoch_order(n, seed, 0)
=== wrong: no shuffle :: even, ragged :: These are the samples as they are stored
+    order = np.arange(n)
=== wrong: padding: samples are repeated until all shards are equally long :: once, ragged :: (padding)
     minibatches = [order[start : start + batch_size] for start in range(0, n, batch_size)]
+    minibatches = [np.resize(m, -(-len(m) // p) * p) for m in minibatches]
=== wrong: the last minibatch first :: even, ragged :: Return the shards in the order of the minibatches
+    minibatches.reverse()
=== wrong: drops the last, shorter minibatch :: once, ragged :: These are the samples of the last, shorter minibatch
-    minibatches = [order[start : start + batch_size] for start in range(0, n, batch_size)]
+    minibatches = [order[start : start + batch_size] for start in range(0, n - batch_size + 1, batch_size)]
=== wrong: shards of batch_size // p samples: the rest is dropped :: once, ragged :: the rest has to be read, too
-    return [np.array_split(minibatch, p)[rank] for minibatch in minibatches]
+    return [minibatch[rank * (batch_size // p) : (rank + 1) * (batch_size // p)] for minibatch in minibatches]
=== wrong: the first ranks take rounded-up shards, the last one has what is left :: ragged
:: the one that all others wait for
+    return [b[rank * -(-len(b) // p) : (rank + 1) * -(-len(b) // p)] for b in minibatches]
=== wrong: the last rank takes the whole rest :: ragged :: may differ by 1
+    return [b[rank * (len(b) // p) : (rank + 1) * (len(b) // p) if rank < p - 1 else None] for b in minibatches]
=== wrong: leaves out empty shards :: ragged :: returns an empty array for it
+    shards = [np.array_split(minibatch, p)[rank] for minibatch in minibatches]
+    return [shard for shard in shards if len(shard)]
=== wrong: returns the shards of all ranks :: all :: expected an array of sample numbers
+    return [np.array_split(minibatch, p) for minibatch in minibatches]
=== wrong: the epoch is shared out first, in blocks :: even, ragged :: The epoch was shared out first
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    own = np.array_split(epoch_order(n, seed, epoch), p)[rank]
    count = -(-n // batch_size)
    return np.array_split(own, count) if count else []
=== wrong: batch_size samples on every rank :: even, ragged :: batch_size counts the samples of all ranks together
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    own = epoch_order(n, seed, epoch)[rank::p]
    return [own[start : start + batch_size] for start in range(0, len(own), batch_size)]
=== wrong: one array for the whole epoch :: all :: expected a list of arrays
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    return epoch_order(n, seed, epoch)[rank::p]
=== wrong: uses the library's sampler :: all :: may not be used in sharded_sampler :: raised
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    from minidl.data import DistributedSampler

    own = np.array(list(DistributedSampler(n, p, rank, order=lambda e: epoch_order(n, seed, epoch))))
    return np.array_split(own, max(1, -(-n // batch_size)))
=== wrong: sample numbers of one byte :: once, even :: cut to a smaller type
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    order = epoch_order(n, seed, epoch).astype(np.uint8)
    return [np.array_split(order[i : i + batch_size], p)[rank] for i in range(0, n, batch_size)]
=== wrong: the order is remembered for another seed :: even, ragged :: epoch_order(n, seed, epoch)
KNOWN = {}

def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    order = KNOWN.setdefault((n, epoch), epoch_order(n, seed, epoch))
    return [np.array_split(order[i : i + batch_size], p)[rank] for i in range(0, n, batch_size)]
=== right: every p-th sample of a minibatch, as lists
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    order = epoch_order(n, seed, epoch)
    minibatches = [order[start : start + batch_size] for start in range(0, n, batch_size)]
    return [list(minibatch[rank::p]) for minibatch in minibatches]
=== right: the ranks take turns at the longer shards, in a tuple
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    position = np.argsort(epoch_order(n, seed, epoch))  # of each sample in the epoch
    minibatch, within = position // batch_size, position % batch_size
    return tuple(
        np.flatnonzero((minibatch == k) & (within % p == (rank + k) % p)) for k in range(-(-n // batch_size))
    )
=== right: a loop that deals one sample after the other
def sharded_sampler(n, batch_size, p, rank, seed, epoch):
    shards = []
    for place, sample in enumerate(epoch_order(n, seed, epoch)):
        if place % batch_size == 0:
            shards.append([])
        if (place % batch_size) % p == p - 1 - rank:
            shards[-1].append(int(sample))
    return [np.array(shard, dtype=int) for shard in shards]
"""
