ANSWERS = r"""
=== parts
sums: the sum of each round: all gradients that are ready
once: each gradient counts once, late ones too: in a round, or in what is left
times: a round begins when the drawn machine is ready, and waits for nobody else
messages: one all-reduce of n words in a round, and ceil(lg p) empty messages at most
tree: the last machine is activated within 3 ceil(lg p) seconds, if a message takes one
=== base
def majority(comm, p, n, drawn):
    training = p + comm.rank
    sums, waiting, is_done = [], [], False
    for root in drawn:
        parent, children = tree(p, root, comm.rank)
        is_active = parent is None and len(waiting) > 0
        while not is_active:
            came = comm.recv({training} if parent is None else {training, parent})
            if comm.last_source == parent:
                is_active = True
            elif len(came) == 0:
                is_done = True
            else:
                waiting.append(came)
                is_active = parent is None
        for child in children:
            comm.send(np.zeros(0), child)
        total = np.zeros(n)
        for gradient in waiting:
            total += gradient
        waiting = []
        machines(comm, p).all_reduce(total)
        sums.append(total)
    left = sum(waiting, np.zeros(n))
    while not is_done:
        came = comm.recv(training)
        if len(came) == 0:
            is_done = True
        else:
            left = left + came
    return sums, left
=== wrong: one array for all sums, and for what is left :: sums, once, messages, tree :: used again in each round
     sums, waiting, is_done = [], [], False
+    total = np.zeros(n)
-        total = np.zeros(n)
+        total[:] = 0.0
-    left = sum(waiting, np.zeros(n))
+    total[:] = sum(waiting, np.zeros(n))
+    left = total
-            left = left + came
+            left += came
=== wrong: gradients count again in later rounds :: sums, once, messages, tree :: begin anew with zeros
-        is_active = parent is None and len(waiting) > 0
+        is_active = False
-        waiting = []

-    left = sum(waiting, np.zeros(n))
+    left = np.zeros(n)
=== wrong: the drawn machine begins without a gradient :: all :: These are zeros
+        is_active = parent is None
=== wrong: the newest gradient replaces those that wait :: sums, once, messages :: only the newest one
-                waiting.append(came)
+                waiting = [came]
=== wrong: a gradient that comes while another one waits is dropped :: sums, once, messages :: only the oldest one
+                waiting = waiting or [came]
=== wrong: late gradients are dropped: only those of the drawn machine count :: sums, once, messages, tree
:: Only the drawn machine's
-        for gradient in waiting:
+        for gradient in waiting if parent is None else []:
=== wrong: an ordinary all-reduce, which waits for all machines :: all :: ordinary all-reduce
def majority(comm, p, n, drawn):
    sums, left = [], np.zeros(n)
    for root in drawn:
        total = comm.recv(p + comm.rank).copy()
        machines(comm, p).all_reduce(total)
        sums.append(total)
    while (came := comm.recv(p + comm.rank)).size:
        left += came
    return sums, left
=== wrong: one array for all rounds :: sums, once, messages, tree :: changes in the list
-    sums, waiting, is_done = [], [], False
+    sums, waiting, is_done, total = [], [], False, np.zeros(n)
-        total = np.zeros(n)
+        total[:] = 0
=== wrong: the number of gradients goes along in the sum :: messages :: n words
-        machines(comm, p).all_reduce(total)
+        total = machines(comm, p).all_reduce(np.append(total, len(waiting)))[:n]
=== wrong: sums in float32 :: sums, once, messages :: expected
+        total = machines(comm, p).all_reduce(total.astype(np.float32)).astype(float)
=== wrong: the gradients are gathered :: messages :: no comm.all_gather
+        total = sum(machines(comm, p).all_gather(total))
=== wrong: training is in the all-reduce :: all :: can never complete :: stuck
+        comm.all_reduce(total)
=== wrong: the mean :: sums, once, messages, tree :: mean over the machines
-        sums.append(total)
+        sums.append(total / p)
=== wrong: what is left is not received :: once :: until the empty
-    while not is_done:
+    while False:
=== wrong: the gradients of the last round are left, too :: once :: expected
-        waiting = []
+        last, waiting = waiting, []
-    left = sum(waiting, np.zeros(n))
+    left = total.copy() * 0 + sum(last, np.zeros(n))
=== wrong: the drawn machine activates all others itself :: messages, tree :: along the tree
-        parent, children = tree(p, root, comm.rank)
+        parent, children = root, []
+        if comm.rank == root:
+            parent, children = None, [r for r in range(p) if r != root]
=== wrong: always the tree of machine 0 :: all ::
+        parent, children = tree(p, 0, comm.rank)
=== wrong: a chain: each machine activates the next one :: tree :: in a chain each waits for one
+        parent = None if comm.rank == root else (comm.rank - 1) % p
+        children = [] if (comm.rank + 1) % p == root else [(comm.rank + 1) % p]
=== wrong: the gradient goes along with the activation :: messages :: expected empty arrays
-            comm.send(np.zeros(0), child)
+            comm.send(sum(waiting, np.zeros(n)), child)
=== wrong: the children are not activated :: all :: rank :: stuck
+            pass
=== wrong: a second all-reduce, of the number of gradients :: times, messages :: one in each round
         machines(comm, p).all_reduce(total)
+        machines(comm, p).all_reduce(np.ones(1))
=== wrong: a machine that is drawn waits for a new gradient, whatever it has :: all ::
-            if comm.last_source == parent:
+            if comm.last_source == parent and waiting:
+                is_active = True
+            elif comm.last_source == parent:
+                waiting.append(comm.recv(training))
=== wrong: whoever is ready begins (solo) :: sums, once, times, messages :: rank
-                is_active = parent is None
+                is_active = True
=== wrong: the empty array is taken for a gradient :: all :: can never complete :: stuck
-            elif len(came) == 0:
-                is_done = True

-                waiting.append(came)
+                waiting.append(np.resize(came, n) if len(came) else np.zeros(n))
=== wrong: a gradient of zeros is taken for the end :: sums, once, times, messages :: expected
-            elif len(came) == 0:
+            elif not came.any():
=== right: any message; running totals in one array
def majority(comm, p, n, drawn):
    from minidl.cluster import ANY
    group, running, counted, sums, at_work = machines(comm, p), np.zeros(n), np.zeros(n), [], True
    fresh = False
    for root in drawn:
        parent, children = tree(p, root, comm.rank)
        while not (fresh and parent is None):
            came = comm.recv(ANY)
            if comm.last_source < p:
                break
            at_work = at_work and came.size > 0
            fresh = fresh or came.size > 0
            running = running + came if came.size else running
        for child in children:
            comm.isend(np.zeros(0), child)
        sums.append(group.all_reduce(running - counted))
        counted, fresh = running, False
    while at_work:
        came = comm.recv(p + comm.rank)
        at_work = came.size > 0
        running = running + came if at_work else running
    return tuple(sums), running - counted
=== right: the activation spreads along a hypercube, as in minidl
def majority(comm, p, n, drawn):
    me, training = comm.rank, p + comm.rank
    near = {me ^ 1 << bit for bit in range((p - 1).bit_length())} & set(range(p))
    pending, ready, done, sums = np.zeros(n), False, False, []

    def take():
        nonlocal pending, ready, done
        if came.size:
            pending, ready = pending + came, True
        else:
            done = True

    for root in drawn:
        silent, active = set(near), False
        while silent or not active:
            if not active and me == root and ready:
                source = None
            else:
                came = comm.recv(silent | ({training} if not active else set()))
                source = comm.last_source
            if source == training:
                take()
                continue
            silent.discard(source)
            if not active:
                active = True
                for other in near:
                    comm.send(np.zeros(0), other)
        total = pending.copy()
        machines(comm, p).all_reduce(total)
        sums.append(total)
        pending, ready = np.zeros(n), False
    while not done:
        came = comm.recv(training)
        take()
    return sums, pending
=== right: the smallest subtree is activated first
def majority(comm, p, n, drawn):
    total, sums, at_work, training = np.zeros(n), [], True, p + comm.rank
    for root in drawn:
        parent, children = tree(p, root, comm.rank)
        while True:
            came = comm.recv({training, parent} - {None})
            if comm.last_source == parent:
                break
            at_work = came.size > 0
            if at_work:
                total += came
                if parent is None:
                    break
        for child in sorted(children, key=lambda child: (child - comm.rank) % p):
            comm.send(np.zeros(0), child)
        sums.append(machines(comm, p).all_reduce(total).copy())
        total = np.zeros(n)
    while at_work and (came := comm.recv(training)).size:
        total += came
    return sums, total
"""
