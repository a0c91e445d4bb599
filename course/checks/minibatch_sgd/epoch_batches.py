"""The batches of an epoch that an answer returned, and their conditions: sizes, samples, shuffles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from course.judging import Answer, Wrong, expect
from course.probes.minibatch_sgd import listed


def batches_of(answer: Answer, n: int, batch_size: int, seed: int, epoch: int) -> tuple[list[list[int]], str]:
    """The batches of an epoch, and the call in words. Raises Wrong unless they are lists of integers."""
    called = f"minibatches(n={n}, batch_size={batch_size}, seed={seed}, epoch={epoch})"
    got = answer.run(listed, n, batch_size, seed, epoch)
    if not isinstance(got, list):
        cause = expect.FORGOTTEN_RETURN if got is None else ""
        raise Wrong(f"{called}: expected a list of batches, or a generator of them, got {expect.shown(got)}.", cause)
    for number, batch in enumerate(got):
        if not isinstance(batch, list):
            message = f"{called}: expected batches, each a list or an array of indices; item {number} is"
            raise Wrong(f"{message} {expect.shown(batch)}.", "The order was not cut into batches.")
        for index in batch:
            if type(index) is not int:
                message = (
                    f"{called}: expected whole numbers in the batches; batch {number} holds {expect.shown(index)}."
                )
                raise Wrong(message, "An array can be indexed by whole numbers only." if type(index) is float else "")
    return got, called


def compare_sizes(batches: list[list[int]], n: int, batch_size: int, called: str) -> None:
    """Full batches, then one with the rest."""
    full, rest = divmod(n, batch_size)
    want = [batch_size] * full + [rest] * (rest > 0)
    got = [len(batch) for batch in batches]
    cause = ""
    if rest and got == want[:-1]:
        cause = "The last batch, which is smaller than the others, was left out."
    elif rest and got == [batch_size] * (full + 1):
        cause = "The last batch was filled up; it has only the samples that are left."
    elif full and not rest and got == want[:-1]:
        cause = "The last full batch was left out: where does the range of the starts end?"
    elif len(got) == len(want) > 1 and sum(got) == n and max(got) - min(got) <= 1:
        cause = "The batches were made equally large; all but the last have batch_size samples."
    elif 0 in got:
        cause = "There is an empty batch: the mean over no sample is not a number."
    elif len(got) == batch_size and sum(got) == n:
        cause = "There are batch_size batches: it is the size of each, not their number."
    elif sum(got) > n:
        cause = "These are more samples than there are: the epoch ends when each was used once."
    elif got == want[::-1]:
        cause = "The smaller batch came first."
    expect.true(got == want, f"{called}: expected batches of the sizes {brief(want)}, got {brief(got)}.", cause)


def compare_samples(batches: list[list[int]], n: int, called: str) -> None:
    """Each of 0 … n - 1 once."""
    order = [index for batch in batches for index in batch]
    outside = [index for index in order if not 0 <= index < n]
    cause = "Indices count from 0." if outside[:1] == [n] and 0 not in order else ""
    cause = "An integer type with few bits has no numbers that large: it wraps round." if outside[:1] < [0] else cause
    expect.true(not outside, f"{called}: expected indices from 0 to {n - 1}, got {outside[:1]}.", cause)
    missing = sorted(set(range(n)) - set(order))
    counts = Counter(order)
    twice = [index for index in order if counts[index] > 1]
    if missing or twice:
        often = f"sample {twice[0]} came {counts[twice[0]]} times" if twice else "none came twice"
        never = f"{len(missing)} samples never came, such as {missing[0]}" if missing else "all came"
        raise Wrong(
            f"{called}: expected every sample once; {often}, and {never}.",
            "The samples of a batch were drawn with replacement, or each batch from all samples.",
        )


def brief(numbers: Sequence[int]) -> str:
    """A list of numbers, shortened."""
    shown = ", ".join(str(number) for number in numbers[:8])
    return f"[{shown}, …]" if len(numbers) > 8 else f"[{shown}]"
