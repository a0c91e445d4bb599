"""Answers to `minibatches`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant

ONCE = "every sample once an epoch, in batches of batch_size, the last one with the rest"
REPEATABLE = "the seed and the epoch alone decide on the shuffle"
OWN_SHUFFLE = "every epoch and every seed has a shuffle of its own"


def sampler(order: str, batches: str = "[order[i : i + batch_size] for i in range(0, n, batch_size)]") -> str:
    """minibatches with this way to the order, and this way to cut it."""
    return f"""
def minibatches(n, batch_size, seed, epoch):
    order = {order}
    return {batches}
"""


RIGHT_ORDER = "np.random.default_rng((seed, epoch)).permutation(n)"

MUTANTS = [
    Mutant(
        "minibatches",
        "drops the ragged last batch",
        sampler(RIGHT_ORDER, "[order[i : i + batch_size] for i in range(0, n - batch_size + 1, batch_size)]"),
        loses=(ONCE,),
        says="The last batch, which is smaller than the others, was left out",
    ),
    Mutant(
        "minibatches",
        "fills up the last batch from the beginning",
        sampler(
            RIGHT_ORDER,
            "[np.resize(order, -(-n // batch_size) * batch_size)[i : i + batch_size] for i in range(0, n, batch_size)]",
        ),
        loses=(ONCE,),
        says="The last batch was filled up",
    ),
    Mutant(
        "minibatches",
        "evens the batches out",
        sampler(RIGHT_ORDER, "np.array_split(order, -(-n // batch_size)) if n else []"),
        loses=(ONCE,),
        says="The batches were made equally large",
    ),
    Mutant(
        "minibatches",
        "loses the last full batch",
        sampler(
            RIGHT_ORDER,
            "[order[i : i + batch_size] for i in range(0, n - batch_size, batch_size)]"
            " + ([order[n - n % batch_size :]] if n % batch_size else [])",
        ),
        loses=(ONCE,),
        says="The last full batch was left out",
    ),
    Mutant(
        "minibatches",
        "draws with replacement",
        sampler("np.random.default_rng((seed, epoch)).integers(0, max(n, 1), n)"),
        loses=(ONCE, REPEATABLE, OWN_SHUFFLE),
        says="drawn with replacement",
    ),
    Mutant(
        "minibatches",
        "an empty batch at the end",
        sampler(RIGHT_ORDER, "[order[i : i + batch_size] for i in range(0, n + 1, batch_size)]"),
        loses=(ONCE,),
        says="There is an empty batch",
    ),
    Mutant(
        "minibatches",
        "counts from 1",
        sampler(RIGHT_ORDER + " + 1"),
        loses=(ONCE,),
        says="Indices count from 0",
    ),
    Mutant(
        "minibatches",
        "without a shuffle",
        sampler("np.arange(n)"),
        loses=(REPEATABLE, OWN_SHUFFLE),
        says="They were not shuffled",
    ),
    Mutant(
        "minibatches",
        "an order that is kept by seed and epoch",
        "orders = {}\n" + sampler(f"orders.setdefault((seed, epoch), {RIGHT_ORDER})"),
        loses=(ONCE, OWN_SHUFFLE),
        says="expected",
    ),
    Mutant(
        "minibatches",
        "the same order in every epoch",
        sampler("np.random.default_rng(seed).permutation(n)"),
        loses=(OWN_SHUFFLE,),
        says="Does the generator depend on the epoch",
    ),
    Mutant(
        "minibatches",
        "the seed is not used",
        sampler("np.random.default_rng(epoch).permutation(n)"),
        loses=(OWN_SHUFFLE,),
        says="Does the generator depend on the seed?",
    ),
    Mutant(
        "minibatches",
        "seed times epoch",
        sampler("np.random.default_rng(seed * epoch).permutation(n)"),
        loses=(OWN_SHUFFLE,),
        says="have the same batches",
    ),
    Mutant(
        "minibatches",
        "unseeded",
        sampler("np.random.default_rng().permutation(n)"),
        loses=(REPEATABLE,),
        says="The generator is not made from seed and epoch",
    ),
    Mutant(
        "minibatches",
        "a generator that lives on between calls",
        """
generators = {}

def minibatches(n, batch_size, seed, epoch):
    rng = generators.setdefault(seed, np.random.default_rng(seed))
    order = rng.permutation(n)
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
""",
        loses=(REPEATABLE,),
        says="it lives on from one call to the next",
    ),
    Mutant(
        "minibatches",
        "shuffles the batches, not the samples",
        """
def minibatches(n, batch_size, seed, epoch):
    batches = [np.arange(i, min(i + batch_size, n)) for i in range(0, n, batch_size)]
    ragged = batches[len(batches) - (n % batch_size > 0) :]
    full = batches[: len(batches) - len(ragged)]
    return [full[i] for i in np.random.default_rng((seed, epoch)).permutation(len(full))] + ragged
