ANSWERS = r"""
=== parts
plain: without a kill
between: killed between two operations
inside: killed in the middle of a write
twice: killed again on the way back
rest: the rest
=== base
def train_with_checkpoints(state, step, steps, k, storage):
    start = 0
    if "saved" in storage.names():
        start, state = storage.read("saved")
    for t in range(start, steps):
        state = step(state, t)
        if (t + 1) % k == 0:
            storage.write("saved.tmp", (t + 1, state))
            storage.rename("saved.tmp", "saved")
    return state
=== wrong: nothing is saved :: between, inside, twice :: Nothing is in the storage
-        if (t + 1) % k == 0:
-            storage.write("saved.tmp", (t + 1, state))
-            storage.rename("saved.tmp", "saved")
+
=== wrong: nothing is read :: between, inside, twice :: was not read
-    if "saved" in storage.names():
-        start, state = storage.read("saved")
+    pass
=== wrong: written in place, and nothing is read that is incomplete :: inside, twice :: No file is complete
+    if "saved" in storage.names():
+        try:
+            start, state = storage.read("saved")
+        except ValueError:
+            pass
-            storage.write("saved.tmp", (t + 1, state))
-            storage.rename("saved.tmp", "saved")
+            storage.write("saved", (t + 1, state))
=== wrong: the unfinished file is read, too :: inside, twice :: is incomplete :: raised
+    for name in storage.names():
+        start, state = storage.read(name)
=== wrong: read without looking :: plain, between, inside, twice :: there is no file :: raised
+    start, state = storage.read("saved")
=== wrong: written in place :: inside, twice :: is incomplete :: raised
-            storage.write("saved.tmp", (t + 1, state))
-            storage.rename("saved.tmp", "saved")
+            storage.write("saved", (t + 1, state))
=== wrong: the old file is renamed first :: between, inside, twice :: complete file, 'old', which was not read
+            if "saved" in storage.names():
+                storage.rename("saved", "old")
+            storage.write("saved", (t + 1, state))
=== wrong: the number of steps in a file of its own :: plain, between, inside, twice :: one value, in one file
+            storage.write("a", t + 1)
+            storage.rename("a", "count")
+            storage.write("b", state)
+            storage.rename("b", "saved")
-        start, state = storage.read("saved")
+        start, state = storage.read("count"), storage.read("saved")
=== wrong: renamed before it is written :: plain, between, inside, twice :: there is no file :: raised
+            storage.rename("saved.tmp", "saved")
+            storage.write("saved.tmp", (t + 1, state))
=== wrong: the state alone :: between, inside, twice :: expected
-        start, state = storage.read("saved")
+        state = storage.read("saved")
-            storage.write("saved.tmp", (t + 1, state))
+            storage.write("saved.tmp", state)
=== wrong: the other way round :: between, inside, twice :: started again: train_with_checkpoints raised :: raised
+        state, start = storage.read("saved")
=== wrong: the number of the last step, not of the next :: between, inside, twice :: the state after
-            storage.write("saved.tmp", (t + 1, state))
+            storage.write("saved.tmp", (t, state))
=== wrong: a step is left out :: between, inside, twice :: the state after
+            storage.write("saved.tmp", (t + 2, state))
=== wrong: float32 :: between, inside, twice :: rounded to float32
+            storage.write("saved.tmp", (t + 1, state.astype(np.float32)))
-        start, state = storage.read("saved")
+        start, state = storage.read("saved")
+        state = state.astype(float)
=== wrong: text of six digits :: between, inside, twice :: expected
+            storage.write("saved.tmp", (t + 1, " ".join(f"{x:.6g}" for x in state)))
-        start, state = storage.read("saved")
+        start, state = storage.read("saved")
+        state = np.array(state.split(), float)
=== wrong: saved before the step :: between, inside, twice :: expected
-        state = step(state, t)
+        before, state = state, step(state, t)
-            storage.write("saved.tmp", (t + 1, state))
+            storage.write("saved.tmp", (t + 1, before))
=== wrong: every step is saved :: plain :: is for k steps, not for each
-        if (t + 1) % k == 0:
+        if True:
=== wrong: every 2 k steps :: between, inside, twice :: made again
+        if (t + 1) % (2 * k) == 0:
=== wrong: every k + 1 steps :: between, inside, twice :: made again
+        if (t + 1) % (k + 1) == 0:
=== wrong: only in the end :: between, inside, twice :: made again
+        if t + 1 == steps:
=== wrong: every k steps since the start of the process, and only once :: between, inside, twice :: made again
+        if t + 1 - start == k:
=== wrong: two files by turns since the start of the process :: twice :: made again
def train_with_checkpoints(state, step, steps, k, storage):
    t, saves = 0, 0
    for name in storage.names():
        try:
            found = storage.read(name)
        except ValueError:
            continue
        if found[0] > t:
            t, state = found
    while t < steps:
        state = step(state, t)
        t += 1
        if t % k == 0:
            storage.write("even" if saves % 2 == 0 else "odd", (t, state))
            saves += 1
    return state
=== wrong: steps from 1 on :: plain, between, inside, twice :: expected
-        state = step(state, t)
+        state = step(state, t + 1)
=== wrong: one step too many :: plain, between, inside, twice :: expected no other step
-    for t in range(start, steps):
+    for t in range(start, steps + 1):
=== wrong: nothing is returned :: plain, between, inside, twice :: without a `return`
-    return state
+
=== wrong: a variable, not the storage :: between, inside, twice :: nothing else outlives a process
kept = {}
def train_with_checkpoints(state, step, steps, k, storage):
    t, state = kept.get(steps, (0, state)) if storage.names() else (0, state)
    while t < steps:
        state = step(state, t)
        t += 1
        if t % k == 0:
            storage.write("saved", 1)
            kept[steps] = t, state
    return state
=== wrong: the kill is not respected :: between, rest :: did not finish :: stuck
def train_with_checkpoints(state, step, steps, k, storage):
    t = 0
    while t < steps:
        try:
            if "saved" in storage.names():
                t, state = storage.read("saved")
            for t in range(t + 1, steps + 1):
                state = step(state, t - 1)
                if t % k == 0:
                    storage.write("saved.tmp", (t, state))
                    storage.rename("saved.tmp", "saved")
        except Exception:
            t = 0
    return state
=== right: two files by turns, without rename, the newer one that is complete
def train_with_checkpoints(state, step, steps, k, storage):
    t = 0
    for name in storage.names():
        try:
            found = storage.read(name)
        except ValueError:
            continue
        if found["t"] > t:
            t, state = found["t"], np.array(found["state"])
    while t < steps:
        state = step(state, t)
        t += 1
        if t % k == 0:
            storage.write("ab"[t // k % 2], {"t": t, "state": state.tolist()})
    return state
=== right: a name for each checkpoint, bytes, also at the beginning and in the end
import pickle
def train_with_checkpoints(state, step, steps, k, storage):
    def save():
        storage.write("unfinished", pickle.dumps([t, state]))
        storage.rename("unfinished", f"checkpoint {t:06d}")
    t = 0
    names = [name for name in storage.names() if name != "unfinished"]
    if names:
        t, state = pickle.loads(storage.read(max(names)))
    else:
        save()
    for t in range(t + 1, steps + 1):
        state = step(state, t - 1)
        if t % k == 0 or t == steps:
            save()
    return state
"""
