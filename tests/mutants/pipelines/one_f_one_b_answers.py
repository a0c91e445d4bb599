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
    wrong(
        "the warm-up has more forwards than there are micro-batches",
        (ACTIONS, TIME, MEMORY),
        "is less than K",
        "min(M, K - 1 - s)",
        "K - 1 - s",
    ),
    wrong("a warm-up of both ways", (MEMORY,), "too long", "min(M, K - 1 - s)", "min(M, 2 * (K - 1 - s))"),
    wrong("a warm-up of all stages", (TIME, MEMORY), "all gradients come later", "min(M, K - 1 - s)", "min(M, K)"),
    wrong(
        "after the warm-up a backward comes first",
        (TIME,),
        "one forward short",
        "min(M, K - 1 - s)",
        "min(M, max(1, K - 1 - s))",
        '        actions.append(f"F{warm_up + m}")\n        actions.append(f"B{m}")',
        '        actions.append(f"B{m}")\n        actions.append(f"F{warm_up + m}")',
    ),
    wrong(
        "updates as in PipeDream",
        (ACTIONS,),
        "One minibatch is one update",
        'actions.append(f"B{m}")',
        'actions += [f"B{m}", f"U{m}"]',
        'actions + ["U0"]',
        "actions",
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
    Alternative(
        "one_f_one_b",
        "each backward stands K - 1 - s places behind its forward",
        """
from itertools import chain
def one_f_one_b(K, M, s):
    behind = K - 1 - s
    pairs = ((f"F{i}" * (i < M), f"B{i - behind}" * (i >= behind)) for i in range(M + behind))
    return tuple(action for action in chain(*pairs, ["U0"]) if action)
""",
    ),
    Alternative(
        "one_f_one_b",
        "all stages are played, and a backward comes before a forward",
        """
def one_f_one_b(K, M, s):
    ends, lists, free = {}, [[] for _ in range(K)], [0] * K
    forwards, backwards, now = [0] * K, [0] * K, 0
    while min(backwards) < M:
        for j in (j for j in range(K) if free[j] <= now):
            f, b = forwards[j], backwards[j]
            if b < f and (j == K - 1 or ends.get((j + 1, "B", b), now + 1) <= now):
                lists[j].append(f"B{b}")
                ends[j, "B", b] = free[j] = now + 1
                backwards[j] += 1
            elif f < M and f - b < K - j and (j == 0 or ends.get((j - 1, "F", f), now + 1) <= now):
                lists[j].append(f"F{f}")
                ends[j, "F", f] = free[j] = now + 1
                forwards[j] += 1
        now += 1
    return lists[s] + ["U0"]
""",
    ),
]
