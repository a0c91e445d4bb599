"""Answers to `deadlock`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

HEALTHY = "schedules that work, no false alarm; and one that does not work"
CIRCLES = "stages that wait for each other"
MISSING = "actions that never come, and stages that wait for themselves"
ALL = (HEALTHY, CIRCLES, MISSING)

RIGHT = """
def deadlock(schedule):
    K = len(schedule)
    done = set()
    place = [0] * K

    def missing(s, action):
        if action.startswith("F") and s > 0 and (s - 1, action) not in done:
            return s - 1
        if action.startswith("B"):
            if (s, "F" + action[1:]) not in done:
                return s
            if s + 1 < K and (s + 1, action) not in done:
                return s + 1
        return None

    going = True
    while going:
        going = False
        for s in range(K):
            while place[s] < len(schedule[s]) and missing(s, schedule[s][place[s]]) is None:
                done.add((s, schedule[s][place[s]]))
                place[s] += 1
                going = True
    waits = {}
    for s in range(K):
        if place[s] < len(schedule[s]):
            action = schedule[s][place[s]]
            waits[s] = (action, missing(s, action))
    return waits
"""


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str, status: Status = Status.WRONG) -> Mutant:
    return Mutant("deadlock", mistake, changed(RIGHT, *replacements), loses, says, status)


MUTANTS = [
    wrong("one round only", ALL, "This schedule works", "while going:", "for _ in range(1):"),
    wrong("nothing ever waits", ALL, "never finish", "    return waits", "    return {}"),
    wrong(
        "one action a stage, K rounds",
        ALL,
        "This schedule works",
        "while going:",
        "for _ in range(K):",
        "            while place[s]",
        "            if place[s]",
    ),
    wrong(
        "a backward does not need its own forward",
        (MISSING,),
        "expected",
        '            if (s, "F" + action[1:]) not in done:\n                return s\n',
        "",
    ),
    wrong(
        "the next stage is named before the own",
        (MISSING,),
        "waits for itself",
        '            if (s, "F" + action[1:]) not in done:\n                return s\n            if s + 1 < K and'
        " (s + 1, action) not in done:\n                return s + 1\n",
        "            if s + 1 < K and (s + 1, action) not in done:\n                return s + 1\n"
        '            if (s, "F" + action[1:]) not in done:\n                return s\n',
    ),
    wrong(
        "the action after the one that waits",
        (HEALTHY, CIRCLES, MISSING),
        "",
        "waits[s] = (action, missing(s, action))",
        "waits[s] = (schedule[s][min(place[s] + 1, len(schedule[s]) - 1)], missing(s, action))",
    ),
    wrong(
        "the last action that was done",
        ALL,
        "not the last one that it has done",
        "waits[s] = (action, missing(s, action))",
        "waits[s] = (schedule[s][max(place[s] - 1, 0)], missing(s, action))",
    ),
    wrong(
        "gradients come from the stage before",
        ALL,
        "expected",
        "if s + 1 < K and (s + 1, action) not in done:\n                return s + 1",
        "if s > 0 and (s - 1, action) not in done:\n                return s - 1",
    ),
    wrong(
        "updates wait for all backwards",
        (HEALTHY, MISSING),
        "This schedule works",
        "        return None",
        '        if action == "U0" and sum(other == s and a[0] == "B" for other, a in done) '
        '< sum(a[0] == "F" for a in schedule[0]):\n            return s\n        return None',
    ),
    wrong(
        "only those in the circle",
        (CIRCLES, MISSING),
        "also those that wait for a stage in the circle",
        "    return waits",
        "    def is_in_circle(s):\n        seen, at = [], s\n        while at in waits and at not in seen:\n"
        "            seen.append(at)\n            at = waits[at][1]\n        return at == s\n"
        "    return {s: wait for s, wait in waits.items() if is_in_circle(s)}",
    ),
    wrong(
        "only the first stage that waits",
        ALL,
        "also those that wait",
        "    return waits",
        "    return dict(list(waits.items())[:1])",
    ),
    wrong(
        "a send waits until it is received",
        ALL,
        "This schedule works",
        "                place[s] += 1\n                going = True",
        "                if action_is_sent_too_early(s, schedule[s][place[s]], schedule, place):\n"
        "                    done.discard((s, schedule[s][place[s]]))\n                    break\n"
        "                place[s] += 1\n                going = True",
        "    going = True\n    while",
        "    def action_is_sent_too_early(s, action, schedule, place):\n"
        "        other = s + 1 if action[0] == 'F' else s - 1\n"
        "        return action[0] in 'FB' and 0 <= other < K and schedule[other][place[other]:][:1] != [action]\n"
        "    going = True\n    while",
    ),
    wrong("a list of stages", ALL, "expected a dictionary", "    return waits", "    return sorted(waits)"),
    wrong(
        "removes from the caller's lists",
        (HEALTHY,),
        "changed",
        "    K = len(schedule)",
        "    K = len(schedule)\n    for line in schedule:\n        if 'U0' in line:\n            line.remove('U0')",
    ),
    wrong("the first digit of a number", (MISSING,), "expected", '"F" + action[1:]', '"F" + action[1]'),
    wrong(
        "done actions without their stage",
        (CIRCLES, MISSING),
        "expected",
        "(s - 1, action)",
        "action",
        '(s, "F" + action[1:])',
        '"F" + action[1:]',
        "(s + 1, action)",
        "action",
        "done.add((s, schedule[s][place[s]]))",
        "done.add(schedule[s][place[s]])",
    ),
    wrong(
        "the stage before the action",
        ALL,
        "the action first",
        "(action, missing(s, action))",
        "(missing(s, action), action)",
    ),
    wrong("texts as keys", ALL, "numbers of the stages", "waits[s] =", "waits[str(s)] ="),
    wrong(
        "each waits for itself",
        ALL,
        "waits for itself only before",
        "waits[s] = (action, missing(s, action))",
        "waits[s] = (action, s)",
    ),
    wrong(
        "a stage has actions",
        (MISSING,),
        "IndexError",
        "    K = len(schedule)",
        "    K = len(schedule)\n    first = [line[0] for line in schedule]",
        status=Status.RAISED,
    ),
    wrong(
        "an exception",
        ALL,
        "RuntimeError",
        "    return waits",
        "    if waits:\n        raise RuntimeError(waits)\n    return waits",
        status=Status.RAISED,
    ),
]

ALTERNATIVES = [
    Alternative(
        "deadlock",
        "positions in the lists, and a queue of stages that may go on",
        """
