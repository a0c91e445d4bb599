ANSWERS = r"""
=== parts
sum: every rank returns the sum
in place: x itself has become the sum
round: 2(p - 1) messages a rank, each a chunk, to one neighbour
large: no deadlock with chunks of more than 64 KiB
=== base
def ring_all_reduce(comm, x):
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    places = np.array_split(x, p)
    for step in range(p - 1):
        places[(me - step - 1) % p][...] += comm.sendrecv(places[(me - step) % p], right, left)
    for step in range(p - 1):
        places[(me - step) % p][...] = comm.sendrecv(places[(me - step + 1) % p], right, left)
    return x
=== wrong: returns a new array :: in place :: x is as it was
def ring_all_reduce(comm, x):
    mine = ring_reduce_scatter(comm, np.array_split(x, comm.size))
    return np.concatenate(ring_all_gather(comm, mine))
=== wrong: a root gathers, adds and sends back :: round :: Everything goes through rank 0
def ring_all_reduce(comm, x):
    if comm.rank > 0:
        comm.send(x, 0)
        x[...] = comm.recv(0)
        return x
    for rank in range(1, comm.size):
        x += comm.recv(rank)
    for rank in range(1, comm.size):
        comm.send(x, rank)
    return x
=== wrong: whole vectors twice round, as in a published course :: round :: The whole vector goes out in each step
def ring_all_reduce(comm, x):
    p, right, left = comm.size, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    passing = x.copy()
    for step in range(p - 1):
        passing = comm.sendrecv(passing, right, left)
        x += passing
    for step in range(p - 1):
        x[...] = comm.sendrecv(x, right, left)
    return x
=== wrong: uses comm.all_reduce's own ring :: all :: called comm.all_reduce
def ring_all_reduce(comm, x):
    return comm.all_reduce(x, algorithm='ring')
=== wrong: everybody sends before receiving :: large :: deadlock: ranks 0 :: stuck
def ring_all_reduce(comm, x):
    p, me = comm.size, comm.rank
    places = np.array_split(x, p)
    for step in range(2 * (p - 1)):
        comm.send(places[(me - step) % p], (me + 1) % p)
        incoming = comm.recv((me - 1) % p)
        place = places[(me - step - 1) % p]
        place[...] = place + incoming if step < p - 1 else incoming
    return x
=== wrong: no all-gather :: all :: the all-gather is missing
def ring_all_reduce(comm, x):
    places = np.array_split(x, comm.size)
    places[comm.rank][...] = ring_reduce_scatter(comm, places)
    return x
=== wrong: recursive doubling instead :: round :: one neighbour is asked
def ring_all_reduce(comm, x):
    x[...] = recursive_doubling(comm, x)
    return x
=== wrong: the all-gather begins with the wrong chunk :: sum, in place, large :: Look at chunk 0 of np.array_split(x,
-        places[(me - step) % p][...] = comm.sendrecv(places[(me - step + 1) % p], right, left)
+        places[(me - step - 1) % p][...] = comm.sendrecv(places[(me - step) % p], right, left)
=== wrong: puts what came into the list, not into x :: sum, in place, large :: Look at chunk 0 of np.array_split(x,
+        places[(me - step) % p] = comm.sendrecv(places[(me - step + 1) % p], right, left)
=== wrong: float32 in the all-gather only :: all :: rounded on the way, to float32 perhaps
+        places[(me - step) % p][...] = comm.sendrecv(places[(me - step + 1) % p].astype(np.float32), right, left)
=== wrong: padded by one element a chunk, always :: round :: The message holds more numbers than the chunk has
def ring_all_reduce(comm, x):
    p, n = comm.size, len(x)
    places = np.split(np.append(x, np.zeros((n // p + 1) * p - n)), p)
    mine = ring_reduce_scatter(comm, places)
    x[...] = np.concatenate(ring_all_gather(comm, mine))[:n]
    return x
=== wrong: whole vectors: added up along the ring, and handed out along the ring :: round :: The whole vector goes out
def ring_all_reduce(comm, x):
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    if p == 1:
        return x
    if me > 0:
        x += comm.recv(left)
    comm.send(x, right)
    if me == 0:
        x[...] = comm.recv(left)
        if p > 2:
            comm.send(x, right)
    elif me < p - 1:
        x[...] = comm.recv(left)
        if me < p - 2:
            comm.send(x, right)
    return x
=== wrong: half of the vector one way round, half the other way :: round :: That is to its left and to its right
def ring_all_reduce(comm, x):
    p, me = comm.size, comm.rank
    for half, way in zip(np.array_split(x, 2), (1, -1)):
        places = np.array_split(half, p)
        for step in range(2 * (p - 1)):
            incoming = comm.sendrecv(places[(me - way * step) % p], (me + way) % p, (me - way) % p)
            place = places[(me - way * (step + 1)) % p]
            place[...] = place + incoming if step < p - 1 else incoming
    return x
=== wrong: every chunk in two messages :: round :: messages,
def ring_all_reduce(comm, x):
    for half in np.array_split(x, 2):
        mine = ring_reduce_scatter(comm, np.array_split(half, comm.size))
        half[...] = np.concatenate(ring_all_gather(comm, mine))
    return x
=== wrong: padded, and the padded vector returned :: sum :: got shape
def ring_all_reduce(comm, x):
    p, n = comm.size, len(x)
    padded = np.append(x, np.zeros(-n % p))
    mine = ring_reduce_scatter(comm, np.split(padded, p))
    padded = np.concatenate(ring_all_gather(comm, mine))
    x[...] = padded[:n]
    return padded
=== wrong: what came is cleaned of infinity :: sum, in place :: expected inf
-        places[(me - step - 1) % p][...] += comm.sendrecv(places[(me - step) % p], right, left)
+        places[(me - step - 1) % p][...] += np.nan_to_num(comm.sendrecv(places[(me - step) % p], right, left))
=== base
def ring_all_reduce(comm, x):
    places = np.array_split(x, comm.size)
    mine = ring_reduce_scatter(comm, places)
    for place, chunk in zip(places, ring_all_gather(comm, mine)):
        place[...] = chunk
    return x
=== wrong: forgets to return x :: sum, large :: without a `return`
-    return x
=== wrong: works only for p | n :: sum, in place, round :: equal division :: raised
-    places = np.array_split(x, comm.size)
+    places = np.split(x, comm.size)
=== wrong: leaves out the last n % p elements :: sum, in place, round :: The last n % p elements were left out
+    places = [x[i * (len(x) // comm.size) : (i + 1) * (len(x) // comm.size)] for i in range(comm.size)]
=== wrong: the last chunk has the rest :: round :: not as even as they can be
+    p = comm.size
+    places = [x[i * (len(x) // p) : (i + 1) * (len(x) // p) if i < p - 1 else len(x)] for i in range(p)]
=== wrong: n // p elements a chunk, and nothing for n less than p :: sum, in place :: nothing was added
+    p, me = comm.size, comm.rank
+    if len(x) < p:
+        return x
+    places = np.array_split(x, p)
=== wrong: mean instead of sum :: sum, in place, large :: This is the mean
-        place[...] = chunk
+        place[...] = chunk / comm.size
=== wrong: never waits for its sends :: round :: returned without waiting for the end of
def ring_all_reduce(comm, x):
    p, me = comm.size, comm.rank
    places = np.array_split(x, p)
    for k in range(p - 1):
        comm.isend(places[(me - 1 - k) % p], (me + 1) % p)
        places[(me - 2 - k) % p][...] += comm.recv((me - 1) % p)
    for k in range(p - 1):
        comm.isend(places[(me - k) % p], (me + 1) % p)
        places[(me - 1 - k) % p][...] = comm.recv((me - 1) % p)
    return x
=== right: chunks of ceil(n/p) elements, the last ones shorter or empty
-    places = np.array_split(x, comm.size)
+    size = math.ceil(len(x) / comm.size)
+    places = [x[i * size : (i + 1) * size] for i in range(comm.size)]
=== right: padded with zeros to p equal chunks
def ring_all_reduce(comm, x):
    p, me, n = comm.size, comm.rank, len(x)
    table = np.pad(x, (0, -n % p)).reshape(p, -1)
    for step in range(2 * (p - 1)):
        incoming = comm.sendrecv(table[(me - step) % p], (me + 1) % p, (me - 1) % p)
        if step < p - 1:
            table[(me - step - 1) % p] += incoming
        else:
            table[(me - step - 1) % p] = incoming
    x[...] = table.ravel()[:n]
    return x
=== right: rank 0 sends to 2, that to 1, that to 3, that to 0, and so on
def ring_all_reduce(comm, x):
    p = comm.size
    order = list(range(p))
    order[1:3] = order[2:0:-1] if p > 2 else order[1:3]
    me = order.index(comm.rank)
    places = np.array_split(x, p)
    for step in range(2 * (p - 1)):
        incoming = comm.sendrecv(places[(me - step) % p], order[(me + 1) % p], order[me - 1])
        place = places[(me - step - 1) % p]
        place[...] = place + incoming if step < p - 1 else incoming
    return x.copy()
=== right: chunk i is every p-th element from i on
def ring_all_reduce(comm, x):
    p, me = comm.size, comm.rank
    for step in range(2 * p - 2):
        came = comm.sendrecv(x[(me - step) % p :: p], (me + 1) % p, (me - 1) % p)
        here = slice((me - step - 1) % p, None, p)
        x[here] = came + x[here] if step + 1 < p else came
    return x
=== wrong: whole vectors where there are fewer elements than ranks :: round :: The whole vector goes out
def ring_all_reduce(comm, x):
    p, right, left = comm.size, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    passing = x.copy()
    for step in range(p - 1 if len(x) < p else 0):
        passing = comm.sendrecv(passing, right, left)
        x += passing
    if len(x) >= p:
        mine = ring_reduce_scatter(comm, np.array_split(x, p))
        x[...] = np.concatenate(ring_all_gather(comm, mine))
    return x
"""
