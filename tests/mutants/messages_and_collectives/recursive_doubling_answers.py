ANSWERS = r"""
=== parts
sum: every rank returns the sum, for any p
rounds: log2 p messages of n elements a rank, in as many rounds, and the fold's
kept: x stays as it is
large: no deadlock with more than 64 KiB
=== base
def recursive_doubling(comm, x):
    first, total = fold_in(comm, x)
    distance = 1
    while comm.rank < first and distance < first:
        partner = comm.rank ^ distance
        total = total + comm.sendrecv(total, partner, partner)
        distance *= 2
    return fold_out(comm, first, total)
=== wrong: works only for powers of two :: sum, rounds, kept :: must be from 0 to :: raised
-    first, total = fold_in(comm, x)
+    total = x
-    while comm.rank < first and distance < first:
+    while distance < comm.size:
-    return fold_out(comm, first, total)
+    return total
=== wrong: partners that are not there are left out, instead of the fold :: sum, rounds, kept :: Missing in this sum
def recursive_doubling(comm, x):
    total = x
    distance = 1
    while distance < comm.size:
        partner = comm.rank ^ distance
        if partner < comm.size:
            total = total + comm.sendrecv(total, partner, partner)
        distance *= 2
    return total
=== wrong: forgets to hand the result back :: sum, rounds, kept :: got None
-    return fold_out(comm, first, total)
+    return total
=== wrong: hands back, but does not return it :: sum, rounds, kept :: Rank 0 returned something
+    fold_out(comm, first, total)
+    return total
=== wrong: only those who hand over take part in handing back :: sum, rounds, kept
:: recv (call 2) waits for rank 0 :: stuck
+    return total if total is not None else fold_out(comm, first, total)
=== wrong: float32 in the end :: all :: expected an array of float64, got one of float32
+    return fold_out(comm, first, total).astype(np.float32)
=== wrong: the mean :: all :: This is the mean
+    return fold_out(comm, first, total) / comm.size
=== wrong: the result is written into x, too :: kept :: write into the array that a names
+    x[...] = fold_out(comm, first, total)
+    return x
=== wrong: one round missing :: all :: Missing in this sum
-    while comm.rank < first and distance < first:
+    while comm.rank < first and 2 * distance < first:
=== wrong: all ranks take part :: sum, rounds, kept :: recursive_doubling raised :: raised
+    while distance < first:
=== wrong: everybody sends before receiving :: large :: deadlock: ranks 0 :: stuck
-        total = total + comm.sendrecv(total, partner, partner)
+        comm.send(total, partner)
+        total = total + comm.recv(partner)
=== wrong: partners send in turn :: rounds :: Both partners can send at once
+
+        if comm.rank < partner:
+            comm.send(total, partner)
+            theirs = comm.recv(partner)
+        else:
+            theirs = comm.recv(partner)
+            comm.send(total, partner)
+        total = total + theirs
=== wrong: partners send in turn where a send waits :: large :: with messages of more than 64 KiB
+        if total.nbytes <= 65536 or comm.rank < partner:
+            comm.send(total, partner)
+            theirs = comm.recv(partner)
+        else:
+            theirs = comm.recv(partner)
+            comm.send(total, partner)
+        total = total + theirs
=== wrong: the lower partner only receives :: all :: on rank 1 of
+        total = total + comm.recv(partner) if comm.rank < partner else comm.send(total, partner) or total
=== wrong: float32 on the way :: all :: rounded on the way, to float32 perhaps
+        total = total + comm.sendrecv(total.astype(np.float32), partner, partner)
=== wrong: what came is cleaned of infinity :: sum, rounds, kept :: expected inf
+        total = total + np.nan_to_num(comm.sendrecv(total, partner, partner))
=== wrong: uses comm.all_reduce :: all :: called comm.all_reduce
def recursive_doubling(comm, x):
    return comm.all_reduce(x.copy())
=== wrong: a ring instead :: rounds :: messages
def recursive_doubling(comm, x):
    return ring_all_reduce(comm, x.copy())
=== wrong: distances 1, 2, 3 instead of 1, 2, 4 :: all :: Added more than once
-        distance *= 2
+        distance += 1
=== wrong: sends its own vector in every round :: all :: Missing in this sum
-    distance = 1
+    own, distance = total, 1
-        total = total + comm.sendrecv(total, partner, partner)
+        total = total + comm.sendrecv(own, partner, partner)
=== wrong: what fold_in gives is not used :: sum, rounds, kept :: Missing in this sum: what rank
     first, total = fold_in(comm, x)
+    total = x
=== wrong: gathers all vectors, and adds in the end :: rounds :: send the array itself
def recursive_doubling(comm, x):
    first, total = fold_in(comm, x)
    known, distance = [total], 1
    while comm.rank < first and distance < first:
        known = known + comm.sendrecv(known, comm.rank ^ distance, comm.rank ^ distance)
        distance *= 2
    return fold_out(comm, first, None if total is None else sum(known))
=== wrong: reduced along a tree, and only rank 0 has the sum :: all :: nothing was added
def recursive_doubling(comm, x):
    total, distance = x.copy(), 1
    while distance < comm.size:
        if comm.rank % (2 * distance) == distance:
            comm.send(total, comm.rank - distance)
            break
        if comm.rank + distance < comm.size:
            total += comm.recv(comm.rank + distance)
        distance *= 2
    return total
=== wrong: reduced along a tree, and broadcast along it :: rounds :: recursive_doubling
def recursive_doubling(comm, x):
    total, distance = x.copy(), 1
    while distance < comm.size:
        if comm.rank % (2 * distance) == distance:
            comm.send(total, comm.rank - distance)
            break
        if comm.rank + distance < comm.size:
            total += comm.recv(comm.rank + distance)
        distance *= 2
    return broadcast_tree(comm, total if comm.rank == 0 else None)
=== right: the odd ones of the first ranks fold into the even ones
def recursive_doubling(comm, x):
    p, me = comm.size, comm.rank
    first = 1 << (p.bit_length() - 1)
    pairs = p - first
    total = x.copy()
    if me < 2 * pairs and me % 2:
        comm.send(total, me - 1)
        return comm.recv(me - 1)
    if me < 2 * pairs:
        total += comm.recv(me + 1)
    number = me // 2 if me < 2 * pairs else me - pairs
    distance = 1
    while distance < first:
        other = number ^ distance
        partner = 2 * other if other < pairs else other + pairs
        total = total + comm.sendrecv(total, partner, partner)
        distance *= 2
    if me < 2 * pairs:
        comm.send(total, me + 1)
    return total
=== right: partners stand as in a mirror
def recursive_doubling(comm, x):
    first, total = fold_in(comm, x)
    group = 2
    while total is not None and group <= first:
        partner = comm.rank // group * group + group - 1 - comm.rank % group
        total = total + comm.sendrecv(total, partner, partner)
        group *= 2
    return fold_out(comm, first, total)
=== right: everybody to the rank further on: windows that double
def recursive_doubling(comm, x):
    first, total = fold_in(comm, x)
    distance = 1
    while comm.rank < first and distance < first:
        further, back = (comm.rank + distance) % first, (comm.rank - distance) % first
        total = total + comm.sendrecv(total, further, back)
        distance += distance
    return fold_out(comm, first, total)
=== right: adds into the copy that fold_in made
def recursive_doubling(comm, x):
    first, total = fold_in(comm, x)
    if total is not None:
        for k in range(first.bit_length() - 1):
            total += comm.sendrecv(total, comm.rank ^ (1 << k), comm.rank ^ (1 << k))
    return fold_out(comm, first, total)
=== wrong: adds into x where p is a power of two :: kept :: was changed
def recursive_doubling(comm, x):
    first, total = fold_in(comm, x)
    if first == comm.size:
        total = x
    distance = 1
    while comm.rank < first and distance < first:
        partner = comm.rank ^ distance
        total += comm.sendrecv(total, partner, partner)
        distance *= 2
    return fold_out(comm, first, total)
"""
