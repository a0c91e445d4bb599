"""Answers to `bubble`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant

IDEAL, TOTAL = "relative to the ideal time", "relative to the total time"


def wrong(mistake: str, loses: tuple[str, ...], says: str, returned: str) -> Mutant:
    return Mutant("bubble", mistake, f"\ndef bubble(K, M, v):\n    return {returned}\n", loses, says)


MUTANTS = [
    wrong(
        "that of the ideal time for both",
        (TOTAL,),
        "This is the bubble of the ideal time",
        "(K - 1) / (v * M), (K - 1) / (v * M)",
    ),
    wrong(
        "that of the total time for both",
        (IDEAL,),
        "This is the bubble of the total time",
        "(K - 1) / (v * M + K - 1), (K - 1) / (v * M + K - 1)",
    ),
    wrong(
        "the other way round",
        (IDEAL, TOTAL),
        "This is the bubble of the total time",
        "(K - 1) / (v * M + K - 1), (K - 1) / (v * M)",
    ),
    wrong("v is forgotten", (IDEAL, TOTAL), "only a v-th", "(K - 1) / M, (K - 1) / (M + K - 1)"),
    wrong(
        "v divides the number of the total time as a whole",
        (TOTAL,),
        "M + (K - 1) / v",
        "(K - 1) / (v * M), (K - 1) / (M + K - 1) / v",
    ),
    wrong("K instead of K - 1", (IDEAL, TOTAL), "K - 1, not K", "K / (v * M), K / (v * M + K)"),
    wrong(
        "v makes the bubble larger",
        (IDEAL, TOTAL),
        "fewer, not more",
        "(K - 1) * v / M, (K - 1) * v / (M + (K - 1) * v)",
    ),
    wrong(
        "the share of computing",
        (TOTAL,),
        "in which a stage computes",
        "(K - 1) / (v * M), v * M / (v * M + K - 1)",
    ),
    wrong(
        "waiting counted twice",
        (IDEAL, TOTAL),
        "is both together",
        "2 * (K - 1) / (v * M), 2 * (K - 1) / (v * M + 2 * (K - 1))",
    ),
    wrong("K and M exchanged", (IDEAL, TOTAL), "the other way round", "(M - 1) / (v * K), (M - 1) / (v * K + M - 1)"),
    wrong(
        "in percent",
        (IDEAL, TOTAL),
        "in percent",
        "100 * (K - 1) / (v * M), 100 * (K - 1) / (v * M + K - 1)",
    ),
    wrong("rounded down", (IDEAL, TOTAL), "expected", "(K - 1) // (v * M), (K - 1) // (v * M + K - 1)"),
    wrong(
        "v K stages",
        (IDEAL, TOTAL),
        "are still K stages",
        "(v * K - 1) / M, (v * K - 1) / (M + v * K - 1)",
    ),
    wrong("rounded", (IDEAL, TOTAL), "expected", "round((K - 1) / (v * M), 2), round((K - 1) / (v * M + K - 1), 2)"),
    wrong("one number", (IDEAL, TOTAL), "expected a pair", "(K - 1) / (v * M)"),
    wrong("fractions", (IDEAL, TOTAL), "a Fraction", "[__import__('fractions').Fraction(K - 1, v * M)] * 2"),
]

ALTERNATIVES = [
    Alternative(
        "bubble",
        "from seconds, as fractions",
        """
def bubble(K, M, v):
    from fractions import Fraction
    computing, idle = Fraction(M), Fraction(K - 1, v)
    return [float(idle / computing), float(idle / (computing + idle))]
""",
    ),
    Alternative(
        "bubble",
        "one convention from the other",
        """
def bubble(K, M, v):
    of_ideal = np.float64(K - 1) / v / M
    return of_ideal, of_ideal / (1 + of_ideal)
""",
    ),
    Alternative(
        "bubble",
        "an array",
        """
def bubble(K, M, v):
    idle = (K - 1) / v
    return idle / np.array([M, M + idle])
""",
    ),
]
