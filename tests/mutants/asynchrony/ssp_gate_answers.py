ANSWERS = r"""
=== parts
bound: no step begins more than `bound` ahead of the slowest worker
waiting: every step begins as soon as the bound allows it, and not before
leaving: a worker that has finished holds nobody back; the bound holds for the others
replies: one reply for each CLOCK, and no other message
=== base
def ssp_gate(comm, workers, bound):
    clocks = {worker: 0 for worker in range(workers)}
    waiting = []
    while clocks:
        message = comm.recv(ANY)
        worker = comm.last_source
        if message[0] == DONE:
            del clocks[worker]
        else:
            clocks[worker] += 1
            waiting.append(worker)
        ready = [w for w in waiting if clocks[w] - min(clocks.values()) <= bound]
        for w in ready:
            comm.send(np.zeros(0), w)
            waiting.remove(w)
=== wrong: a barrier, whatever the bound :: waiting, leaving :: That is a barrier
-        ready = [w for w in waiting if clocks[w] - min(clocks.values()) <= bound]
+        ready = [w for w in waiting if clocks[w] - min(clocks.values()) <= 0]
=== wrong: off by one: bound + 1 steps ahead :: bound, waiting, leaving :: a lead of bound + 1 is too much
+        ready = [w for w in waiting if clocks[w] - min(clocks.values()) <= bound + 1]
=== wrong: off by one: less than bound, and a barrier for 0 :: waiting, leaving :: The bound is off by one
+        ready = [w for w in waiting if clocks[w] - min(clocks.values()) < max(bound, 1)]
=== wrong: nobody waits :: bound, waiting, leaving :: Nobody waits here
+        ready = [w for w in waiting if True]
=== wrong: only the worker that asks is looked at :: all :: waits for :: stuck
+        ready = [w for w in [worker] if w in clocks and clocks[w] - min(clocks.values()) <= bound]
=== wrong: releases at most four workers at once :: waiting :: waits has to be released :: hidden only
+        ready = [w for w in waiting if clocks[w] - min(clocks.values()) <= bound][:4]
=== wrong: compares with the mean clock :: bound, waiting, leaving :: of the slowest worker that has not finished
+        ready = [w for w in waiting if clocks[w] - sum(clocks.values()) / len(clocks) <= bound]
=== wrong: no gate any more once a worker has finished :: leaving :: ahead of worker
+        ready = [w for w in waiting if clocks[w] - min(clocks.values()) <= bound or len(clocks) < workers]
=== wrong: a worker that has finished holds the others back :: leaving :: waits for :: stuck
-    waiting = []
-    while clocks:
+    waiting, left = [], workers
+    while left:
-            del clocks[worker]
+            left -= 1
+            clocks[worker] += 1
=== wrong: waiting workers are looked at only when a CLOCK comes :: leaving :: Worker 0 has finished
             del clocks[worker]
+            continue
=== wrong: DONE has a reply, too :: replies :: DONE has no reply
+            comm.send(np.zeros(0), worker)
=== wrong: all who wait are released when one may go on :: bound, waiting, leaving :: ahead of worker
         ready = [w for w in waiting if clocks[w] - min(clocks.values()) <= bound]
+        if any(clocks[w] - min(clocks.values()) <= bound for w in waiting):
+            ready = list(waiting)
=== wrong: the reply is the slowest clock :: replies :: A reply has no contents
-            comm.send(np.zeros(0), w)
+            comm.send(np.array([min(clocks.values())]), w)
=== wrong: all other ranks are workers :: all :: waits for :: stuck
-    clocks = {worker: 0 for worker in range(workers)}
+    clocks = {worker: 0 for worker in range(comm.size - 1)}
=== wrong: clocks of one byte :: leaving :: ahead of worker :: hidden only
+    clocks = {worker: np.int8(0) for worker in range(workers)}
=== wrong: a worker is known from its first CLOCK on :: leaving :: KeyError :: raised
+    clocks, left = {}, workers
-    while clocks:
+    while left:
-            del clocks[worker]
+            left -= 1
+            del clocks[worker]
-            clocks[worker] += 1
+            clocks[worker] = clocks.get(worker, 0) + 1
-        ready = [w for w in waiting if clocks[w] - min(clocks.values()) <= bound]
+        slowest = min(clocks.values()) if clocks and len(clocks) == left else 0
+        ready = [w for w in waiting if clocks[w] - slowest <= bound]
=== right: all who wait have the same clock: a queue, released when the slowest clock grows
def ssp_gate(comm, workers, bound):
    clocks = np.zeros(workers)
    queue, slowest = [], 0
    while np.isfinite(clocks).any():
        kind = comm.recv(ANY)[0]
        i = comm.last_source
        clocks[i] = clocks[i] + 1 if kind == CLOCK else np.inf
        if kind == CLOCK:
            queue.append(i)
        if clocks.min() > slowest:
            slowest = clocks.min()
            while queue:
                comm.send(np.zeros(0), queue.pop())
        elif kind == CLOCK and clocks[i] - slowest <= bound:
            comm.send(np.zeros(0), queue.pop())
=== right: counts how many workers have finished each step
def ssp_gate(comm, workers, bound):
    finished, clock, gone, waiting = {}, [0] * workers, set(), set()
    while len(gone) < workers:
        kind = comm.recv(ANY)[0]
        who = comm.last_source
        clock[who] += 1
        if kind == DONE:
            gone.add(who)
        else:
            waiting.add(who)
        for other in sorted(waiting):
            needed = clock[other] - bound
            if all(each in gone or clock[each] >= needed for each in range(workers)):
                waiting.discard(other)
                comm.isend(np.zeros(0), other).wait()
"""
