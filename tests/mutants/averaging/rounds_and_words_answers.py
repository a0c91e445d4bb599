"""Answers to `rounds_and_words`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def rounds_and_words(p, n, steps, period, first):
    alone = min(first, steps)
    rounds = alone + (steps - alone + period - 1) // period
    return rounds, rounds * 2 * (p - 1) / p * n
"""
ROUNDS, WORDS = "the number of rounds", "the words that a machine sends"


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("rounds_and_words", mistake, changed(RIGHT, *replacements), loses, says)


MUTANTS = [
    wrong("rounded down", (ROUNDS, WORDS), "may be incomplete", " + period - 1) // period", ") // period"),
    wrong(
        "one round more",
        (ROUNDS, WORDS),
        "no further round",
        "(steps - alone + period - 1) // period",
        "(steps - alone) // period + 1",
    ),
    wrong(
        "all steps are in periods", (ROUNDS, WORDS), "Periods begin after", "(steps - alone + period", "(steps + period"
    ),
    wrong("no rounds at first", (ROUNDS, WORDS), "first `first` steps", "rounds = alone + ", "rounds = "),
    wrong("more first steps than steps", (ROUNDS, WORDS), "fewer than `first`", "min(first, steps)", "first"),
    wrong("10 words as an example", (WORDS,), "words: expected", "(p - 1) / p * n", "(p - 1) / p * 10"),
    wrong("a reduce-scatter only", (WORDS,), "in each of the two", "rounds * 2", "rounds"),
    wrong("p chunks instead of p - 1", (WORDS,), "p - 1 of them", "(p - 1) / p * n", "n"),
    wrong("whole arrays", (WORDS,), "all machines together", "(p - 1) / p * n", "(p - 1) * n"),
    wrong("bytes", (WORDS,), "These are bytes", "return rounds, rounds", "return rounds, 8 * rounds"),
    wrong("the words of one round", (WORDS,), "of one round", "return rounds, rounds * 2", "return rounds, 2"),
    wrong("words in every step", (WORDS,), "in every step", "return rounds, rounds * 2", "return rounds, steps * 2"),
    wrong("n // p", (WORDS,), "n / p words, also where", "(p - 1) / p * n", "(p - 1) * (n // p)"),
    wrong("all divided by //", (WORDS,), "need not be an integer", "(p - 1) / p * n", "(p - 1) * n // p"),
]

ALTERNATIVES = [
    Alternative(
        "rounds_and_words",
        "counts step by step, and message by message",
        """
def rounds_and_words(p, n, steps, period, first):
    rounds = sum(
        step < first or (step + 1 - first) % period == 0 or step == steps - 1 for step in range(steps)
    )
    words = 0.0
    for _ in range(rounds):
        for _ in range(2 * (p - 1)):
            words += n / p
    return [rounds, words]
""",
    ),
    Alternative(
        "rounds_and_words",
        "math.ceil and numpy numbers",
        """
def rounds_and_words(p, n, steps, period, first):
    import math
    rounds = math.ceil(max(0, steps - first) / period) + min(steps, first)
    return np.int64(rounds), np.float64(2 * n * rounds - 2 * n * rounds / p)
""",
    ),
]
