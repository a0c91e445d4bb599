"""Answers to `one_f_one_b`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def one_f_one_b(K, M, s):
    warm_up = min(M, K - 1 - s)
    actions = [f"F{m}" for m in range(warm_up)]
    for m in range(M - warm_up):
        actions.append(f"F{warm_up + m}")
        actions.append(f"B{m}")
    for m in range(M - warm_up, M):
        actions.append(f"B{m}")
    return actions + ["U0"]
"""
ACTIONS = "every action once, in order, the update last"
TIME = "a minibatch takes (M + K - 1) (t_F + t_B) seconds"
MEMORY = "stage s keeps the activations of at most min(M, K - s) micro-batches"


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    return Mutant("one_f_one_b", mistake, changed(RIGHT, *replacements), loses, says)


MUTANTS = [
    wrong("the warm-up is one short", (TIME,), "one forward short", "min(M, K - 1 - s)", "max(0, min(M, K - 2 - s))"),
    wrong("the warm-up is one long", (MEMORY,), "one forward too long", "min(M, K - 1 - s)", "min(M, K - s)"),
    wrong("GPipe", (MEMORY,), "that is GPipe", "min(M, K - 1 - s)", "M"),
    wrong("no warm-up", (TIME,), "Without a warm-up", "min(M, K - 1 - s)", "0"),
    wrong("the warm-up grows with the stage", (TIME, MEMORY), "waits for ever", "min(M, K - 1 - s)", "min(M, s)"),
    wrong(
        "the same warm-up on all stages",
        (TIME, MEMORY),
        "all gradients come later",
        "min(M, K - 1 - s)",
        "min(M, K - 1)",
    ),
    wrong(
        "more forwards than micro-batches",
        (ACTIONS, TIME, MEMORY),
        "is of a micro-batch that there is not",
        "min(M, K - 1 - s)",
        "K - 1 - s",
        "range(M - warm_up, M)",
        "range(max(0, M - warm_up), M)",
    ),
    wrong(
        "a backward before the forward in each pair",
        (ACTIONS, TIME),
        "comes before F0",
        '        actions.append(f"F{warm_up + m}")\n        actions.append(f"B{m}")',
        '        actions.append(f"B{m}")\n        actions.append(f"F{warm_up + m}")',
    ),
    wrong(
        "the backwards of the warm-up are missing",
        (ACTIONS, TIME, MEMORY),
        "is there 0 times",
        "for m in range(M - warm_up, M):",
        "for m in range(M - warm_up, M - warm_up):",
    ),
    wrong(
        "an update after each backward",
        (ACTIONS,),
        "One minibatch is one update",
        'actions.append(f"B{m}")',
        'actions += [f"B{m}", "U0"]',
    ),
    wrong(
        "the update before the remaining backwards",
        (ACTIONS,),
        "it comes after the last backward",
        "    for m in range(M - warm_up, M):",
        '    actions.append("U0")\n    for m in range(M - warm_up, M):',
        'return actions + ["U0"]',
        "return actions",
    ),
    wrong(
        "the newest micro-batch goes back first",
        (ACTIONS, TIME),
        "in this order",
        'actions.append(f"B{m}")\n    for m in range(M - warm_up, M):',
        'actions.append(f"B{warm_up + m}")\n    for m in reversed(range(warm_up)):',
    ),
    wrong(
        "the remaining backwards in descending order",
        (ACTIONS, TIME),
        "in this order",
        "for m in range(M - warm_up, M):",
        "for m in reversed(range(M - warm_up, M)):",
    ),
]

ALTERNATIVES = [
    Alternative(
        "one_f_one_b",
        "a forward while there is room, else a backward",
        """
def one_f_one_b(K, M, s):
    actions, forwards, backwards = [], 0, 0
    while backwards < M:
        if forwards < M and forwards - backwards < K - s:
            actions.append("F" + str(forwards))
            forwards += 1
        else:
            actions.append("B" + str(backwards))
            backwards += 1
    actions.append("U0")
    return actions
""",
    ),
    Alternative(
        "one_f_one_b",
        "sorted by the moment at which each action would begin in a pipeline of equal times",
        """
def one_f_one_b(K, M, s):
    room = min(M, K - s)
    place = {f"F{m}": (m if m < room else room + 2 * (m - room) + 1, 0) for m in range(M)}
    place |= {f"B{m}": (room + 2 * m, 1) for m in range(M)}
    return [*sorted(place, key=place.get), "U0"]
""",
    ),
]
