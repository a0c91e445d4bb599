ANSWERS = r"""
=== parts
fits: every action has what it needs, and the units fit
fetches: no unit is fetched more often than necessary
time: the fewest seconds, however fast the link is
=== base
def fetch_schedule(n, size, room):
    places = min(n, room // size)
    actions = [f"+{i}" for i in range(places)]
    for i in range(n):
        actions += [f"F{i}"]
        if i + places < n:
            actions += [f"-{i}", f"+{i + places}"]
    for i in reversed(range(n)):
        actions += [f"B{i}", f"G{i}"]
        if i >= places:
            actions += [f"+{i - places}"]
    return actions
=== wrong: one unit at a time :: fetches, time :: Each unit is fetched again for its backward
def fetch_schedule(n, size, room):
    actions = []
    for i in range(n):
        actions += [f"+{i}", f"F{i}", f"-{i}"]
    for i in reversed(range(n)):
        actions += [f"+{i}", f"B{i}", f"G{i}"]
    return actions
=== wrong: one unit at a time, the last one stays :: fetches, time :: keep as many of these as fit
def fetch_schedule(n, size, room):
    actions = []
    for i in range(n):
        actions += [f"+{i}", f"F{i}"] + [f"-{i}"] * (i < n - 1)
    for i in reversed(range(n)):
        actions += [f"+{i}"] * (i < n - 1) + [f"B{i}", f"G{i}"]
    return actions
=== wrong: prefetches one unit, whatever fits :: fetches, time :: keep as many of these as fit
-    places = min(n, room // size)
+    places = min(n, room // size, 2)
=== wrong: everything at the beginning, whatever fits :: all :: and room for no other
+    places = n
=== wrong: places rounded up :: all :: and room for no other
+    places = min(n, -(-room // size))
=== wrong: a place is left for the gradient :: fetches, time :: expected
+    places = min(n, max(1, room // size - 1))
=== wrong: room is a number of units :: all :: and room for no other
+    places = min(n, room)
=== wrong: the first units stay, so that forward cannot prefetch :: time :: list it directly behind
def fetch_schedule(n, size, room):
    places = min(n, room // size)
    stay = places - 1
    actions, there = [], []
    for i in range(n):
        if len(there) == places:
            actions.append(f"-{there.pop()}")
        actions += [f"+{i}", f"F{i}"]
        there.append(i)
    for i in reversed(range(n)):
        if i not in there:
            actions.append(f"+{i}")
        else:
            there.remove(i)
        actions += [f"B{i}", f"G{i}"]
    return actions
=== wrong: all places are emptied after forward :: fetches, time :: Each unit is fetched again
             actions += [f"-{i}", f"+{i + places}"]
+    actions += [f"-{i}" for i in range(n - places, n)] + [f"+{i}" for i in range(n - 1, n - 1 - places, -1)]
=== wrong: nothing is evicted :: all :: and room for no other
-            actions += [f"-{i}", f"+{i + places}"]
+            actions += [f"+{i + places}"]
=== wrong: fetched before the place is free :: all :: and room for no other
+            actions += [f"+{i + places}", f"-{i}"]
=== wrong: evicted before it computes :: all :: are not on the device
-        actions += [f"F{i}"]
-        if i + places < n:
-            actions += [f"-{i}", f"+{i + places}"]
+        if i + places < n:
+            actions += [f"-{i}", f"+{i + places}"]
+        actions += [f"F{i}"]
=== wrong: gradients are evicted :: all :: is lost
-        actions += [f"B{i}", f"G{i}"]
+        actions += [f"B{i}", f"-{i}"]
=== wrong: gradients stay :: all :: and room for no other
+        actions += [f"B{i}"]
=== wrong: sent back and evicted :: all :: is not on the device
+        actions += [f"B{i}", f"G{i}", f"-{i}"]
=== wrong: sent back before backward :: all :: there is no gradient of unit
+        actions += [f"G{i}", f"B{i}"]
=== wrong: gradients stay, but for those whose place is needed :: all :: is not sent back
-        actions += [f"B{i}", f"G{i}"]
-        if i >= places:
-            actions += [f"+{i - places}"]
+        actions += [f"B{i}"]
+        if i >= places:
+            actions += [f"G{i}", f"+{i - places}"]
=== wrong: at the end, the gradients are sent back in ascending order :: time :: in the order of the backwards
+        actions += [f"B{i}"]
+        if i >= places:
+            actions += [f"G{i}", f"+{i - places}"]
+    actions += [f"G{i}" for i in range(places)]
=== wrong: backward from the first unit on :: all :: Backward begins with the last unit
-    for i in reversed(range(n)):
-        actions += [f"B{i}", f"G{i}"]
-        if i >= places:
-            actions += [f"+{i - places}"]
+    there = list(range(n - places, n))
+    for i in range(n):
+        if i not in there:
+            if len(there) == places:
+                actions += [f"-{there.pop(0)}"]
+            actions += [f"+{i}"]
+        else:
+            there.remove(i)
+        actions += [f"B{i}", f"G{i}"]
=== wrong: the last unit's backward is missing :: all :: is missing
-    for i in reversed(range(n)):
+    for i in reversed(range(n - 1)):
=== wrong: fetches only when they are needed :: time :: list it directly behind the one that makes room
-        if i >= places:
-            actions += [f"+{i - places}"]
+        if 0 < i <= n - places:
+            actions += [f"+{i - 1}"]
=== wrong: backward's fetches one send-back late :: time :: list it directly behind the one that makes room
     for i in reversed(range(n)):
+        late = i + 1 - places
         actions += [f"B{i}", f"G{i}"]
-        if i >= places:
-            actions += [f"+{i - places}"]
+        if places == 1 and i:
+            actions += [f"+{i - 1}"]
+        if places > 1 and 0 <= late < n - places:
+            actions += [f"+{late}"]
=== wrong: the units of backward are fetched in ascending order :: all :: are not on the device
-            actions += [f"+{i - places}"]
+            actions += [f"+{n - 1 - i}"]
=== wrong: evictions all at the end of forward :: all :: and room for no other
-        if i + places < n:
-            actions += [f"-{i}", f"+{i + places}"]
+        if i + places < n:
+            actions += [f"+{i + places}"]
+    actions += [f"-{i}" for i in range(n - places)]
=== wrong: units from 1 on :: all :: is of a unit that there is not
-    return actions
+    return [action[0] + str(int(action[1:]) + 1) for action in actions]
=== wrong: pairs :: all :: expected actions such as '+0'
+    return [(action[0], int(action[1:])) for action in actions]
=== wrong: one text :: all :: expected a list of actions
+    return " ".join(actions)
=== wrong: what is fetched for forward is fetched twice :: all :: is on the device
+    return actions[:1] + actions
=== wrong: as a generator :: all :: expected a list of actions
+    return (action for action in actions)
=== wrong: two units are exchanged for no reason :: fetches :: keep as many of these as fit
+    if 1 < places < n:
+        at = actions.index(f"B{n - 1}")
+        return actions[:at] + [f"-{n - places}", f"+{n - places}"] + actions[at:]
+    return actions
=== wrong: one of three places is empty until the first forward is done :: time :: list it directly behind
     places = min(n, room // size)
-    actions = [f"+{i}" for i in range(places)]
+    first = places - 1 if 2 < places < n else places
+    actions = [f"+{i}" for i in range(first)]

         if i + places < n:
-            actions += [f"-{i}", f"+{i + places}"]
+            actions += [f"-{i}"] + [f"+{k}" for k in range(first if i == 0 else i + places, i + places + 1)]
=== wrong: waits for the send-backs of two units :: time :: list it directly behind the one that makes room
-        if i >= places:
+        if i >= places and (n - i) % 2 == 0 and places > 1:
+            actions += [f"+{i + 1 - places}", f"+{i - places}"]
+        elif i >= places and places == 1:
             actions += [f"+{i - places}"]
+        elif i == places and places > 1:
+            actions += [f"+0"]
=== right: simulated with a set of units on the device, what comes next decided by when it is needed; a tuple
def fetch_schedule(n, size, room):
    order = [("F", i) for i in range(n)] + [("B", i) for i in range(n - 1, -1, -1)]
    needed = [unit for _, unit in order]
    there, actions, coming = set(), [], 0

    def fetch(done):
        nonlocal coming
        while coming < 2 * n:
            unit = needed[coming]
            if unit in there and coming >= n or (coming >= n and unit in fetched_again):
                coming += 1
                continue
            if len(there) * size + size > room:
                return
            there.add(unit)
            if coming >= n:
                fetched_again.add(unit)
            actions.append(f"+{unit}")
            coming += 1

    fetched_again = set()
    fetch(0)
    for step, (kind, unit) in enumerate(order):
        actions.append(f"{kind}{unit}")
        if kind == "B":
            actions.append(f"G{unit}")
            there.discard(unit)
        elif unit < n - room // size:
            actions.append(f"-{unit}")
            there.discard(unit)
        fetch(step + 1)
    return tuple(actions)
=== right: fetches as early in the list as they may be, evictions after a forward more, as an array
import numpy as np
def fetch_schedule(n, size, room):
    p = int(np.minimum(n, room // size))
    actions = ["+%d" % i for i in np.arange(p)]
    for i in range(n):
        if 0 < i <= n - p:
            actions.extend(["-%d" % (i - 1), "+%d" % (i - 1 + p)])
        actions.append("F%d" % i)
    for i in range(n)[::-1]:
        actions.append("B%d" % i)
        actions.append("G%d" % i)
        if i - p >= 0:
            actions.append("+%d" % (i - p))
    return np.array(actions)
=== right: all send-backs and fetches of backward listed as soon as their order allows, computing last
def fetch_schedule(n, size, room):
    p = min(n, room // size)
    first = [f"+{i}" for i in range(p)]
    forward = []
    for i in range(n - p):
        forward += [f"F{i}", f"-{i}", f"+{i + p}"]
    forward += [f"F{i}" for i in range(n - p, n)]
    backward = [f"B{n - 1}"]
    for i in range(n - 1, -1, -1):
        backward += [f"G{i}"] + [f"+{i - p}"] * (i >= p) + [f"B{i - 1}"] * (i > 0)
    return first + forward + backward
"""
