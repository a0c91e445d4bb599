"""Answers to `ring_seconds`, `recursive_doubling_seconds` and `crossover`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RING = """
def ring_seconds(p, nbytes, alpha, beta, gamma=0.0):
    return 2 * (p - 1) * alpha + 2 * (p - 1) / p * nbytes * beta + (p - 1) / p * nbytes * gamma
"""
MOVED, ADDED = "the messages: alpha and beta", "the additions: gamma"

DOUBLING = """
def recursive_doubling_seconds(p, nbytes, alpha, beta, gamma=0.0):
    rounds = p.bit_length() - 1
    fold = 0 if p == 2**rounds else 1
    return (rounds + 2 * fold) * (alpha + nbytes * beta) + (rounds + fold) * nbytes * gamma
"""
POWERS, OTHERS = "p a power of two", "p not a power of two"

CROSSOVER = """
def crossover(p, alpha, beta, gamma=0.0):
    rounds = p.bit_length() - 1
    fold = 0 if p == 2**rounds else 1
    share = (p - 1) / p
    later = (2 * (p - 1) - rounds - 2 * fold) * alpha
    gained = (rounds + 2 * fold - 2 * share) * beta + (rounds + fold - share) * gamma
    return later / gained if gained > 0 else math.inf
"""
WITHOUT, WITH = "p a power of two, gamma = 0", "any p, and gamma; infinite where the ring never is faster"


def ring(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    return Mutant("ring_seconds", mistake, changed(RING, *replacements), loses, says)


def doubling(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    return Mutant("recursive_doubling_seconds", mistake, changed(DOUBLING, *replacements), loses, says)


def crossover_mutant(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    return Mutant("crossover", mistake, changed(CROSSOVER, *replacements), loses, says)


IN_ALL = """
    one = in_all(p, nbytes, alpha, beta, gamma)
    return THIS

