"""Answers to `weights_to_stash`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def weights_to_stash(actions):
    newest, used, most = 0, {}, 1
    for action in actions:
        kind, m = action[0], int(action[1:])
        if kind == "F":
            used[m] = newest
        elif kind == "B":
            used.pop(m)
        else:
            newest += 1
        held = {newest} | set(used.values())
        most = max(most, len(held))
    return most
"""
STRAIGHT, RARE = (
    "an update after each backward, as in PipeDream",
    "updates after several backwards, at the end, or never",
)
BOTH = (STRAIGHT, RARE)


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str, status: Status = Status.WRONG) -> Mutant:
    return Mutant("weights_to_stash", mistake, changed(RIGHT, *replacements), loses, says, status)


MUTANTS = [
    wrong(
        "all weights are stashed, one for each micro-batch under way",
        BOTH,
        "One copy for each micro-batch under way",
        "len(held)",
        "len(used)",
    ),
    wrong(
        "a copy for each micro-batch under way, and the newest",
        BOTH,
        "and the newest: those with the same version share it",
        "len(held)",
        "len(used) + 1",
    ),
    wrong(
        "all versions are kept",
        BOTH,
        "is released after",
        "            used.pop(m)",
        "            pass",
    ),
    wrong(
        "only old versions are counted",
        BOTH,
        "The newest version is held, too",
        "len(held)",
        "len(held) - 1",
        "used, most = 0, {}, 1",
        "used, most = 0, {}, 0",
    ),
    wrong(
        "the newest counts only if it is used",
        BOTH,
        "The newest version is",
        "{newest} | set(used.values())",
        "set(used.values())",
        "used, most = 0, {}, 1",
        "used, most = 0, {}, 0",
    ),
    wrong("one more than needed", BOTH, "and the newest", "return most", "return most + 1"),
    wrong("what is held at the end", BOTH, "expected", "max(most, len(held))", "len(held)"),
    wrong("the number of updates", BOTH, "expected", "return most", "return newest + 1"),
    wrong(
        "the forward's version is taken at the backward",
        BOTH,
        "expected",
        "used[m] = newest",
        "used[m] = 0",
    ),
    wrong(
        "an update is expected after every backward",
        (RARE,),
        "expected",
        "            used.pop(m)\n        else:\n            newest += 1",
        "            used.pop(m)\n            newest += 1",
    ),
    wrong(
        "micro-batches with one digit only",
        BOTH,
        "KeyError",
        "int(action[1:])",
        "int(action[1:]) if len(action) < 3 else -len(used)",
        status=Status.RAISED,
    ),
    wrong(
        "the first digit of a micro-batch's number",
        (RARE,),
        "micro-batches from number 10 on",
        "int(action[1:])",
        "action[1]",
        "used.pop(m)",
        "used.pop(m, None)",
    ),
    wrong(
        "all versions from the oldest in use to the newest",
        BOTH,
        "One copy for each micro-batch under way",
        "{newest} | set(used.values())",
        "range(min(used.values(), default=newest), newest + 1)",
    ),
    wrong(
        "takes the actions out of the caller's list",
        (STRAIGHT,),
        "changed",
        "    for action in actions:",
        "    while actions:\n        action = actions.pop(0)",
    ),
    wrong("a text", BOTH, "expected a number", "return most", "return str(most)"),
]

ALTERNATIVES = [
    Alternative(
        "weights_to_stash",
        "the users of each version",
        """
def weights_to_stash(actions):
    users = [set()]
    of, most = {}, 1
    for action in actions:
        m = action[1:]
        if action.startswith("U"):
            users.append(set())
        elif action.startswith("F"):
            users[-1].add(m)
            of[m] = users[-1]
        else:
            of[m].remove(m)
        users = [one for one in users[:-1] if one] + users[-1:]
        most = max(most, len(users))
    return most
""",
    ),
    Alternative(
        "weights_to_stash",
        "intervals, after the fact",
        """
def weights_to_stash(actions):
    updates = np.cumsum([action[0] == "U" for action in actions])
    spans = [(i, actions.index("B" + a[1:])) for i, a in enumerate(actions) if a[0] == "F"]
    counts = []
    for now in range(len(actions)):
        old = {int(updates[i]) for i, j in spans if i <= now < j}
        counts.append(len(old | {int(updates[now])}))
    return max(counts, default=1)
""",
    ),
    Alternative(
        "weights_to_stash",
        "recursion, and an integer of numpy",
        """
def weights_to_stash(actions, newest=0, used=()):
    held = np.int64(len({newest, *dict(used).values()}))
    if not actions:
        return held
    kind, m, rest = actions[0][0], actions[0][1:], actions[1:]
    if kind == "U":
        return max(held, weights_to_stash(rest, newest + 1, used))
    if kind == "F":
        return max(held, weights_to_stash(rest, newest, (*used, (m, newest))))
    return max(held, weights_to_stash(rest, newest, tuple(one for one in used if one[0] != m)))
""",
    ),
    Alternative(
        "weights_to_stash",
        "the updates have different numbers, so each names a version",
        """
def weights_to_stash(actions):
    newest, of, held = "", {}, []
    for action in actions:
        if action[0] == "U":
            newest = action
        elif action[0] == "F":
            of[action[1:]] = newest
        else:
            del of[action[1:]]
        held.append(len({newest} | set(of.values())))
    return max(held)
""",
    ),
]
