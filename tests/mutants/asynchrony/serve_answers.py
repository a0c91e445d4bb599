ANSWERS = r"""
=== parts
alone: one worker: GET, PUT and ADD
sums: several workers: the sum of all ADDs, until the last worker is done
order: in order of arrival, without waiting for a particular worker
traffic: one message for each GET, and the caller's shard unchanged
=== base
def serve(comm, shard, workers):
    values, done = shard.copy(), 0
    while done < workers:
        message = comm.recv(ANY)
        kind, given = message[0], message[1:]
        if kind == GET:
            comm.send(values, comm.last_source)
        elif kind == PUT:
            values = given.copy()
        elif kind == ADD:
            values = values + given
        elif kind == DONE:
            done += 1
    return values
=== wrong: ADD replaces the values: the last worker wins :: alone, sums, order :: ADD was treated like PUT
-            values = values + given
+            values = given
=== wrong: PUT adds :: alone, order :: PUT was treated like ADD
-            values = given.copy()
+            values = values + given
=== wrong: ends with the first worker :: sums, order, traffic :: The server ended with the first worker that was done
-    while done < workers:
+    while done < 1:
=== wrong: all other ranks are workers :: all :: waits for any rank :: stuck
+    while done < comm.size - 1:
=== wrong: the workers in rank order, one after the other :: order :: The server was waiting for another worker
     values, done = shard.copy(), 0
+    worker = 0
-        message = comm.recv(ANY)
+        message = comm.recv(done)
=== wrong: every request has a reply :: alone, order, traffic :: ADD, PUT and DONE have no reply
             values = values + given
+            comm.send(np.zeros(0), comm.last_source)
=== wrong: adds into the caller's shard :: traffic :: changes the array itself
-    values, done = shard.copy(), 0
+    values, done = shard, 0
-            values = values + given
+            values += given
=== wrong: begins with zeros :: alone, sums, order :: expected
+    values, done = np.zeros_like(shard), 0
=== wrong: GETs wait until all workers that are left have asked :: order :: The server was waiting for another worker
+    values, done, waiting = shard.copy(), 0, []
-            comm.send(values, comm.last_source)
+            waiting.append(comm.last_source)
             done += 1
+        if len(waiting) >= workers - done:
+            for worker in waiting:
+                comm.send(values, worker)
+            waiting = []
=== wrong: keeps the values in float32 :: alone, sums, order :: float32, which has 7 digits
+    values, done = shard.astype(np.float32), 0
-            comm.send(values, comm.last_source)
+            comm.send(values.astype(float), comm.last_source)
-            values = given.copy()
+            values = given.astype(np.float32)
-            values = values + given
+            values = values + given.astype(np.float32)
-    return values
+    return values.astype(float)
=== wrong: ADDs that no GET has seen yet survive a PUT :: alone, order :: expected
+    values, added, done = shard.copy(), 0.0, 0
         if kind == GET:
+            values, added = values + added, 0.0
-            values = values + given
+            added = added + given
-    return values
+    return values + added
=== wrong: a PUT like the last one is taken for the same request :: alone, order :: expected
+    values, done, last = shard.copy(), 0, None
-            values = given.copy()
+            values = values if last is not None and np.array_equal(last, given) else given.copy()
+            last = given
=== wrong: the kind is added, too :: all :: ValueError :: raised
-        kind, given = message[0], message[1:]
+        kind, given = message[0], message
=== wrong: returns the shard :: alone, sums, order :: These are the initial values
-    return values
+    return shard
=== wrong: replies with the initial values :: alone, order :: These are the initial values
-            comm.send(values, comm.last_source)
+            comm.send(shard, comm.last_source)
=== wrong: replies to worker 0 :: order, traffic :: recv :: stuck
+            comm.send(values, 0)
=== wrong: sends the kind with the reply :: alone, order, traffic :: without a kind
+            comm.send(request(GET, values), comm.last_source)
=== wrong: counts requests instead of DONEs :: all :: recv :: stuck
-        elif kind == DONE:
-            done += 1
+        done += kind == GET
=== wrong: uses the library's Store :: all :: may not be used :: raised
from minidl.parallel import Store

def serve(comm, shard, workers):
    return Store(comm).serve()
=== right: a set of workers at work, which alone are received from
def serve(comm, shard, workers):
    at_work, total = set(range(workers)), np.array(shard)
    while at_work:
        kind, *values = comm.recv(at_work)
        if kind == DONE:
            at_work.remove(comm.last_source)
        if kind == GET:
            comm.isend(total.copy(), comm.last_source).wait()
        if kind == PUT:
            total[:] = values
        if kind == ADD:
            total[:] += values
    return total
=== right: a list of updates, added up only when somebody asks
def serve(comm, shard, workers):
    base, updates, left = shard, [], workers
    while left > 0:
        message = comm.recv(ANY)
        worker = comm.last_source
        match message[0]:
            case 0.0:
                comm.send(sum(updates, base), worker)
            case 1.0:
                base, updates = message[1:], []
            case 2.0:
                updates.append(message[1:])
            case _:
                left -= 1
    return sum(updates, base)
=== right: handlers in a dictionary
def serve(comm, shard, workers):
    values, done = np.copy(shard), set()
    handlers = {
        GET: lambda worker, given: comm.send(values, worker),
        PUT: lambda worker, given: np.copyto(values, given),
        ADD: lambda worker, given: np.add(values, given, out=values),
        DONE: lambda worker, given: done.add(worker),
    }
    while len(done) < workers:
        message = comm.recv(ANY)
        handlers[float(message[0])](comm.last_source, message[1:])
    return values
"""
