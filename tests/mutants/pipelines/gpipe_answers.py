"""Answers to `gpipe`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def gpipe(K, M, s):
    forwards = [f"F{m}" for m in range(M)]
    backwards = [f"B{m}" for m in range(M)]
    return forwards + backwards + ["U0"]
"""
ACTIONS = "every action once, the forwards first, the update last"
TIME = "a minibatch takes (M + K - 1) (t_F + t_B) seconds"


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    return Mutant("gpipe", mistake, changed(RIGHT, *replacements), loses, says)


MUTANTS = [
    wrong(
        "one micro-batch after the other",
        (ACTIONS, TIME),
        "all forwards before the first backward",
        'forwards + backwards + ["U0"]',
        '[action for pair in zip(forwards, backwards) for action in pair] + ["U0"]',
    ),
    wrong(
        "the last micro-batch is missing",
        (ACTIONS, TIME),
        "is there 0 times",
        "range(M)]\n    backwards",
        "range(M - 1)]\n    backwards",
        'f"B{m}" for m in range(M)',
        'f"B{m}" for m in range(M - 1)',
    ),
    wrong(
        "as many micro-batches as stages",
        (ACTIONS, TIME),
        "K is the number of stages, M that of micro-batches",
        "range(M)",
        "range(K)",
    ),
    wrong("micro-batches from 1", (ACTIONS, TIME), "numbered from 0", "range(M)", "range(1, M + 1)"),
    wrong("an update for each micro-batch", (ACTIONS,), "One minibatch is one update", '["U0"]', '["U0"] * M'),
    wrong(
        "the update before the last backward",
        (ACTIONS,),
        "it comes after the last backward",
        'backwards + ["U0"]',
        'backwards[:-1] + ["U0"] + backwards[-1:]',
    ),
    wrong("no update", (ACTIONS,), "The minibatch ends with an update", ' + ["U0"]', ""),
    wrong(
        "the backwards in another order on every other stage",
        (TIME,),
        "not in the same order on all stages",
        "forwards + backwards",
        "forwards + backwards[:: 1 if s % 2 else -1]",
    ),
    wrong(
        "waiting is in the list",
        (ACTIONS, TIME),
        "waiting is no action",
        "return forwards",
        'return [""] * s + forwards',
    ),
    wrong(
        "the lists of all stages",
        (ACTIONS, TIME),
        "expected actions such as 'F0'",
        'return forwards + backwards + ["U0"]',
        'return [forwards + backwards + ["U0"] for _ in range(K)]',
    ),
    wrong(
        "a text instead of a list",
        (ACTIONS, TIME),
        "expected a list of actions",
        'return forwards + backwards + ["U0"]',
        'return " ".join(forwards + backwards + ["U0"])',
    ),
    wrong(
        "the forwards in descending order",
        (ACTIONS,),
        "The micro-batches come in the order of their numbers",
        "return forwards",
        "return forwards[::-1]",
    ),
    wrong(
        "sorted as texts", (ACTIONS,), "in this order", '["U0"]', '["U0"]', "return forwards", "return sorted(forwards)"
    ),
    wrong("the update has the number of the last micro-batch", (ACTIONS,), "U0 on every stage", '"U0"', 'f"U{M - 1}"'),
    wrong("the update has the number of the stage", (ACTIONS,), "U0 on every stage", '"U0"', 'f"U{s}"'),
    wrong("small letters", (ACTIONS, TIME), "a capital letter", 'f"F', 'f"f', 'f"B', 'f"b'),
    wrong("a space before the number", (ACTIONS, TIME), "directly behind it", "F{m}", "F {m}"),
    wrong(
        "pairs of a letter and a number",
        (ACTIONS, TIME),
        "An action is a string",
        'f"F{m}"',
        '("F", m)',
        'f"B{m}"',
        '("B", m)',
    ),
    wrong(
        "each stage begins with another micro-batch",
        (ACTIONS, TIME),
        "The micro-batches come in the order of their numbers",
        'f"F{m}"',
        'f"F{(m + s) % M}"',
    ),
    Mutant(
        "gpipe",
        "one list for all calls",
        """
actions = []
def gpipe(K, M, s):
    actions.extend([f"{kind}{m}" for kind in "FB" for m in range(M)] + ["U0"])
    return actions
""",
        (ACTIONS, TIME),
        "made outside of the function",
    ),
    Mutant(
        "gpipe",
        "actions are yielded",
        """
def gpipe(K, M, s):
    for kind in "FB":
        for m in range(M):
            yield f"{kind}{m}"
    yield "U0"
""",
        (ACTIONS, TIME),
        "returns a generator",
    ),
]

ALTERNATIVES = [
    Alternative(
        "gpipe",
        "the backwards in descending order, as the paper draws them",
        """
def gpipe(K, M, s):
    order = tuple(range(M))
    return tuple("F%d" % m for m in order) + tuple("B%d" % m for m in order[::-1]) + ("U0",)
""",
    ),
    Alternative(
        "gpipe",
        "a generator",
        """
def gpipe(K, M, s):
    def actions():
        for kind in "FB":
            for m in range(M):
                yield kind + str(m)
        yield "U0"
    return list(actions())
""",
    ),
    Alternative(
        "gpipe",
        "an array of strings",
        """
def gpipe(K, M, s):
    numbers = np.arange(M).astype(str)
    return np.concatenate([np.char.add("F", numbers), np.char.add("B", numbers), ["U0"]])
""",
    ),
    Alternative(
        "gpipe",
        "recursion, and backwards in an order of their own",
        """
def gpipe(K, M, s):
    if M == 0:
        return ["U0"]
    fewer = gpipe(K, M - 1, s)
    return fewer[: M - 1] + [f"F{M - 1}"] + [f"B{M - 1}"] + fewer[M - 1 :]
""",
    ),
]
