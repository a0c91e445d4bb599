ANSWERS = r"""
=== parts
chunk: rank r returns chunk r of the sum
round: p - 1 messages a rank, each a chunk, to one neighbour
kept: the caller's chunks stay as they are
large: no deadlock with chunks of more than 64 KiB
=== base
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    growing = chunks[left].copy()
    for step in range(p - 1):
        growing = comm.sendrecv(growing, right, left) + chunks[(me - 2 - step) % p]
    return growing
=== wrong: chunk index off by one: chunk r + 1 ends on rank r :: chunk, kept, large
:: the number of the chunk is off by 1
-    growing = chunks[left].copy()
+    growing = chunks[me].copy()
-        growing = comm.sendrecv(growing, right, left) + chunks[(me - 2 - step) % p]
+        growing = comm.sendrecv(growing, right, left) + chunks[(me - 1 - step) % p]
=== wrong: works only for p > 1 :: chunk, round, kept :: UnboundLocalError :: raised
+    passing = chunks[left]
-        growing = comm.sendrecv(growing, right, left) + chunks[(me - 2 - step) % p]
+        growing = comm.sendrecv(passing, right, left) + chunks[(me - 2 - step) % p]
+        passing = growing
=== wrong: passes on what came, not the sum :: chunk, kept, large :: Missing in this sum: what rank
+    growing = passing = chunks[left]
-        growing = comm.sendrecv(growing, right, left) + chunks[(me - 2 - step) % p]
+        passing = comm.sendrecv(passing, right, left)
+        growing = passing + chunks[(me - 2 - step) % p]
=== wrong: one round missing :: all :: a step is missing
-    for step in range(p - 1):
+    for step in range(p - 2):
=== wrong: p steps :: all :: These are numbers of chunk 2. Added more than once: what rank 0 had.
+    for step in range(p):
=== wrong: wrong direction: chunks of a ring to the right, messages to the left :: all
:: do the messages go the way round
-        growing = comm.sendrecv(growing, right, left) + chunks[(me - 2 - step) % p]
+        growing = comm.sendrecv(growing, left, right) + chunks[(me - 2 - step) % p]
=== wrong: everybody sends before receiving :: large :: deadlock: ranks 0 :: stuck
+        growing = (comm.send(growing, right), comm.recv(left))[1] + chunks[(me - 2 - step) % p]
=== wrong: rank 0 sends first, the others receive first :: round :: rounds
+        if me == 0:
+            comm.send(growing, right)
+            incoming = comm.recv(left)
+        else:
+            incoming = comm.recv(left)
+            comm.send(growing, right)
+        growing = incoming + chunks[(me - 2 - step) % p]
=== wrong: in turn where a send waits :: large :: with messages of more than 64 KiB
+        if growing.nbytes > 65536 and me % 2:
+            incoming = comm.recv(left)
+            comm.send(growing, right)
+        else:
+            comm.send(growing, right)
+            incoming = comm.recv(left)
+        growing = incoming + chunks[(me - 2 - step) % p]
=== wrong: sends to the right and receives from the right :: all :: rank 0: sendrecv (call 1) waits for rank 1 :: stuck
+        growing = comm.sendrecv(growing, right, right) + chunks[(me - 2 - step) % p]
=== wrong: float32 on the way :: all :: rounded on the way, to float32 perhaps
+        growing = comm.sendrecv(growing.astype(np.float32), right, left) + chunks[(me - 2 - step) % p]
=== wrong: what came is cleaned of infinity :: chunk, kept :: expected inf
+        growing = np.nan_to_num(comm.sendrecv(growing, right, left)) + chunks[(me - 2 - step) % p]
=== wrong: sends zeros round the ring :: chunk, kept, large :: nothing was added to this chunk
+        growing = comm.sendrecv(0 * growing, right, left) + chunks[(me - 2 - step) % p]
=== wrong: whole array each step :: round :: The whole vector goes out in each step
import numpy as np
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    passing = np.concatenate(chunks)
    total = passing
    for step in range(p - 1):
        passing = comm.sendrecv(passing, (me + 1) % p, (me - 1) % p)
        total = total + passing
    return np.split(total, np.cumsum([len(chunk) for chunk in chunks])[:-1])[me]
=== wrong: a root gathers and scatters :: round :: Everything goes through rank 0
import numpy as np
def ring_reduce_scatter(comm, chunks):
    if comm.rank > 0:
        comm.send(np.concatenate(chunks), 0)
        return comm.recv(0)
    total = np.concatenate(chunks)
    for rank in range(1, comm.size):
        total = total + comm.recv(rank)
    parts = np.split(total, np.cumsum([len(chunk) for chunk in chunks])[:-1])
    for rank in range(1, comm.size):
        comm.send(parts[rank], rank)
    return parts[0]
=== wrong: uses comm.reduce_scatter :: all :: called comm.reduce_scatter
import numpy as np
def ring_reduce_scatter(comm, chunks):
    return comm.reduce_scatter(np.concatenate(chunks))
=== wrong: adds in place, into the caller's chunks :: kept :: was changed
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    for step in range(p - 1):
        chunks[(me - 2 - step) % p] += comm.sendrecv(chunks[(me - 1 - step) % p], (me + 1) % p, (me - 1) % p)
    return chunks[me]
=== wrong: works only for p | n :: chunk, round, kept :: all input arrays must have the same shape :: raised
     right, left = (me + 1) % p, (me - 1) % p
+    chunks = np.stack(chunks)
=== wrong: padded, and not cut back :: chunk, kept :: got shape
+    longest = max(map(len, chunks))
+    chunks = [np.pad(chunk, (0, longest - len(chunk))) for chunk in chunks]
=== wrong: the list is made twice as long, for the modulo :: kept :: the caller passed a list of
+    chunks += chunks
=== wrong: mean instead of sum :: chunk, kept, large :: This is the mean
-    return growing
+    return growing / p
=== wrong: adds its own share twice :: chunk, kept, large :: added twice
+    return growing + chunks[me]
=== wrong: float32 in the end :: chunk, kept, large :: expected an array of float64, got one of float32
+    return growing.astype(np.float32)
=== wrong: chunk r is sent first, and r + 1 is complete in the end :: chunk, kept, large
:: Which one is complete here in the end?
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    sums = [chunk.copy() for chunk in chunks]
    for step in range(p - 1):
        sums[(me - 1 - step) % p] += comm.sendrecv(sums[(me - step) % p], (me + 1) % p, (me - 1) % p)
    return sums[me]
=== wrong: joined and cut anew :: chunk, kept :: joined and cut anew
     p, me = comm.size, comm.rank
+    chunks = np.array_split(np.concatenate(chunks), p)
=== wrong: all chunks in every step :: round :: send the array itself
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    passing = chunks
    total = chunks[me].copy()
    for step in range(p - 1):
        passing = comm.sendrecv(passing, (me + 1) % p, (me - 1) % p)
        total += passing[me]
    return total
=== wrong: two rings, of the even and of the odd ranks :: all :: expected
-    right, left = (me + 1) % p, (me - 1) % p
+    right, left = (me + 2) % p, (me - 2) % p
=== right: isend and recv, adding into what came
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    growing = chunks[(me - 1) % p]
    for step in range(p - 1):
        work = comm.isend(growing, (me + 1) % p)
        incoming = comm.recv((me - 1) % p)
        work.wait()
        incoming += chunks[(me - 2 - step) % p]
        growing = incoming
    return growing
=== right: the ranks stand in the ring in another order: the even ones, then the odd ones
def ring_reduce_scatter(comm, chunks):
    p = comm.size
    order = [*range(0, p, 2), *range(1, p, 2)]
    me = order.index(comm.rank)
    growing = chunks[order[me - 1]].copy()
    for step in range(p - 1):
        incoming = comm.sendrecv(growing, order[(me + 1) % p], order[me - 1])
        growing = incoming + chunks[order[(me - 2 - step) % p]]
    return growing
=== right: padded to the longest chunk, and cut back
def ring_reduce_scatter(comm, chunks):
    p, me = comm.size, comm.rank
    longest = max(len(chunk) for chunk in chunks)
    table = np.zeros((p, longest))
    for row, chunk in zip(table, chunks):
        row[: len(chunk)] = chunk
    for step in range(p - 1):
        table[(me - 2 - step) % p] += comm.sendrecv(table[(me - 1 - step) % p], (me + 1) % p, (me - 1) % p)
    return table[me, : len(chunks[me])]
=== right: in steps of two or more that come by all ranks
def ring_reduce_scatter(comm, chunks):
    p = comm.size
    stride = next(s for s in range(p - 2 if p > 4 else 1, p + 1) if math.gcd(s, p) == 1)
    to, source = (comm.rank + stride) % p, (comm.rank - stride) % p
    growing = chunks[source]
    for step in range(2, p + 1):
        growing = comm.sendrecv(growing, to, source) + chunks[(comm.rank - step * stride) % p]
    return growing
"""