def deadlock(schedule):
    from collections import deque
    K = len(schedule)
    where = [{action: i for i, action in enumerate(line)} for line in schedule]
    position = [0] * K
    never = float("inf")

    def sources(s, action):
        if action[0] == "F" and s:
            yield s - 1, action
        if action[0] == "B":
            yield s, "F" + action[1:]
            if s < K - 1:
                yield s + 1, action

    def blocker(s):
        action = schedule[s][position[s]]
        for other, needed in sources(s, action):
            if where[other].get(needed, never) >= position[other]:
                return other
        return None

    queue = deque(range(K))
    while queue:
        s = queue.popleft()
        before = position[s]
        while position[s] < len(schedule[s]) and blocker(s) is None:
            position[s] += 1
        if position[s] > before:
            queue.extend(t for t in (s - 1, s + 1) if 0 <= t < K)
    return {s: (schedule[s][position[s]], blocker(s)) for s in range(K) if position[s] < len(schedule[s])}
""",
    ),
    Alternative(
        "deadlock",
        "stages as generators",
        """
def deadlock(schedule):
    K, done = len(schedule), [set() for _ in schedule]

    def stage(s):
        for action in schedule[s]:
            m = action[1:]
            if action[0] == "F" and s:
                while action not in done[s - 1]:
                    yield action, s - 1
            if action[0] == "B":
                while "F" + m not in done[s]:
                    yield action, s
                while s < K - 1 and action not in done[s + 1]:
                    yield action, s + 1
            done[s].add(action)

    stages = {s: stage(s) for s in range(K)}
    waits, before = {}, -1
    while before != sum(map(len, done)):
        before = sum(map(len, done))
        waits = {s: next(each, None) for s, each in stages.items()}
        waits = {s: wait for s, wait in waits.items() if wait}
        stages = {s: stages[s] for s in waits}
    return waits
""",
    ),
    Alternative(
        "deadlock",
        "actions and what they need as a graph",
        """
def deadlock(schedule):
    last, needs = len(schedule) - 1, {}
    for s, line in enumerate(schedule):
        for i, action in enumerate(line):
            kind, m = action[0], action[1:]
            needs[s, action] = [(s, line[i - 1])] * (i > 0) + [(s - 1, action)] * (kind == "F" and s > 0)
            needs[s, action] += [(s, "F" + m)] * (kind == "B") + [(s + 1, action)] * (kind == "B" and s < last)
    done, before = set(), -1
    while len(done) > before:
        before = len(done)
        done |= {one for one, others in needs.items() if done.issuperset(others)}
    stuck = {}
    for s, line in enumerate(schedule):
        for action in line:
            if (s, action) not in done:
                own = (s, "F" + action[1:])
                stuck[s] = [action, s - 1 if action[0] == "F" else s if own not in done else s + 1]
                break
    return stuck
""",
    ),
    Alternative(
        "deadlock",
        "a heap of stages that may go on, and of stages that wait for an action",
        """
import heapq
def deadlock(schedule):
    K, done, parked = len(schedule), set(), {}
    place, heap = np.zeros(K, int), list(range(K))

    def missing(s, action):
        m = action[1:]
        needed = {"F": [(s - 1, action)], "B": [(s, f"F{m}"), (s + 1, action)], "U": []}[action[0]]
        return next((one for one in needed if 0 <= one[0] < K and one not in done), None)

    while heap:
        s = heapq.heappop(heap)
        while place[s] < len(schedule[s]):
            action = schedule[s][place[s]]
            if one := missing(s, action):
                parked.setdefault(one, []).append(s)
                break
            done.add((s, action))
            place[s] += 1
            for other in parked.pop((s, action), []):
                heapq.heappush(heap, other)
    at = {s: schedule[s][place[s]] for s in np.arange(K) if place[s] < len(schedule[s])}
    return {s: (action, missing(s, action)[0]) for s, action in at.items()}
""",
    ),
]