""",
        loses=(OWN_SHUFFLE,),
        says="The order of the batches was shuffled; shuffle the samples",
    ),
    Mutant(
        "minibatches",
        "turns the order round",
        sampler("np.roll(np.arange(n), np.random.default_rng((seed, epoch)).integers(1, max(n, 2)))"),
        loses=(OWN_SHUFFLE,),
        says="a sample is followed by its neighbour",
    ),
    Mutant(
        "minibatches",
        "the order, not cut",
        sampler(RIGHT_ORDER, "order"),
        loses=(ONCE, REPEATABLE, OWN_SHUFFLE),
        says="The order was not cut into batches",
    ),
    Mutant(
        "minibatches",
        "shuffles within the batches",
        sampler(
            "np.random.default_rng((seed, epoch))",
            "[order.permutation(np.arange(n)[i : i + batch_size]) for i in range(0, n, batch_size)]",
        ),
        loses=(OWN_SHUFFLE,),
        says="Each batch was shuffled by itself",
    ),
    Mutant(
        "minibatches",
        "batch_size batches",
        sampler(RIGHT_ORDER, "[order[i::batch_size] for i in range(batch_size)]"),
        loses=(ONCE,),
        says="it is the size of each, not their number",
    ),
    Mutant(
        "minibatches",
        "never ends",
        """
def minibatches(n, batch_size, seed, epoch):
    order = np.random.default_rng((seed, epoch)).permutation(n)
    while n:
        yield from (order[i : i + batch_size] for i in range(0, n, batch_size))
""",
        loses=(ONCE,),
        says="the epoch ends when each was used once",
    ),
    Mutant(
        "minibatches",
        "the smaller batch first",
        sampler(
            RIGHT_ORDER,
            "[b for b in [order[: n % batch_size], *(order[i : i + batch_size] "
            "for i in range(n % batch_size, n, batch_size))] if len(b)]",
        ),
        loses=(ONCE,),
        says="The smaller batch came first",
    ),
    Mutant(
        "minibatches",
        "minidl's loader",
        """
def minibatches(n, batch_size, seed, epoch):
    loader = data.DataLoader(data.Dataset(np.arange(n), np.arange(n)), batch_size, shuffle=True, seed=seed)
    loader.set_epoch(epoch)
    return (batch.x for batch in loader)
""",
        loses=(ONCE, REPEATABLE, OWN_SHUFFLE),
        says="minidl.data.loader.DataLoader may not be used in minibatches",
        status=Status.RAISED,
    ),
    Mutant(
        "minibatches",
        "seed + epoch",
        sampler("np.random.default_rng(seed + epoch).permutation(n)"),
        loses=(OWN_SHUFFLE,),
        says="as with seed + epoch",
    ),
    Mutant(
        "minibatches",
        "ten times the seed plus the epoch",
        sampler("np.random.default_rng(10 * seed + epoch).permutation(n)"),
        loses=(OWN_SHUFFLE,),
        says="Two pairs of seed and epoch give the generator the same number",
    ),
    Mutant(
        "minibatches",
        "seed and epoch in either order",
        sampler("np.random.default_rng(sorted((seed, epoch))).permutation(n)"),
        loses=(OWN_SHUFFLE,),
        says="Two pairs of seed and epoch",
    ),
    Mutant(
        "minibatches",
        "digits behind one another",
        sampler("np.random.default_rng(int(str(seed) + str(epoch))).permutation(n)"),
        loses=(OWN_SHUFFLE,),
        says="Two pairs of seed and epoch",
    ),
    Mutant(
        "minibatches",
        "the global generator is seeded",
        """
def minibatches(n, batch_size, seed, epoch):
    np.random.seed((seed, epoch))
    order = np.random.permutation(n)
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
""",
        loses=(REPEATABLE,),
        says="has drawn from the global generator np.random, or seeded it",
    ),
    Mutant(
        "minibatches",
        "Python's global generator is seeded",
        """
import random

def minibatches(n, batch_size, seed, epoch):
    random.seed(f'{seed} {epoch}')
    order = random.sample(range(n), n)
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
""",
        loses=(REPEATABLE,),
        says="has drawn from the global generator random, or seeded it",
    ),
    Mutant(
        "minibatches",
        "the global generator was seeded once, in a cell",
        """
np.random.seed(0)

def minibatches(n, batch_size, seed, epoch):
    order = np.random.permutation(n)
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
""",
        loses=(REPEATABLE,),
        says="it lives on from one call to the next",
    ),
    Mutant(
        "minibatches",
        "hash() of a text",
        sampler("np.random.default_rng(abs(hash(f'{seed}, {epoch}'))).permutation(n)"),
        loses=(REPEATABLE,),
        says="What hash() gives for a text, and os.getpid(), differ",
    ),
    Mutant(
        "minibatches",
        "the clock",
        """
