ANSWERS = r"""
=== parts
all chunks: every rank returns all chunks in the order of the ranks
round: p - 1 messages a rank, each a chunk, to one neighbour
large: no deadlock with chunks of more than 64 KiB
=== base
def ring_all_gather(comm, chunk):
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    chunks = [chunk] * p
    for step in range(p - 1):
        chunk = comm.sendrecv(chunk, right, left)
        chunks[(me - 1 - step) % p] = chunk
    return chunks
=== wrong: chunk index off by one :: all chunks, large :: in the place of rank
-        chunks[(me - 1 - step) % p] = chunk
+        chunks[(me - step) % p] = chunk
=== wrong: wrong direction: sends to the left, counts as to the right :: all chunks, large :: in the place of rank
-        chunk = comm.sendrecv(chunk, right, left)
+        chunk = comm.sendrecv(chunk, left, right)
=== wrong: everybody sends before receiving :: large :: deadlock: ranks 0 :: stuck
+        comm.send(chunk, right)
+        chunk = comm.recv(left)
=== wrong: in turn where a send waits :: large :: with messages of more than 64 KiB
+        sent = chunk
+        if sent.nbytes > 65536 and me % 2:
+            chunk = comm.recv(left)
+            comm.send(sent, right)
+        else:
+            comm.send(sent, right)
+            chunk = comm.recv(left)
=== wrong: float32 on the way :: all :: rounded on the way, to float32 perhaps
+        chunk = comm.sendrecv(chunk.astype(np.float32), right, left)
=== wrong: what came is cleaned of NaN and infinity :: all chunks :: expected nan
+        chunk = np.nan_to_num(comm.sendrecv(chunk, right, left))
=== wrong: joins the chunks :: all chunks, large :: The chunks were joined
-    return chunks
+    return np.concatenate(chunks)
=== wrong: a table of two axes :: all :: A list of arrays is asked: their lengths may differ
+    return np.array([each for each in chunks])
=== wrong: a copy of the last chunk too many :: all chunks, large :: got a list of
+    return [*chunks, chunk]
=== wrong: sends its own chunk in every step :: all chunks, large :: did the same chunk come in more than one step?
-        chunk = comm.sendrecv(chunk, right, left)
-        chunks[(me - 1 - step) % p] = chunk
+        other = comm.sendrecv(chunk, right, left)
+        chunks[(me - 1 - step) % p] = other
=== wrong: one round missing :: all :: in the place of rank
-    for step in range(p - 1):
+    for step in range(p - 2):
=== wrong: p steps :: round :: To go round once takes p - 1 steps, not p
+    for step in range(p):
=== wrong: everyone sends to everyone :: round :: Here a rank sends to every other one
def ring_all_gather(comm, chunk):
    p, me = comm.size, comm.rank
    chunks = [chunk] * p
    for step in range(1, p):
        chunks[(me - step) % p] = comm.sendrecv(chunk, (me + step) % p, (me - step) % p)
    return chunks
=== wrong: uses comm.all_gather :: all :: called comm.all_gather
def ring_all_gather(comm, chunk):
    return comm.all_gather(chunk)
=== wrong: its own chunk is not put into the list :: all chunks, large :: Nothing was put there
-    chunks = [chunk] * p
+    chunks = [None] * p
=== wrong: what came is written into the caller's chunk :: all :: could not broadcast input array :: raised
+    chunks = [chunk.copy()] * p
-        chunk = comm.sendrecv(chunk, right, left)
-        chunks[(me - 1 - step) % p] = chunk
+        chunk[...] = comm.sendrecv(chunk, right, left)
+        chunks[(me - 1 - step) % p] = chunk.copy()
=== wrong: the caller's chunk is cleared in the end :: all chunks :: changed its argument chunk at [0]: it was
+    chunks = [chunk.copy()] * p
+    own = chunk
         chunks[(me - 1 - step) % p] = chunk
+    own[...] = 0.0
=== wrong: all chunks as long as one's own :: all chunks, round :: could not broadcast :: raised
+    chunks = list(np.tile(chunk, (p, 1)))
-        chunks[(me - 1 - step) % p] = chunk
+        chunks[(me - 1 - step) % p][...] = chunk
=== wrong: the rank travels with its chunk :: round :: send the array itself
def ring_all_gather(comm, chunk):
    p, me = comm.size, comm.rank
    chunks = [chunk] * p
    message = (me, chunk)
    for step in range(p - 1):
        message = comm.sendrecv(message, (me + 1) % p, (me - 1) % p)
        chunks[message[0]] = message[1]
    return chunks
=== wrong: both ways round :: round :: That is to its left and to its right
def ring_all_gather(comm, chunk):
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    chunks, one, other = [chunk] * p, chunk, chunk
    for step in range(1, p // 2 + 1):
        chunks[(me - step) % p] = one = comm.sendrecv(one, right, left)
        if 2 * step < p:
            chunks[(me + step) % p] = other = comm.sendrecv(other, left, right)
    return chunks
=== wrong: one buffer for all that comes :: all :: of this list hold the same numbers
     right, left = (me + 1) % p, (me - 1) % p
+    buffer = chunk.copy()
-        chunk = comm.sendrecv(chunk, right, left)
-        chunks[(me - 1 - step) % p] = chunk
+        buffer[...] = comm.sendrecv(buffer, right, left)
+        chunks[(me - 1 - step) % p] = buffer
=== wrong: a root gathers and sends the list :: round :: Everything goes through rank 0
def ring_all_gather(comm, chunk):
    if comm.rank > 0:
        comm.send(chunk, 0)
        return comm.recv(0)
    chunks = [chunk, *(comm.recv(rank) for rank in range(1, comm.size))]
    for rank in range(1, comm.size):
        comm.send(chunks, rank)
    return chunks
=== right: irecv, then send; the list is turned at the end
def ring_all_gather(comm, chunk):
    p, me = comm.size, comm.rank
    arrived = [chunk]
    for step in range(p - 1):
        coming = comm.irecv((me - 1) % p)
        comm.send(arrived[-1], (me + 1) % p)
        arrived.append(coming.wait())
    return tuple(arrived[(me - rank) % p] for rank in range(p))
=== right: round the even ranks, then the odd ones
def ring_all_gather(comm, chunk):
    p = comm.size
    order = [*range(0, p, 2), *range(1, p, 2)]
    me = order.index(comm.rank)
    found = [None] * p
    found[comm.rank] = chunk
    for step in range(1, p):
        chunk = comm.sendrecv(chunk, order[(me + 1) % p], order[me - 1])
        found[order[me - step]] = chunk
    return found
=== right: views of one long array, which grows
def ring_all_gather(comm, chunk):
    p, me = comm.size, comm.rank
    everything, ends, coming = chunk.copy(), [0, len(chunk)], chunk
    for step in range(p - 1):
        coming = comm.sendrecv(coming, (me - 1) % p, (me + 1) % p)
        everything = np.append(everything, coming)
        ends.append(len(everything))
    return [everything[ends[(i - me) % p] : ends[(i - me) % p + 1]] for i in range(p)]
"""