def in_all(p, nbytes, alpha, beta, gamma):
    rounds = p.bit_length() - 1
    fold = 0 if p == 2**rounds else 1
    return """
"""In place of `    return `: what is returned is made of `one`, the right number."""


MUTANTS = [
    ring("p instead of p - 1 steps", (MOVED, ADDED), "p - 1 steps, not p", "p - 1", "p"),
    ring(
        "p instead of p - 1 messages",
        (MOVED, ADDED),
        "There are p - 1 messages",
        "2 * (p - 1) * alpha",
        "2 * p * alpha",
    ),
    ring("n instead of (p - 1)/p n", (MOVED, ADDED), "(p - 1)/p, not 1", "2 * (p - 1) / p * nbytes", "2 * nbytes"),
    ring(
        "only the reduce-scatter",
        (MOVED, ADDED),
        "after the reduce-scatter there is the all-gather",
        "2 * (p - 1) * alpha + 2 * (p - 1) / p",
        "(p - 1) * alpha + (p - 1) / p",
    ),
    ring("whole vector each step", (MOVED, ADDED), "not the whole vector", "(p - 1) / p", "(p - 1)"),
    ring(
        "gamma in both halves", (ADDED,), "Only the reduce-scatter adds", "+ (p - 1) / p * n", "+ 2 * (p - 1) / p * n"
    ),
    ring("gamma forgotten", (ADDED,), "gamma is missing", "* gamma", "* 0"),
    ring("gamma for n bytes", (ADDED,), "not n", "+ (p - 1) / p * nbytes * gamma", "+ nbytes * gamma"),
    ring("bytes taken for bits", (MOVED, ADDED), "not to be divided by 8", "nbytes * ", "nbytes / 8 * "),
    ring("one start-up a phase", (MOVED, ADDED), "is paid in every step", "2 * (p - 1) * alpha", "2 * alpha"),
    ring("a p-th of alpha", (MOVED, ADDED), "a whole alpha", "2 * (p - 1) * alpha", "2 * (p - 1) / p * alpha"),
    ring("alpha once in all", (MOVED, ADDED), "not once", "2 * (p - 1) * alpha", "alpha"),
    ring("log2 p steps", (MOVED, ADDED), "another algorithm's", "2 * (p - 1) * alpha", "2 * np.log2(p) * alpha"),
    ring(
        "the time of all ranks",
        (MOVED, ADDED),
        "at the same time: what one",
        "return ",
        "return p * one(p, nbytes, alpha, beta, gamma)\n\ndef one(p, nbytes, alpha, beta, gamma):\n    return ",
    ),
    ring(
        "sends, then receives",
        (MOVED, ADDED),
        "a step takes one message's time",
        "2 * (p - 1) * alpha + 2 *",
        "4 * (p - 1) * alpha + 4 *",
    ),
    ring("gamma an element", (ADDED,), "not an element", "nbytes * gamma", "nbytes / 8 * gamma"),
    doubling(
        "sends, then receives", (POWERS, OTHERS), "one message's time", "rounds + 2 * fold", "2 * (rounds + fold)"
    ),
    doubling("a fold always", (POWERS,), "there is no fold", "fold = 0 if p == 2**rounds else 1", "fold = 1"),
    doubling("a fold that does not add", (OTHERS,), "The fold adds, too", "+ fold)", ")"),
    doubling("no fold", (OTHERS,), "The fold is missing", "fold = 0 if p == 2**rounds else 1", "fold = 0"),
    doubling(
        "log2 rounded up instead of the fold",
        (OTHERS,),
        "rounded up",
        "rounds = p.bit_length() - 1",
        "rounds = math.ceil(math.log2(p))",
        "fold = 0 if p == 2**rounds else 1",
        "fold = 0",
    ),
    doubling(
        "log2 rounded up, and the fold",
        (OTHERS,),
        "log2 p rounded down, and two for the fold",
        "fold = 0 if p == 2**rounds else 1",
        "fold = 0 if p == 2**rounds else 1\n    rounds = math.ceil(math.log2(p))",
    ),
    doubling(
        "log2 not rounded",
        (OTHERS,),
        "no whole number",
        "rounds = p.bit_length() - 1",
        "rounds = math.log2(p)",
        "fold = 0 if p == 2**rounds else 1",
        "fold = 0",
    ),
    doubling("a fold of one message", (OTHERS,), "a message before and one after", "2 * fold", "fold"),
    doubling("an addition when the result is handed back", (OTHERS,), "but no addition", "+ fold)", "+ 2 * fold)"),
    doubling("gamma forgotten", (POWERS, OTHERS), "gamma is missing", "* gamma", "* 0"),
    doubling(
        "p - 1 rounds",
        (POWERS, OTHERS),
        "not p - 1",
        "rounds = p.bit_length() - 1",
        "rounds = p - 1",
        "fold = 0 if p == 2**rounds else 1",
        "fold = 0",
    ),
    doubling("chunks instead of the vector", (POWERS, OTHERS), "not a p-th", "nbytes * ", "nbytes / p * "),
    doubling("bytes taken for bits", (POWERS, OTHERS), "not to be divided by 8", "nbytes * ", "nbytes / 8 * "),
    crossover_mutant("in elements", (WITHOUT, WITH), "in elements of 8 bytes", "later / gained", "later / gained / 8"),
    crossover_mutant(
        "rounded", (WITHOUT, WITH), "not to be rounded", "return later / gained", "return round(later / gained)"
    ),
    crossover_mutant(
        "no start-ups of recursive doubling", (WITHOUT, WITH), "has start-ups, too", " - rounds - 2 * fold", ""
    ),
    crossover_mutant("2n for the ring", (WITHOUT, WITH), "not 2 beta", "share = (p - 1) / p", "share = 1"),
    crossover_mutant("no fold", (WITH,), "The fold is missing", "fold = 0 if p == 2**rounds else 1", "fold = 0"),
    crossover_mutant("gamma forgotten", (WITH,), "without gamma", "* gamma", "* 0"),
    crossover_mutant("p instead of p - 1 steps", (WITHOUT, WITH), "not p", "2 * (p - 1)", "2 * p"),
    crossover_mutant("upside down", (WITHOUT, WITH), "upside down", "later / gained", "gained / later"),
    crossover_mutant("0 instead of infinity", (WITH,), "expected math.inf, got 0.", "math.inf", "0.0"),
    crossover_mutant("infinite for two ranks whatever gamma is", (WITH,), "got inf", "if gained > 0", "if p > 2"),
    Mutant(
        "crossover",
        "Rabenseifner's algorithm instead of the ring",
        """
def crossover(p, alpha, beta, gamma=0.0):
    rounds = p.bit_length() - 1
    share = 1 - 1 / 2**rounds
    saved = (rounds - 2 * share) * beta + (rounds - share) * gamma
    return rounds * alpha / saved if saved > 0 else math.inf
