ANSWERS = r"""
=== parts
array: every rank returns rank 0's array
messages: p - 1 messages, by send and recv
rounds: ceil(log2 p) rounds
=== base
def broadcast_tree(comm, x):
    have = 1
    while have < comm.size:
        if comm.rank < have and comm.rank + have < comm.size:
            comm.send(x, comm.rank + have)
        elif have <= comm.rank < 2 * have:
            x = comm.recv(comm.rank - have)
        have *= 2
    return x
=== wrong: rank 0 sends to everyone itself :: rounds :: Rank 0 sends to everyone itself
def broadcast_tree(comm, x):
    if comm.rank == 0:
        for rank in range(1, comm.size):
            comm.send(x, rank)
        return x
    return comm.recv(0)
=== wrong: a chain :: rounds :: from one rank to the next
def broadcast_tree(comm, x):
    if comm.rank > 0:
        x = comm.recv(comm.rank - 1)
    if comm.rank + 1 < comm.size:
        comm.send(x, comm.rank + 1)
    return x
=== wrong: log2 not rounded up :: all :: No message came to this rank
-    while have < comm.size:
+    while 2 * have <= comm.size:
=== wrong: works only for powers of two :: all :: dst must be from 0 to :: raised
-        if comm.rank < have and comm.rank + have < comm.size:
+        if comm.rank < have:
=== wrong: everyone acknowledges :: messages, rounds :: these are more
         have *= 2
+
+    if comm.rank > 0:
+        comm.send(x, 0)
+    else:
+        for rank in range(1, comm.size):
+            comm.recv(rank)
=== wrong: uses comm.broadcast :: all :: called comm.broadcast
def broadcast_tree(comm, x):
    return comm.broadcast(x)
=== wrong: what came is not kept :: array :: the array that comm.recv returns is to be returned here
-            x = comm.recv(comm.rank - have)
+            comm.recv(comm.rank - have)
=== wrong: receives from the rank before, as in a chain :: all :: rank 2: recv (call 1) waits for rank 1 :: stuck
+            x = comm.recv(comm.rank - 1)
=== wrong: irecv without wait :: all :: its wait() returns what came :: raised
+            x = comm.irecv(comm.rank - have)
=== wrong: what came is cleaned of NaN and infinity :: array :: expected nan
+            x = np.nan_to_num(comm.recv(comm.rank - have))
=== wrong: what came is added to zeros :: array :: expected -0
+            x = 0.0 + comm.recv(comm.rank - have)
=== wrong: everyone receives first, rank 0 too :: all :: rank 0 :: stuck
 def broadcast_tree(comm, x):
+    x = comm.recv(comm.rank // 2)
=== wrong: an empty array is not sent :: array, messages :: recv :: stuck
+    if comm.rank == 0 and len(x) == 0:
+        return x
=== wrong: a heap: rank r tells 2r + 1 and 2r + 2 :: rounds :: Rank 0 sends in 2 rounds of 3 only
def broadcast_tree(comm, x):
    if comm.rank > 0:
        x = comm.recv((comm.rank - 1) // 2)
    for child in (2 * comm.rank + 1, 2 * comm.rank + 2):
        if child < comm.size:
            comm.send(x, child)
    return x
=== wrong: one more each round :: messages, rounds :: these are more
-        have *= 2
+        have += 1
=== wrong: float32 on the way :: array :: rounded on the way, to float32 perhaps
-            comm.send(x, comm.rank + have)
+            comm.send(x.astype(np.float32), comm.rank + have)
=== wrong: rank 0 clears its array :: array :: changed its argument x at [0]
-    return x
+    result = x.copy()
+    x[...] = 0.0
+    return result
=== wrong: a new axis :: array :: got shape (1,
+    return np.array([x])
=== wrong: rank 0 returns nothing :: array :: without a `return`
+    return x if comm.rank else None
=== right: isends to all children, the farthest first
def broadcast_tree(comm, x):
    p, me = comm.size, comm.rank
    span = 1 << (p - 1).bit_length()
    if me > 0:
        span = me & -me
        x = comm.recv(me - span)
    begun = []
    while span > 1:
        span //= 2
        if me + span < p:
            begun.append(comm.isend(x, me + span))
    for work in begun:
        work.wait()
    return x
=== right: a tree that begins at the far end, with ranks as numpy has them
def broadcast_tree(comm, x):
    spans = 2 ** np.arange(int(np.ceil(np.log2(comm.size))))[::-1]
    for span in spans:
        if comm.rank % (2 * span) == 0 and comm.rank + span < comm.size:
            comm.send(x, int(comm.rank + span))
        if comm.rank % (2 * span) == span:
            x = comm.recv(int(comm.rank - span))
    return x.copy()
=== right: thirds, in uneven halves
def broadcast_tree(comm, x):
    ranks = list(range(comm.size))
    while len(ranks) > 1:
        half = 1 << ((len(ranks) - 1).bit_length() - 1)
        near, far = ranks[:half], ranks[half:]
        if comm.rank == near[0]:
            comm.send(x, far[0])
        if comm.rank == far[0]:
            x = comm.recv(near[0])
        ranks = near if comm.rank in near else far
    return x
=== wrong: a tree of 16 ranks, and rank 0 sends to the others :: rounds :: rounds :: hidden only
def broadcast_tree(comm, x):
    have, most = 1, min(comm.size, 16)
    while have < most:
        if comm.rank < have and comm.rank + have < most:
            comm.send(x, comm.rank + have)
        elif have <= comm.rank < 2 * have and comm.rank < most:
            x = comm.recv(comm.rank - have)
        have *= 2
    for rank in range(16, comm.size):
        if comm.rank == 0:
            comm.send(x, rank)
        elif comm.rank == rank:
            x = comm.recv(0)
    return x
"""
