ANSWERS = r"""
=== parts
uneven: heads that p does not divide are refused
output: y, whole on each rank
traffic: one all-reduce of T d words, and nothing else
reads: each rank reads its heads' weights only
=== base
def attention(comm, x, wqkv, wo, heads):
    p, d = comm.size, x.shape[1]
    if heads % p:
        raise ValueError(f"{heads} heads cannot be divided over {p} ranks")
    width = d // heads
    y = np.zeros_like(x)
    for i in range(comm.rank * heads // p, (comm.rank + 1) * heads // p):
        columns = np.arange(i * width, (i + 1) * width)
        q, k, v = x @ wqkv[:, columns], x @ wqkv[:, d + columns], x @ wqkv[:, 2 * d + columns]
        y += one_head(q, k, v) @ wo[columns, :]
    comm.all_reduce(y)
    return y
=== wrong: heads are dealt in turn :: reads :: another rank's :: raised
-    for i in range(comm.rank * heads // p, (comm.rank + 1) * heads // p):
+    for i in range(comm.rank, heads, p):
=== wrong: every head on every rank :: output, reads :: attention on rank
+    for i in range(heads):
=== wrong: uneven heads are computed :: uneven :: Each rank refuses it
-    if heads % p:
-        raise ValueError(f"{heads} heads cannot be divided over {p} ranks")
=== wrong: an assertion :: uneven :: expected a ValueError
+    assert heads % p == 0
=== wrong: rank 0 alone refuses, the others return :: uneven :: expected a ValueError with the numbers
-    if heads % p:
+    if heads % p and comm.rank == 0:
     width = d // heads
+    if heads % p:
+        return x
=== wrong: an all-reduce before heads are refused :: uneven :: Each rank refuses it
     if heads % p:
+        comm.all_reduce(np.ones(1))
=== wrong: no sum :: output, traffic, reads :: This is a partial sum
-    comm.all_reduce(y)
=== wrong: the outputs of heads are gathered :: traffic :: no comm.all_gather
+    y = sum(comm.all_gather(y))
=== wrong: the mean of the ranks :: output, reads :: the mean over the ranks
-    return y
+    return y / p
=== wrong: heads of another error :: uneven :: how many heads and how many ranks
-        raise ValueError(f"{heads} heads cannot be divided over {p} ranks")
+        raise ValueError("does not fit")
=== wrong: one consecutive block of Q, K and V :: output, reads :: no consecutive block
-        q, k, v = x @ wqkv[:, columns], x @ wqkv[:, d + columns], x @ wqkv[:, 2 * d + columns]
+        own, first = d // p, 3 * comm.rank * d // p - comm.rank * d // p
+        q, k, v = (x @ wqkv[:, first + n * own + columns] for n in range(3))
=== wrong: Q, K and V of a head next to each other :: output, reads :: of Q
+        start = 3 * i * width
+        q, k, v = np.split(x @ wqkv[:, start : start + 3 * width], 3, axis=1)
=== wrong: keys and values interchanged :: output, reads :: K and V are interchanged
+        q, v, k = x @ wqkv[:, columns], x @ wqkv[:, d + columns], x @ wqkv[:, 2 * d + columns]
=== wrong: the heads of a rank as one wide head :: output, reads :: as one wide head
-    width = d // heads
+    width, heads = d // p, p
=== wrong: whole wqkv :: reads :: has room for :: raised
     y = np.zeros_like(x)
+    all_of_it = wqkv[:, :]
=== wrong: an all-reduce for each head :: traffic :: only y is a partial sum
-        y += one_head(q, k, v) @ wo[columns, :]
-    comm.all_reduce(y)
+        z = one_head(q, k, v) @ wo[columns, :]
+        comm.all_reduce(z)
+        y += z
=== wrong: without wo :: output, reads ::
-        y += one_head(q, k, v) @ wo[columns, :]
+        y += one_head(q, k, v) @ np.eye(d)[columns]
=== right: all heads of a rank in one product
def attention(comm, x, wqkv, wo, heads):
    own, rest = divmod(heads, comm.size)
    if rest:
        raise ValueError("number of heads " + str(heads) + ", ranks " + str(comm.size))
    T, d = x.shape
    n = d // comm.size
    first = comm.rank * n
    q, k, v = ((x @ wqkv[:, s : s + n]).reshape(T, own, -1) for s in (first, d + first, 2 * d + first))
    scores = np.einsum("thc,shc->hts", q, k) / np.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(-1, keepdims=True))
    a = np.einsum("hts,shc->thc", e / e.sum(-1, keepdims=True), v).reshape(T, n)
    return comm.all_reduce(a @ wo[first : first + n])
=== right: heads as a list, and one index of all columns
def attention(comm, x, wqkv, wo, heads):
    if heads % comm.size != 0:
        raise ValueError(f"{comm.size} ranks, {heads} heads")
    d = x.shape[1]
    own = np.array_split(np.arange(d), comm.size)[comm.rank]
    product = x @ wqkv[:, np.concatenate([own, own + d, own + 2 * d])]
    q, k, v = np.split(product, 3, axis=1)
    count = heads // comm.size
    a = np.hstack([one_head(*each) for each in zip(*(np.split(m, count, axis=1) for m in (q, k, v)))])
    y = a @ wo[own, :]
    comm.all_reduce(y)
    return y
"""