""",
        loses=(WITHOUT, WITH),
        says="Rabenseifner's algorithm",
    ),
    Mutant(
        "crossover",
        "divides by zero for two ranks without gamma",
        changed(CROSSOVER, " if gained > 0 else math.inf", ""),
        loses=(WITH,),
        says="ZeroDivisionError",
        status=Status.RAISED,
    ),
]

MUTANTS += [
    ring("in milliseconds", (MOVED, ADDED), "not milliseconds", "    return ", IN_ALL.replace("THIS", "1e3 * one")),
    ring("rounded", (MOVED, ADDED), "not to be rounded", "    return ", IN_ALL.replace("THIS", "round(one, 6)")),
    ring(
        "an empty vector costs nothing",
        (MOVED, ADDED),
        "An empty message takes time, too",
        "    return ",
        "    return 0.0 if nbytes == 0 else ",
    ),
    ring(
        "one rank pays one message",
        (MOVED, ADDED),
        "A rank that is alone sends nothing",
        "    return ",
        "    return alpha + nbytes * beta if p == 1 else ",
    ),
    ring("gamma of all ranks", (ADDED,), "expected ", "+ (p - 1) / p * nbytes * gamma", "+ (p - 1) * nbytes * gamma"),
    ring(
        "whole numbers of log2 p",
        (MOVED, ADDED),
        "expected ",
        "2 * (p - 1) * alpha",
        "2 * (p.bit_length() - 1) * alpha",
    ),
    ring(
        "the sum as a list",
        (MOVED, ADDED),
        "got a list of 1",
        "return 2 * (p - 1) * alpha + 2 * (p - 1) / p * nbytes * beta + (p - 1) / p * nbytes * gamma",
        "return [2 * (p - 1) * alpha + 2 * (p - 1) / p * nbytes * beta + (p - 1) / p * nbytes * gamma]",
    ),
    ring("float32", (MOVED, ADDED), "expected ", "    return ", IN_ALL.replace("THIS", "float(np.float32(one))")),
    doubling(
        "in microseconds", (POWERS, OTHERS), "not microseconds", "    return ", IN_ALL.replace("THIS", "1e6 * one")
    ),
    doubling(
        "an empty vector costs nothing",
        (POWERS,),
        "An empty message takes time, too",
        "    return ",
        "    return 0.0 if nbytes == 0 else ",
    ),
    doubling(
        "one alpha for all rounds",
        (POWERS, OTHERS),
        "takes an alpha",
        "(rounds + 2 * fold) * (alpha + nbytes * beta)",
        "alpha + (rounds + 2 * fold) * nbytes * beta",
    ),
    doubling(
        "bit_length without - 1",
        (POWERS, OTHERS),
        "one more",
        "p.bit_length() - 1",
        "p.bit_length()",
        "if p == 2**rounds else",
        "if p & (p - 1) == 0 else",
    ),
    doubling(
        "the natural logarithm",
        (POWERS, OTHERS),
        "base of 2",
        "rounds = p.bit_length() - 1",
        "rounds = math.log(p)",
        "fold = 0 if p == 2**rounds else 1",
        "fold = 0",
    ),
    doubling(
        "log2 p to the nearest", (OTHERS,), "expected ", "rounds = p.bit_length() - 1", "rounds = round(math.log2(p))"
    ),
    crossover_mutant("in megabytes", (WITHOUT, WITH), "not megabytes", "later / gained", "later / gained / 1e6"),
    crossover_mutant(
        "rounded up", (WITHOUT, WITH), "not to be rounded", "return later / gained", "return math.ceil(later / gained)"
    ),
    crossover_mutant(
        "the sign the other way",
        (WITHOUT, WITH),
        "The sign is that of the other difference",
        "return later / gained",
        "return -later / gained",
    ),
    crossover_mutant(
        "never",
        (WITHOUT, WITH),
        "There is such a size here",
        "return later / gained if gained > 0 else math.inf",
        "return math.inf",
    ),
    crossover_mutant("None where the ring is never faster", (WITH,), "expected math.inf, got None", "math.inf", "None"),
    crossover_mutant("-1 where the ring is never faster", (WITH,), "expected math.inf, got -1", "math.inf", "-1"),
    crossover_mutant("infinity in words", (WITH,), "expected math.inf, got 'inf'", "math.inf", "'inf'"),
    crossover_mutant(
        "no number where the ring is never faster", (WITH,), "expected math.inf, got nan", "math.inf", "math.nan"
    ),
    crossover_mutant(
        "gamma of n bytes for the ring",
        (WITH,),
        "expected ",
        "(rounds + fold - share) * gamma",
        "(rounds + fold - 1) * gamma",
    ),
    crossover_mutant(
        "a power of two that is below the size",
        (WITHOUT, WITH),
        "expected ",
        "return later / gained if",
        "return 2.0 ** math.floor(math.log2(later / gained)) if",
    ),
]

MUTANTS += [
    crossover_mutant(
        "the size of a chunk",
        (WITHOUT, WITH),
        "This is the size of a chunk",
        "later / gained if",
        "later / gained / p if",
    ),
]

ALTERNATIVES = [
    Alternative(
        "ring_seconds",
        "step by step",
        """
