ANSWERS = r"""
=== parts
healthy: schedules that work, no false alarm; and one that does not work
circles: stages that wait for each other
missing: actions that never come, and stages that wait for themselves
=== base
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
=== wrong: numbers of two digits :: healthy, missing :: expected
-            if (s, "F" + action[1:]) not in done:
+            if (s, "F" + action[1:3]) not in done:
=== wrong: the first digit of a number :: healthy, missing :: expected
+            if (s, "F" + action[1]) not in done:
=== wrong: a hundred rounds and no more :: healthy :: This schedule works
-    while going:
+    for _ in range(100):
=== wrong: one action a stage, K rounds :: all :: This schedule works
+    for _ in range(K):
-            while place[s] < len(schedule[s]) and missing(s, schedule[s][place[s]]) is None:
+            if place[s] < len(schedule[s]) and missing(s, schedule[s][place[s]]) is None:
=== wrong: nothing ever waits :: all :: never finish
-    return waits
+    return {}
=== wrong: only those in the circle :: circles, missing :: also those that wait for a stage in the circle
+    def is_in_circle(s):
+        seen, at = [], s
+        while at in waits and at not in seen:
+            seen.append(at)
+            at = waits[at][1]
+        return at == s
+    return {s: wait for s, wait in waits.items() if is_in_circle(s)}
=== wrong: only the first stage that waits :: all :: also those that wait
+    return dict(list(waits.items())[:1])
=== wrong: a list of stages :: all :: expected a dictionary
+    return sorted(waits)
=== wrong: a backward does not need its own forward :: missing :: expected
-            if (s, "F" + action[1:]) not in done:
-                return s
=== wrong: the next stage is named before the own :: missing :: waits for itself
         if action.startswith("B"):
+            if s + 1 < K and (s + 1, action) not in done:
+                return s + 1
                 return s
-            if s + 1 < K and (s + 1, action) not in done:
-                return s + 1
=== wrong: the action after the one that waits :: all ::
-            waits[s] = (action, missing(s, action))
+            waits[s] = (schedule[s][min(place[s] + 1, len(schedule[s]) - 1)], missing(s, action))
=== wrong: the last action that was done :: all :: not the last one that it has done
+            waits[s] = (schedule[s][max(place[s] - 1, 0)], missing(s, action))
=== wrong: the stage before the action :: all :: the action first
+            waits[s] = (missing(s, action), action)
=== wrong: texts as keys :: all :: numbers of the stages
+            waits[str(s)] = (action, missing(s, action))
=== wrong: each waits for itself :: all :: waits for itself only before
+            waits[s] = (action, s)
=== wrong: gradients come from the stage before :: all :: expected
-            if s + 1 < K and (s + 1, action) not in done:
-                return s + 1
+            if s > 0 and (s - 1, action) not in done:
+                return s - 1
=== wrong: updates wait for all backwards :: healthy, missing :: This schedule works
                 return s + 1
+        backwards = sum(other == s and a[0] == "B" for other, a in done)
+        if action == "U0" and backwards < sum(a[0] == "F" for a in schedule[0]):
+            return s
=== wrong: a send waits until it is received :: all :: This schedule works
         return None
+
+    def action_is_sent_too_early(s, action, schedule, place):
+        other = s + 1 if action[0] == 'F' else s - 1
+        return action[0] in 'FB' and 0 <= other < K and schedule[other][place[other]:][:1] != [action]
                 done.add((s, schedule[s][place[s]]))
+                if action_is_sent_too_early(s, schedule[s][place[s]], schedule, place):
+                    done.discard((s, schedule[s][place[s]]))
+                    break
=== wrong: removes from the caller's lists :: healthy :: changed
     K = len(schedule)
+    for line in schedule:
+        if 'U0' in line:
+            line.remove('U0')
=== wrong: a stage has actions :: missing :: IndexError :: raised
+    first = [line[0] for line in schedule]
=== wrong: done actions without their stage :: circles, missing :: expected
-        if action.startswith("F") and s > 0 and (s - 1, action) not in done:
+        if action.startswith("F") and s > 0 and action not in done:
-            if (s, "F" + action[1:]) not in done:
+            if "F" + action[1:] not in done:
-            if s + 1 < K and (s + 1, action) not in done:
+            if s + 1 < K and action not in done:
-                done.add((s, schedule[s][place[s]]))
+                done.add(schedule[s][place[s]])
=== right: positions in the lists, and a queue of stages that may go on
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
=== right: stages as generators
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
=== right: actions and what they need as a graph
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
"""
