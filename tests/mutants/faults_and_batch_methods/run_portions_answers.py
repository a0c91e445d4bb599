ANSWERS = r"""
=== parts
sum: each portion counts once
first: a free worker gets the next portion
copies: at the end, copies of what is unfinished
bits: the same bits whatever the speeds
stopped: workers that never return
=== base
def run_portions(n, workers, give, wait):
    times = [0] * n
    found = {}
    def hand_out(w):
        unfinished = [i for i in range(n) if i not in found]
        i = min(unfinished, key=lambda i: (times[i], i))
        times[i] += 1
        give(w, i)
    for w in range(workers):
        hand_out(w)
    while len(found) < n:
        w, i, gradient = wait()
        if i not in found:
            found[i] = gradient
        if len(found) < n:
            hand_out(w)
    total = found[0].copy()
    for i in range(1, n):
        total += found[i]
    return total
=== wrong: copies are added, too :: sum, bits, stopped :: A portion counts once
     times = [0] * n
+    came = []
         w, i, gradient = wait()
+        came.append(gradient)
-    total = found[0].copy()
-    for i in range(1, n):
-        total += found[i]
+    total = sum(came)
=== wrong: added in the order of arrival :: bits :: on workers of other speeds
-    total = found[0].copy()
-    for i in range(1, n):
-        total += found[i]
-    return total
+    return sum(found.values())
=== wrong: the mean :: sum, bits, stopped :: not the mean
+    return sum(found[i] for i in range(n)) / n
=== wrong: the last gradient :: sum, bits, stopped :: expected
+    return gradient
=== wrong: a list of gradients :: sum, bits, stopped :: expected
+    return [found[i] for i in range(n)]
=== wrong: the first portion is not counted :: sum, bits, stopped :: expected
+    return sum([found[i] for i in range(1, n)], 0 * found[0])
=== wrong: float32 :: sum, bits, stopped :: expected
+    return sum(found[i].astype(np.float32) for i in range(n)).astype(float)
=== wrong: no copies :: copies, stopped :: a free worker gets a copy
-        unfinished = [i for i in range(n) if i not in found]
+        unfinished = [i for i in range(n) if not times[i]]
+        if not unfinished:
+            return
=== wrong: one copy at most :: copies, stopped :: A portion may need a third copy
+        unfinished = [i for i in range(n) if i not in found and times[i] < 2]
+        if not unfinished:
+            return
=== wrong: copies of finished portions :: copies, stopped :: this one has a result
+        unfinished = range(n)
=== wrong: copies from the beginning :: first, copies, stopped :: First every portion is handed out once
-        i = min(unfinished, key=lambda i: (times[i], i))
+        i = min(unfinished)
=== wrong: the highest number of those that are equal :: copies, stopped :: the lowest number comes first
+        i = min(unfinished, key=lambda i: (times[i], -i if times[i] else i))
=== wrong: always copies of the first unfinished portion :: copies, stopped :: Copies go round
+        i = min(unfinished, key=lambda i: (times[i] > 0, i))
=== wrong: from the last portion down :: first, copies, stopped :: expected portion 0
+        i = min(unfinished, key=lambda i: (times[i], -i))
=== wrong: all copies are waited for :: copies, stopped :: are not waited for
-    while len(found) < n:
+    busy = workers
+    while busy:
         w, i, gradient = wait()
+        busy -= 1
             hand_out(w)
+            busy += 1
=== wrong: each round waits for all workers :: first, copies, stopped :: expected portion
def run_portions(n, workers, give, wait):
    found = {}
    while len(found) < n:
        those = [i for i in range(n) if i not in found][:workers]
        for w, i in enumerate(those):
            give(w, i)
        for _ in those:
            w, i, gradient = wait()
            found[i] = gradient
    return sum(found[i] for i in range(n))
=== wrong: portions are dealt out beforehand :: first, copies, stopped :: expected portion
def run_portions(n, workers, give, wait):
    queues = [list(range(w, n, workers)) for w in range(workers)]
    found = {}
    for w in range(workers):
        if queues[w]:
            give(w, queues[w].pop(0))
    while len(found) < n:
        w, i, gradient = wait()
        found[i] = gradient
        if queues[w]:
            give(w, queues[w].pop(0))
    return sum(found[i] for i in range(n))
=== wrong: one worker computes everything :: first, copies, stopped :: expected portion
def run_portions(n, workers, give, wait):
    total = 0
    for i in range(n):
        give(0, i)
        total = total + wait()[2]
    return total
=== wrong: a worker that is not free :: all :: is not free :: raised
def run_portions(n, workers, give, wait):
    for i in range(n):
        give(i % workers, i)
    return sum(wait()[2] for i in range(n))
=== wrong: nobody has anything :: all :: no worker has a portion :: raised
def run_portions(n, workers, give, wait):
    return sum(wait()[2] for i in range(n))
=== wrong: numbers from 1 on :: all :: has a number from 0 :: raised
def run_portions(n, workers, give, wait):
    for i in range(n):
        give(workers, i + 1)
    return sum(wait()[2] for i in range(n))
=== right: a queue that goes round, numpy's numbers
from collections import deque
def run_portions(n, workers, give, wait):
    queue, gradients, is_finished = deque(range(n)), None, np.zeros(n, bool)
    free = deque(np.arange(workers))
    while True:
        while free:
            while is_finished[queue[0]]:
                queue.popleft()
            give(free.popleft(), np.int64(queue[0]))
            queue.rotate(-1)
        w, i, gradient = wait()
        gradients = np.zeros((n, len(gradient))) if gradients is None else gradients
        gradients[i], is_finished[i] = gradient, True
        free.append(w)
        if is_finished.all():
            return np.sum(gradients, axis=0)
=== right: the last copy wins, an exact sum
import math
def run_portions(n, workers, give, wait):
    out = dict.fromkeys(range(n), 0)
    results = {}
    def next_portion():
        i = sorted(out, key=out.get)[0]
        out[i] += 1
        return i
    for w in range(workers):
        give(w, next_portion())
    while out:
        w, i, results[i] = wait()
        out.pop(i, None)
        if out:
            give(w, next_portion())
    return [math.fsum(column) for column in zip(*results.values())]
"""