def ring_seconds(p, nbytes, alpha, beta, gamma=0.0):
    time = 0.0
    for step in range(2 * (p - 1)):
        time += alpha + nbytes / p * beta
        if step < p - 1:
            time += nbytes / p * gamma
    return time
""",
    ),
    Alternative(
        "ring_seconds",
        "chunks rounded up to whole elements, as a numpy scalar",
        """
def ring_seconds(p, nbytes, alpha, beta, gamma=0.0):
    chunk = np.ceil(nbytes / 8 / p) * 8
    return np.float64(p - 1) * (2 * alpha + chunk * (2 * beta + gamma))
""",
    ),
    Alternative(
        "recursive_doubling_seconds",
        "with math.log2",
        """
def recursive_doubling_seconds(p, nbytes, alpha, beta, gamma=0.0):
    rounds = math.floor(math.log2(p))
    time = rounds * (alpha + nbytes * (beta + gamma))
    if 2**rounds < p:
        time += 2 * (alpha + nbytes * beta) + nbytes * gamma
    return time
""",
    ),
    Alternative(
        "crossover",
        "from the two functions, as the meeting point of two lines",
        """
def crossover(p, alpha, beta, gamma=0.0):
    def difference(nbytes):
        return ring_seconds(p, nbytes, alpha, beta, gamma) - recursive_doubling_seconds(p, nbytes, alpha, beta, gamma)
    start, end = difference(0), difference(8 * p)
    return math.inf if end >= start else start * 8 * p / (start - end)
""",
    ),
    Alternative(
        "crossover",
        "by bisection",
        """
def crossover(p, alpha, beta, gamma=0.0):
    def ring_is_faster(nbytes):
        ring = ring_seconds(p, nbytes, alpha, beta, gamma)
        return ring < recursive_doubling_seconds(p, nbytes, alpha, beta, gamma)
    low, high = 0.0, 1e15
    if not ring_is_faster(high):
        return float("inf")
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if ring_is_faster(middle) else (middle, high)
    return high
""",
    ),
    Alternative(
        "ring_seconds",
        "step by step, as an array without axes; 0 for one rank",
        """
def ring_seconds(p, nbytes, alpha, beta, gamma=0.0):
    if p == 1:
        return 0
    chunk = nbytes // p
    return np.array(sum([alpha + beta * chunk] * (p - 1) + [alpha + beta * chunk + gamma * chunk] * (p - 1)))
""",
    ),
    Alternative(
        "recursive_doubling_seconds",
        "by halving p",
        """
def recursive_doubling_seconds(p, nbytes, alpha, beta, gamma=0.0):
    is_power, rounds = True, 0
    while p > 1:
        is_power = is_power and p % 2 == 0
        p, rounds = p // 2, rounds + 1
    message, addition = np.float64(alpha + nbytes * beta), nbytes * gamma
    return rounds * (message + addition) + (0 if is_power else message + addition + message)
""",
    ),
    Alternative(
        "crossover",
        "numpy's infinity, by division",
        """
def crossover(p, alpha, beta, gamma=0.0):
    folded = p & (p - 1) != 0
    messages = int(np.log2(p)) + 2 * folded
    additions = int(np.log2(p)) + folded
    share = 1 - 1 / p
    with np.errstate(divide="ignore"):
        return np.float64((2 * p - 2 - messages) * alpha) / max(
            np.float64(0.0), messages * beta + additions * gamma - share * (2 * beta + gamma)
        )
""",
    ),
]
