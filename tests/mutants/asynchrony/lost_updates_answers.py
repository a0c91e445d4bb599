ANSWERS = r"""
=== parts
harmless: nothing is lost: with a lock, or in different cells
races: what is lost in races
=== base
def lost_updates(events):
    counters, seen, writes = {}, {}, 0
    for worker, action, cell in events:
        if action == "read":
            seen[worker, cell] = counters.get(cell, 0)
        else:
            counters[cell] = seen[worker, cell] + 1
            writes += 1
    return writes - sum(counters.values())
=== wrong: never anything :: all :: Something is lost here
def lost_updates(events):
    return 0
=== wrong: what is left instead of what is lost :: all :: not lost
-    return writes - sum(counters.values())
+    return sum(counters.values())
=== wrong: by cell, in a dictionary :: all :: expected
+    return counters
=== wrong: forgets to return :: all :: without a `return`
+    writes - sum(counters.values())
=== wrong: each write that overwrites another worker's counts once :: races
:: A write that is late by several loses several
def lost_updates(events):
    version, seen, lost = {}, {}, 0
    for worker, action, cell in events:
        if action == "read":
            seen[worker, cell] = version.get(cell, 0)
        else:
            lost += version.get(cell, 0) != seen[worker, cell]
            version[cell] = version.get(cell, 0) + 1
    return lost
=== wrong: all cells are one :: all :: The cells are counted as one
     for worker, action, cell in events:
+        cell = 0
=== wrong: every read that its write does not follow at once :: all
:: Other workers may come between a read and its write without loss
def lost_updates(events):
    lost = 0
    for one, other in zip(events, events[1:]):
        lost += one[1] == "read" and (other[0] != one[0] or other[1] != "write")
    return lost
=== wrong: one cell's value per worker :: races :: expected
-            seen[worker, cell] = counters.get(cell, 0)
+            seen[worker] = counters.get(cell, 0)
-            counters[cell] = seen[worker, cell] + 1
+            counters[cell] = seen[worker] + 1
=== wrong: a counter begins when it is first written :: all :: KeyError :: raised
+            seen[worker, cell] = counters[cell]
=== wrong: writes add to the present value :: all :: expected
-            counters[cell] = seen[worker, cell] + 1
+            counters[cell] = counters.get(cell, 0) + 1
=== wrong: a write never gives anything back :: races :: expected
-    counters, seen, writes = {}, {}, 0
+    counters, seen, lost = {}, {}, 0
         else:
+            lost += max(0, counters.get(cell, 0) - seen[worker, cell])
-            writes += 1
-    return writes - sum(counters.values())
+    return lost
=== right: cell by cell, what each write changes
def lost_updates(events):
    lost = 0
    for cell in {cell for _, _, cell in events}:
        value, seen = 0, {}
        for worker, action, other in events:
            if other == cell and action == "read":
                seen[worker] = value
            elif other == cell:
                lost += 1 - (seen[worker] + 1 - value)
                value = seen[worker] + 1
    return lost
=== right: arrays, and a numpy integer
from collections import defaultdict

def lost_updates(events):
    counters, pending = defaultdict(int), {}
    for worker, action, cell in events:
        if action == "write":
            counters[cell] = pending.pop((worker, cell))
        else:
            pending[worker, cell] = 1 + counters[cell]
    return np.sum([action == "write" for _, action, _ in events]) - np.sum(list(counters.values()))
"""
