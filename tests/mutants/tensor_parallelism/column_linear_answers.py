ANSWERS = r"""
=== parts
local: this rank's columns of y, and the gradients of its weights and bias
whole: the gradient of x, whole on each rank
traffic: one all-reduce of B m words, and nothing else
=== base
def column_linear(comm, x, w, b, g):
    gx = g @ w.T
    comm.all_reduce(gx)
    y, gw, gb = x @ w + b, x.T @ g, g.sum(axis=0)
    return y, gx, gw, gb
=== wrong: the gradient of the replicated input is not reduced :: whole, traffic :: This is a partial sum
-    comm.all_reduce(gx)
=== wrong: the partial gradients are gathered and added up :: traffic :: more words than their sum needs
+    gx = sum(comm.all_gather(gx))
=== wrong: the gradient of x divided by p :: whole :: it is no mean
     comm.all_reduce(gx)
+    gx /= comm.size
=== wrong: y is gathered :: local, traffic :: Each rank returns its own columns
-    y, gw, gb = x @ w + b, x.T @ g, g.sum(axis=0)
+    y, gw, gb = np.concatenate(comm.all_gather(x @ w + b), axis=1), x.T @ g, g.sum(axis=0)
=== wrong: y is summed over the ranks :: all :: CollectiveMismatch :: raised
     y, gw, gb = x @ w + b, x.T @ g, g.sum(axis=0)
+    comm.all_reduce(y)
=== wrong: the gradient of the bias is summed, padded to the longest :: traffic :: expected one all-reduce of
+    comm.all_reduce(np.zeros(99))
=== wrong: the arguments are changed :: local :: changed its argument g at [0, 0]
+    g *= 2
=== wrong: whole w is gathered :: traffic :: no comm.all_gather
def column_linear(comm, x, w, b, g):
    whole = np.concatenate(comm.all_gather(w), axis=1)
    gathered = np.concatenate(comm.all_gather(g), axis=1)
    return x @ w + b, gathered @ whole.T, x.T @ g, g.sum(axis=0)
=== wrong: the result of all_reduce is taken for None :: local :: gb
def column_linear(comm, x, w, b, g):
    return x @ w + b, comm.all_reduce(g @ w.T), x.T @ g, np.sum(g)
=== wrong: rank 0 alone reduces :: all :: rank 0 :: stuck
def column_linear(comm, x, w, b, g):
    gx = g @ w.T
    if comm.rank == 0:
        comm.all_reduce(gx)
    return x @ w + b, gx, x.T @ g, g.sum(axis=0)
=== right: a reduce-scatter and an all-gather
def column_linear(comm, x, w, b, g):
    partial = np.einsum("bn,mn->bm", g, w)
    own = comm.reduce_scatter(partial.ravel())
    gx = np.concatenate([np.ravel(part) for part in comm.all_gather(own)]).reshape(x.shape)
    return np.einsum("bm,mn->bn", x, w) + b, gx, np.einsum("bm,bn->mn", x, g), np.einsum("bn->n", g)
=== right: row by row
def column_linear(comm, x, w, b, g):
    y = np.stack([b + row @ w for row in x])
    gw, gb, gx = np.zeros_like(w), np.zeros_like(b), np.empty_like(x)
    for row, slope, out in zip(x, g, gx):
        gw += np.outer(row, slope)
        gb += slope
        out[:] = w @ slope
    comm.all_reduce(gx)
    return [y, gx, gw, gb]
"""