import time

def minibatches(n, batch_size, seed, epoch):
    order = np.random.default_rng((seed, epoch, int(time.time()) // 86400)).permutation(n)
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
""",
        loses=(REPEATABLE,),
        says="The clock decides on the order",
    ),
    Mutant(
        "minibatches",
        "one shuffle, rotated",
        sampler("np.roll(np.random.default_rng(seed).permutation(n), epoch)"),
        loses=(OWN_SHUFFLE,),
        says="has the order of epoch 0, rotated or reversed",
    ),
    Mutant(
        "minibatches",
        "one shuffle, every other epoch backwards",
        sampler("np.roll(np.random.default_rng(seed).permutation(n), epoch // 2)[:: 1 - 2 * (epoch % 2)]"),
        loses=(OWN_SHUFFLE,),
        says="has the order of epoch 0, rotated or reversed",
    ),
    Mutant(
        "minibatches",
        "in the order in which they lie, backwards",
        sampler("np.roll(np.arange(n)[::-1], 1000 * seed + epoch)"),
        loses=(OWN_SHUFFLE,),
        says="Blocks were moved",
    ),
    Mutant(
        "minibatches",
        "one shuffle, cut once, its batches shuffled",
        """
def minibatches(n, batch_size, seed, epoch):
    order = np.random.default_rng(seed).permutation(n)
    full = [order[i : i + batch_size] for i in range(0, n - n % batch_size, batch_size)]
    full = [full[i] for i in np.random.default_rng((seed, epoch)).permutation(len(full))]
    return full + ([order[n - n % batch_size :]] if n % batch_size else [])
""",
        loses=(OWN_SHUFFLE,),
        says="The order of the batches was shuffled; shuffle the samples",
    ),
    Mutant(
        "minibatches",
        "in equal steps",
        sampler(
            "(np.arange(n) * 7 + 11 * seed + epoch) % n if n % 7 else "
            "np.random.default_rng((seed, epoch)).permutation(n)"
        ),
        loses=(OWN_SHUFFLE,),
        says="is followed by the one 7 further",
    ),
    Mutant(
        "minibatches",
        "a small buffer",
        """
def minibatches(n, batch_size, seed, epoch):
    rng, order, buffer = np.random.default_rng((seed, epoch)), [], []
    for i in range(n):
        buffer.append(i)
        if len(buffer) == 5:
            order.append(buffer.pop(rng.integers(5)))
    order += [buffer[i] for i in rng.permutation(len(buffer))]
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
""",
        loses=(OWN_SHUFFLE,),
        says="as with a small buffer",
    ),
    Mutant(
        "minibatches",
        "a few samples change places",
        """
def minibatches(n, batch_size, seed, epoch):
    order, rng = np.random.default_rng(seed).permutation(n), np.random.default_rng((seed, epoch))
    for i in range(0, n, 10):
        j = rng.integers(n)
        order[[i, j]] = order[[j, i]]
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
""",
        loses=(OWN_SHUFFLE,),
        says="Every epoch needs a shuffle of its own",
    ),
    Mutant(
        "minibatches",
        "the first sample stays",
        sampler("np.append(0, 1 + np.random.default_rng((seed, epoch)).permutation(n - 1)) if n else []"),
        loses=(OWN_SHUFFLE,),
        says="sample 0 has place 0 in every epoch",
    ),
    Mutant(
        "minibatches",
        "each batch drawn from all samples",
        sampler(
            "np.random.default_rng((seed, epoch))",
            "[order.choice(n, min(batch_size, n - i), replace=False) for i in range(0, n, batch_size)]",
        ),
        loses=(ONCE, REPEATABLE, OWN_SHUFFLE),
        says="or each batch from all samples",
    ),
    Mutant(
        "minibatches",
        "a fixed seed",
        sampler("np.random.default_rng(42).permutation(n)"),
        loses=(OWN_SHUFFLE,),
        says="Does the generator depend on the epoch",
    ),
]

MUTANTS += [
    *(
        Mutant("minibatches", mistake, sampler(order), loses=(OWN_SHUFFLE,), says=says)
        for mistake, order, says in (
            (
                "1000 * seed + epoch",
                "np.random.default_rng(1000 * seed + epoch).permutation(n)",
                "as with seed + epoch or 1000 * seed + epoch",
            ),
            (
                "seed * 31 + epoch",
                "np.random.default_rng(seed * 31 + epoch).permutation(n)",
                "as with seed + epoch or 1000 * seed + epoch",
            ),
            (
                "seed + 1000 * epoch",
                "np.random.default_rng(seed + 1000 * epoch).permutation(n)",
                "as with seed + epoch or 1000 * seed + epoch",
            ),
            (
                "the low bits of the seed",
                "np.random.default_rng((seed % 2**16, epoch)).permutation(n)",
                "the whole seed, and not on a remainder of it",
            ),
            (
                "the remainder of the epoch",
                "np.random.default_rng((seed, epoch % 256)).permutation(n)",
                "the whole epoch, and not on a remainder of it",
            ),
            (
                "sorted by random numbers of which many are equal",
                "np.argsort(np.random.default_rng((seed, epoch)).integers(0, 3, n), kind='stable')",
                "never came",
            ),
            (
                "the even samples first",
                f"{RIGHT_ORDER}\n    order = order[np.argsort(order % 2, kind='stable')]",
                "never came",
            ),
        )
    ),
    Mutant(
        "minibatches",
        "every sample changes its place (Sattolo)",
        """
def minibatches(n, batch_size, seed, epoch):
    rng, order = np.random.default_rng((seed, epoch)), np.arange(n)
    for i in range(n - 1, 0, -1):
        j = int(rng.integers(i))
        order[[i, j]] = order[[j, i]]
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
""",
        loses=(OWN_SHUFFLE,),
        says="never came",
    ),
    Mutant(
        "minibatches",
        "one rearrangement, applied again in each epoch",
        """
def minibatches(n, batch_size, seed, epoch):
    again = np.random.default_rng(seed).permutation(n)
    order = again
    for _ in range(epoch):
        order = order[again]
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
""",
        loses=(OWN_SHUFFLE,),
        says="One rearrangement was applied again",
    ),
    Mutant(
        "minibatches",
        "the number of the process",
        sampler("np.random.default_rng((seed, epoch, __import__('os').getpid())).permutation(n)"),
        loses=(REPEATABLE,),
        says="os.getpid(), differ from process to process",
    ),
]

ALTERNATIVES = [
    Alternative(
        "minibatches",
        "a generator of tuples, Python's own random numbers",
        """
import random

def minibatches(n, batch_size, seed, epoch):
    order = list(range(n))
    random.Random(f"{seed}, {epoch}").shuffle(order)
    while order:
        yield tuple(order[:batch_size])
        order = order[batch_size:]
""",
    ),
    Alternative(
        "minibatches",
        "numpy's old generator of its own, np.split",
        """
def minibatches(n, batch_size, seed, epoch):
    order = np.arange(n)
    np.random.RandomState([seed, epoch]).shuffle(order)
    return np.split(order, range(batch_size, n, batch_size)) if n else []
""",
    ),
    Alternative(
        "minibatches",
        "sorted by random numbers, a nested tuple of numpy's whole numbers",
        """
def minibatches(n, batch_size, seed, epoch):
    keys = np.random.Generator(np.random.MT19937(np.random.SeedSequence(seed, spawn_key=(epoch,)))).random(n)
    order = tuple(np.argsort(keys).astype(np.uint8))
    return tuple(order[i : i + batch_size] for i in range(0, n, batch_size))
""",
    ),
    Alternative(
        "minibatches",
        "Fisher and Yates by hand, from epoch 0 on",
        """
import random

def minibatches(n, batch_size, seed, epoch):
    rng = random.Random(seed)
    for _ in range(epoch + 1):
        order = list(range(n))
        for i in range(n - 1, 0, -1):
            j = rng.randrange(i + 1)
            order[i], order[j] = order[j], order[i]
    batches = [[]]
    for sample in order:
        if len(batches[-1]) == batch_size:
            batches.append([])
        batches[-1].append(sample)
    return batches if n else []
""",
    ),
    Alternative(
        "minibatches",
        "choice without replacement, each batch sorted, as a set or an int32 array",
        """
def minibatches(n, batch_size, seed, epoch):
    rng = np.random.Generator(np.random.PCG64([epoch, seed]))
    left = set(range(n))
    while left:
        size = min(batch_size, len(left))
        batch = np.sort(rng.choice(sorted(left), size, replace=False)).astype(np.int32)
        left -= set(batch.tolist())
        yield batch if size > 2 else set(batch.tolist())
""",
    ),
    Alternative(
        "minibatches",
        "from a hash of both numbers",
        """
import hashlib

def minibatches(n, batch_size, seed, epoch):
    digest = hashlib.sha256(f"{seed},{epoch}".encode()).digest()
    order = np.random.default_rng(int.from_bytes(digest, "big")).permutation(n)
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
""",
    ),
    Alternative(
        "minibatches",
        "one generator a seed, whose epochs are drawn again up to this one",
        """
def minibatches(n, batch_size, seed, epoch):
    rng = np.random.default_rng(seed)
    for _ in range(epoch + 1):
        order = rng.permutation(n)
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
""",
    ),
]
