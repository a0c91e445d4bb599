ANSWERS = r"""
=== parts
once: every sample once an epoch, in batches of batch_size, the last one with the rest
repeatable: the seed and the epoch alone decide on the shuffle
own shuffle: every epoch and every seed has a shuffle of its own
=== base
def minibatches(n, batch_size, seed, epoch):
    order = np.random.default_rng((seed, epoch)).permutation(n)
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
=== wrong: indices of one byte :: once :: wraps round
-    order = np.random.default_rng((seed, epoch)).permutation(n)
+    order = np.random.default_rng((seed, epoch)).permutation(n).astype(np.int8)
=== wrong: small multiples of seed and epoch are added :: own shuffle :: give the generator the same number
+    order = np.random.default_rng(31 * seed + 17 * epoch).permutation(n)
=== wrong: seed and epoch in one float :: own shuffle :: have the same batches
+    order = np.random.default_rng(int(seed * 2.0**32 + epoch)).permutation(n)
=== wrong: draws with replacement :: all :: drawn with replacement
+    order = np.random.default_rng((seed, epoch)).integers(0, max(n, 1), n)
=== wrong: counts from 1 :: once :: Indices count from 0
+    order = np.random.default_rng((seed, epoch)).permutation(n) + 1
=== wrong: without a shuffle :: repeatable, own shuffle :: They were not shuffled
+    order = np.arange(n)
=== wrong: the same order in every epoch :: own shuffle :: Does the generator depend on the epoch
+    order = np.random.default_rng(seed).permutation(n)
=== wrong: the seed is not used :: own shuffle :: Does the generator depend on the seed?
+    order = np.random.default_rng(epoch).permutation(n)
=== wrong: unseeded :: repeatable :: The generator is not made from seed and epoch
+    order = np.random.default_rng().permutation(n)
=== wrong: turns the order round :: own shuffle :: a sample is followed by its neighbour
+    order = np.roll(np.arange(n), np.random.default_rng((seed, epoch)).integers(1, max(n, 2)))
=== wrong: seed + epoch :: own shuffle :: as with seed + epoch
+    order = np.random.default_rng(seed + epoch).permutation(n)
=== wrong: seed and epoch in either order :: own shuffle :: Two pairs of seed and epoch
+    order = np.random.default_rng(sorted((seed, epoch))).permutation(n)
=== wrong: digits behind one another :: own shuffle :: Two pairs of seed and epoch
+    order = np.random.default_rng(int(str(seed) + str(epoch))).permutation(n)
=== wrong: the global generator is seeded :: repeatable :: has drawn from the global generator np.random, or seeded it
+    np.random.seed((seed, epoch))
+    order = np.random.permutation(n)
=== wrong: hash() of a text :: repeatable :: What hash() gives for a text, and os.getpid(), differ
+    order = np.random.default_rng(abs(hash(f'{seed}, {epoch}'))).permutation(n)
=== wrong: one shuffle, every other epoch backwards :: own shuffle :: has the order of epoch 0, rotated or reversed
+    order = np.roll(np.random.default_rng(seed).permutation(n), epoch // 2)[:: 1 - 2 * (epoch % 2)]
=== wrong: in the order in which they lie, backwards :: own shuffle :: Blocks were moved
+    order = np.roll(np.arange(n)[::-1], 1000 * seed + epoch)
=== wrong: in equal steps :: own shuffle :: is followed by the one 7 further
+    shuffled = np.random.default_rng((seed, epoch)).permutation(n)
+    order = (np.arange(n) * 7 + 11 * seed + epoch) % n if n % 7 else shuffled
=== wrong: a small buffer :: own shuffle :: as with a small buffer
+    rng, order, buffer = np.random.default_rng((seed, epoch)), [], []
+    for i in range(n):
+        buffer.append(i)
+        if len(buffer) == 5:
+            order.append(buffer.pop(rng.integers(5)))
+    order += [buffer[i] for i in rng.permutation(len(buffer))]
=== wrong: a few samples change places :: own shuffle :: Every epoch needs a shuffle of its own
+    order, rng = np.random.default_rng(seed).permutation(n), np.random.default_rng((seed, epoch))
+    for i in range(0, n, 10):
+        j = rng.integers(n)
+        order[[i, j]] = order[[j, i]]
=== wrong: the first sample stays :: own shuffle :: sample 0 has place 0 in every epoch
+    order = np.append(0, 1 + np.random.default_rng((seed, epoch)).permutation(n - 1)) if n else []
=== wrong: seed * 31 + epoch :: own shuffle :: as with seed + epoch or 1000 * seed + epoch
+    order = np.random.default_rng(seed * 31 + epoch).permutation(n)
=== wrong: the low bits of the seed :: own shuffle :: the whole seed, and not on a remainder of it
+    order = np.random.default_rng((seed % 2**16, epoch)).permutation(n)
=== wrong: the remainder of the epoch :: own shuffle :: the whole epoch, and not on a remainder of it
+    order = np.random.default_rng((seed, epoch % 256)).permutation(n)
=== wrong: every sample changes its place (Sattolo) :: own shuffle :: never came
+    rng, order = np.random.default_rng((seed, epoch)), np.arange(n)
+    for i in range(n - 1, 0, -1):
+        j = int(rng.integers(i))
+        order[[i, j]] = order[[j, i]]
=== wrong: one rearrangement, applied again in each epoch :: own shuffle :: One rearrangement was applied again
+    again = np.random.default_rng(seed).permutation(n)
+    order = again
+    for _ in range(epoch):
+        order = order[again]
=== wrong: the number of the process :: repeatable :: os.getpid(), differ from process to process
+    order = np.random.default_rng((seed, epoch, __import__('os').getpid())).permutation(n)
=== wrong: one array for all batches :: repeatable :: changed the batches of an earlier epoch
-    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
+    kept = minibatches.__dict__.setdefault(n, order)
+    kept[:] = order
+    return [kept[i : i + batch_size] for i in range(0, n, batch_size)]
=== wrong: drops the ragged last batch :: once :: The last batch, which is smaller than the others, was left out
+    return [order[i : i + batch_size] for i in range(0, n - batch_size + 1, batch_size)]
=== wrong: fills up the last batch from the beginning :: once :: The last batch was filled up
+    return [np.resize(order, -(-n // batch_size) * batch_size)[i : i + batch_size] for i in range(0, n, batch_size)]
=== wrong: evens the batches out :: once :: The batches were made equally large
+    return np.array_split(order, -(-n // batch_size)) if n else []
=== wrong: loses the last full batch :: once :: The last full batch was left out
+    rest = [order[n - n % batch_size :]] if n % batch_size else []
+    return [order[i : i + batch_size] for i in range(0, n - batch_size, batch_size)] + rest
=== wrong: an empty batch at the end :: once :: There is an empty batch
+    return [order[i : i + batch_size] for i in range(0, n + 1, batch_size)]
=== wrong: the order, not cut :: all :: The order was not cut into batches
+    return order
=== wrong: batch_size batches :: once :: it is the size of each, not their number
+    return [order[i::batch_size] for i in range(batch_size)]
=== wrong: never ends :: once :: the epoch ends when each was used once
+    while n:
+        yield from (order[i : i + batch_size] for i in range(0, n, batch_size))
=== wrong: the smaller batch first :: once :: The smaller batch came first
+    rest = [order[: n % batch_size]] if n % batch_size else []
+    return rest + [order[i : i + batch_size] for i in range(n % batch_size, n, batch_size)]
=== wrong: an order that is kept by seed and epoch :: once, own shuffle :: expected
orders = {}

def minibatches(n, batch_size, seed, epoch):
    order = orders.setdefault((seed, epoch), np.random.default_rng((seed, epoch)).permutation(n))
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
=== wrong: a generator that lives on between calls :: repeatable :: it lives on from one call to the next
generators = {}

def minibatches(n, batch_size, seed, epoch):
    rng = generators.setdefault(seed, np.random.default_rng(seed))
    order = rng.permutation(n)
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
=== wrong: shuffles within the batches :: own shuffle :: Each batch was shuffled by itself
def minibatches(n, batch_size, seed, epoch):
    order = np.random.default_rng((seed, epoch))
    return [order.permutation(np.arange(n)[i : i + batch_size]) for i in range(0, n, batch_size)]
=== wrong: minidl's loader :: all :: minidl.data.loader.DataLoader may not be used in minibatches :: raised
def minibatches(n, batch_size, seed, epoch):
    loader = data.DataLoader(data.Dataset(np.arange(n), np.arange(n)), batch_size, shuffle=True, seed=seed)
    loader.set_epoch(epoch)
    return (batch.x for batch in loader)
=== wrong: Python's global generator is seeded :: repeatable :: has drawn from the global generator random, or seeded it
import random

def minibatches(n, batch_size, seed, epoch):
    random.seed(f'{seed} {epoch}')
    order = random.sample(range(n), n)
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
=== wrong: the global generator was seeded once, in a cell :: repeatable :: it lives on from one call to the next
np.random.seed(0)

def minibatches(n, batch_size, seed, epoch):
    order = np.random.permutation(n)
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
=== wrong: the clock :: repeatable :: The clock decides on the order
import time

def minibatches(n, batch_size, seed, epoch):
    order = np.random.default_rng((seed, epoch, int(time.time()) // 86400)).permutation(n)
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
=== wrong: one shuffle, cut once, its batches shuffled :: own shuffle
:: The order of the batches was shuffled; shuffle the samples
def minibatches(n, batch_size, seed, epoch):
    order = np.random.default_rng(seed).permutation(n)
    full = [order[i : i + batch_size] for i in range(0, n - n % batch_size, batch_size)]
    full = [full[i] for i in np.random.default_rng((seed, epoch)).permutation(len(full))]
    return full + ([order[n - n % batch_size :]] if n % batch_size else [])
=== wrong: each batch drawn from all samples :: all :: or each batch from all samples
def minibatches(n, batch_size, seed, epoch):
    order = np.random.default_rng((seed, epoch))
    return [order.choice(n, min(batch_size, n - i), replace=False) for i in range(0, n, batch_size)]
=== wrong: the even samples first :: own shuffle :: never came
     order = np.random.default_rng((seed, epoch)).permutation(n)
+    order = order[np.argsort(order % 2, kind='stable')]
=== right: a generator of tuples, Python's own random numbers
import random

def minibatches(n, batch_size, seed, epoch):
    order = list(range(n))
    random.Random(f"{seed}, {epoch}").shuffle(order)
    while order:
        yield tuple(order[:batch_size])
        order = order[batch_size:]
=== right: sorted by random numbers, a nested tuple of numpy's whole numbers
def minibatches(n, batch_size, seed, epoch):
    keys = np.random.Generator(np.random.MT19937(np.random.SeedSequence(seed, spawn_key=(epoch,)))).random(n)
    order = tuple(np.argsort(keys).astype(np.uint32))
    return tuple(order[i : i + batch_size] for i in range(0, n, batch_size))
=== right: choice without replacement, each batch sorted, as a set or an int32 array
def minibatches(n, batch_size, seed, epoch):
    rng = np.random.Generator(np.random.PCG64([epoch, seed]))
    left = set(range(n))
    while left:
        size = min(batch_size, len(left))
        batch = np.sort(rng.choice(sorted(left), size, replace=False)).astype(np.int32)
        left -= set(batch.tolist())
        yield batch if size > 2 else set(batch.tolist())
=== right: one generator a seed, whose epochs are drawn again up to this one
def minibatches(n, batch_size, seed, epoch):
    rng = np.random.default_rng(seed)
    for _ in range(epoch + 1):
        order = rng.permutation(n)
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
"""
