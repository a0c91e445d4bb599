ANSWERS = r"""
=== parts
straight: an update after each backward, as in PipeDream
rare: updates after several backwards, at the end, or never
=== base
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
=== wrong: numbers of two digits :: rare :: from number 100 on
-        kind, m = action[0], int(action[1:])
+        kind, m = action[0], action[1:3]
-            used.pop(m)
+            used.pop(m, None)
=== wrong: micro-batches with one digit only :: all :: KeyError :: raised
+        kind, m = action[0], int(action[1:]) if len(action) < 3 else -len(used)
=== wrong: the first digit of a micro-batch's number :: rare :: micro-batches from number 100 on
+        kind, m = action[0], action[1]
-            used.pop(m)
+            used.pop(m, None)
=== wrong: a copy for each micro-batch under way, and the newest :: all
:: and the newest: those with the same version share it
-        most = max(most, len(held))
+        most = max(most, len(used) + 1)
=== wrong: what is held at the end :: all :: expected
+        most = len(held)
=== wrong: all versions are kept :: all :: is released after
-            used.pop(m)
+            pass
=== wrong: only old versions are counted :: all :: The newest version is held, too
-    newest, used, most = 0, {}, 1
+    newest, used, most = 0, {}, 0
-        most = max(most, len(held))
+        most = max(most, len(held) - 1)
=== wrong: the newest counts only if it is used :: all :: The newest version is
+    newest, used, most = 0, {}, 0
-        held = {newest} | set(used.values())
+        held = set(used.values())
=== wrong: the number of updates :: all :: expected
-    return most
+    return newest + 1
=== wrong: the forward's version is taken at the backward :: all :: expected
-            used[m] = newest
+            used[m] = 0
=== wrong: an update is expected after every backward :: rare :: expected
-        else:
=== wrong: all versions from the oldest in use to the newest :: all :: One copy for each micro-batch under way
-        held = {newest} | set(used.values())
+        held = range(min(used.values(), default=newest), newest + 1)
=== wrong: takes the actions out of the caller's list :: straight :: changed
-    for action in actions:
+    while actions:
+        action = actions.pop(0)
=== right: the users of each version
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
=== right: recursion, and an integer of numpy
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
=== right: the updates have different numbers, so each names a version
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
"""
