"""Answers to `best_grid`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def best_grid(p, B, d, h):
    found = []
    for tp in range(1, p + 1):
        if p % tp == 0:
            dp = p // tp
            activations = 2 * 2 * (tp - 1) / tp * (B / dp) * d
            gradients = 2 * (dp - 1) / dp * (2 * d * h / tp)
            found.append((activations + gradients, dp, tp))
    words, dp, tp = min(found)
    return dp, tp, words
"""
WORDS = "the words on the grid that was chosen"
CHOICE = "the grid that sends the fewest words"


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str, hidden_only: bool = False) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("best_grid", mistake, changed(RIGHT, *replacements), loses, says, hidden_only=hidden_only)


MUTANTS = [
    wrong(
        "data parallelism or tensor parallelism, nothing between",
        (CHOICE,),
        "There are grids between",
        "if p % tp == 0",
        "if tp in (1, p)",
    ),
    wrong("always tensor parallelism", (CHOICE,), "", "min(found)", "found[-1]"),
    wrong("always data parallelism", (CHOICE,), "", "min(found)", "found[0]"),
    wrong("the most words", (CHOICE,), "", "min(found)", "max(found)"),
    wrong(
        "one all-reduce of activations",
        (WORDS, CHOICE),
        "two all-reduces of activations",
        "2 * 2 * (tp - 1)",
        "2 * (tp - 1)",
    ),
    wrong("the gradients of one layer", (WORDS, CHOICE), "of both weights", "(2 * d * h / tp)", "(d * h / tp)"),
    wrong("the whole minibatch on each replica", (CHOICE,), "There are grids between", "(B / dp)", "B"),
    wrong(
        "the gradients of whole weights",
        (CHOICE,),
        "There are grids between",
        "(2 * d * h / tp)",
        "(2 * d * h)",
    ),
    wrong(
        "no factor 2 of the ring",
        (WORDS,),
        "In a ring all-reduce",
        "activations = 2 * 2",
        "activations = 2",
        "gradients = 2 * (dp",
        "gradients = (dp",
    ),
    wrong("bytes", (WORDS,), "These are bytes", "return dp, tp, words", "return dp, tp, 8 * words"),
    wrong(
        "the words of all ranks",
        (WORDS,),
        "of all p ranks together",
        "return dp, tp, words",
        "return dp, tp, p * words",
    ),
    wrong("no activations", (WORDS, CHOICE), "The activations are missing", "activations + gradients,", "gradients,"),
    wrong(
        "powers of two only",
        (CHOICE,),
        "expected a grid",
        "if p % tp == 0",
        "if p % tp == 0 and tp & (tp - 1) == 0",
        hidden_only=True,
    ),
    wrong(
        "the divisor nearest to the best fraction",
        (CHOICE,),
        "expected a grid",
        "words, dp, tp = min(found)",
        "words, dp, tp = min(found, key=lambda each: abs(each[2] - (h * p / B) ** 0.5))",
    ),
    wrong("at most 8 ranks divide a layer", (CHOICE,), "expected a grid", "range(1, p + 1)", "range(1, min(p, 8) + 1)"),
    wrong("dp as a float", (WORDS, CHOICE), "`//` divides integers", "p // tp", "p / tp"),
]

ALTERNATIVES = [
    Alternative(
        "best_grid",
        "fractions",
        """
def best_grid(p, B, d, h):
    from fractions import Fraction as F
    def words(tp):
        dp = F(p, tp)
        return 4 * d * B / dp * (1 - F(1, tp)) + 4 * F(d * h, tp) * (1 - 1 / dp)
    tp = min((tp for tp in range(1, p + 1) if p % tp == 0), key=words)
    return p // tp, tp, float(words(tp))
""",
    ),
    Alternative(
        "best_grid",
        "the last of equal grids",
        changed(RIGHT, "min(found)", "min(found[::-1], key=lambda each: round(each[0], 9))"),
    ),
]
