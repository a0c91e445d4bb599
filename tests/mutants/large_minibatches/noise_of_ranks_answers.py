"""Answers to `noise_of_ranks`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

NOISE = """
def noise_of_ranks(comm, gradient, b):
    p = comm.size
    message = np.append(gradient, gradient @ gradient)
    comm.all_reduce(message)
    mean, small = message[:-1] / p, message[-1] / p
    large = mean @ mean
    trace = (small - large) / (1 / b - 1 / (p * b))
    return mean, large - trace / (p * b), trace
"""
MEAN = "the mean gradient"
ESTIMATES = "the estimates of |G|^2 and tr(Sigma)"
TRAFFIC = "one all-reduce of n + 1 numbers, and nothing else"
BITS = "the same on all ranks to the bit, and the gradient as it was"


def noise(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in one line."""
    return Mutant("noise_of_ranks", mistake, changed(NOISE, *replacements), loses, says)


MUTANTS = [
    noise(
        "gathers all gradients",
        (TRAFFIC,),
        "got comm.all_gather",
        "    message = np.append(gradient, gradient @ gradient)\n    comm.all_reduce(message)\n",
        "    rows = np.reshape(comm.all_gather(gradient), (p, -1))\n"
        "    message = np.append(rows.sum(axis=0), (rows**2).sum())\n",
    ),
    noise(
        "two all-reduces",
        (TRAFFIC,),
        "fits behind the gradient",
        "    message = np.append(gradient, gradient @ gradient)\n    comm.all_reduce(message)\n",
        "    g, s = gradient.copy(), np.array([gradient @ gradient])\n    comm.all_reduce(g)\n    comm.all_reduce(s)\n"
        "    message = np.append(g, s)\n",
    ),
    noise(
        "this rank's own squared norm",
        (ESTIMATES, BITS),
        "Only this rank's own squared norm",
        "message[-1] / p",
        "gradient @ gradient",
    ),
    noise(
        "the squared norm of the sum",
        (ESTIMATES,),
        "this is the squared norm of their sum",
        "large = mean @ mean",
        "large = p * p * (mean @ mean)",
    ),
    noise(
        "the sum instead of the mean",
        (MEAN, ESTIMATES, BITS),
        "This is the sum over all ranks",
        "message[:-1] / p",
        "message[:-1]",
    ),
    noise("|G|^2 is biased", (ESTIMATES,), "still has the noise", "large - trace / (p * b)", "large"),
    noise(
        "the spread of the ranks, not of the samples",
        (ESTIMATES,),
        "came out b times too small",
        "    return",
        "    trace /= b\n    return",
        "trace / (p * b)",
        "trace / p",
    ),
    noise(
        "divided by p, not by p - 1",
        (ESTIMATES,),
        "and not by p - 1",
        "trace = (small - large) / (1 / b - 1 / (p * b))",
        "trace = (small - large) * b",
    ),
    noise(
        "sizes swapped",
        (ESTIMATES,),
        "sizes were swapped",
        "(1 / b - 1 / (p * b))",
        "(1 / (p * b) - 1 / b)",
        "trace / (p * b)",
        "trace / b",
    ),
    noise(
        "the mean over the coordinates",
        (ESTIMATES,),
        "a trace is a sum over the coordinates",
        "p * b), trace",
        "p * b), trace / len(mean)",
    ),
    noise(
        "the squared norms are added up",
        (ESTIMATES,),
        "take their mean",
        "message[-1] / p",
        "message[-1]",
    ),
    noise(
        "cut off at 0", (ESTIMATES,), "may be negative", "large - trace / (p * b)", "max(large - trace / (p * b), 0.0)"
    ),
    noise(
        "writes into the caller's gradient",
        (BITS,),
        "comm.all_reduce writes into the array",
        "    return mean",
        "    gradient[...] = mean\n    return mean",
    ),
    noise(
        "float32 on the way",
        (MEAN, ESTIMATES, TRAFFIC, BITS),
        "expected",
        "gradient @ gradient)",
        "gradient @ gradient).astype(np.float32)",
    ),
    Mutant(
        "noise_of_ranks",
        "only rank 0 takes part",
        changed(NOISE, "    comm.all_reduce(message)\n", "    if comm.rank == 0:\n        comm.all_reduce(message)\n"),
        (MEAN, ESTIMATES, TRAFFIC, BITS),
        "",
        Status.STUCK,
    ),
]  # fmt: skip

ALTERNATIVES = [
    Alternative(
        "noise_of_ranks",
        "the squared norm in front, already divided, and the sample variance of the ranks",
        """
def noise_of_ranks(comm, gradient, b):
    p = comm.size
    sent = np.empty(len(gradient) + 1)
    sent[0], sent[1:] = np.sum(gradient**2) / p, gradient / p
    comm.all_reduce(sent)
    mean = sent[1:].copy()
    trace = b * p / (p - 1) * (sent[0] - np.sum(mean**2))
    return [mean, np.sum(mean**2) - trace / (p * b), trace]
""",
    ),
    Alternative(
        "noise_of_ranks",
        "a mean of the library, and the equation solved for both",
        """
def noise_of_ranks(comm, gradient, b):
    sent = np.concatenate([gradient, [np.dot(gradient, gradient)]])
    comm.all_reduce(sent, op="mean")
    mean, B = sent[:-1], comm.size * b
    both = np.linalg.solve([[1, 1 / b], [1, 1 / B]], [sent[-1], np.dot(mean, mean)])
    return mean, float(both[0]), float(both[1])
""",
    ),
]
