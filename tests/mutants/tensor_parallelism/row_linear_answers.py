ANSWERS = r"""
=== parts
output: y, whole on each rank
local: the gradients of this rank's columns of x, of its weights, and of the bias
traffic: one all-reduce of B n words, and nothing else
=== base
def row_linear(comm, x, w, b, g):
    y = x @ w
    comm.all_reduce(y)
    y = y + b
    gx, gw, gb = g @ w.T, x.T @ g, g.sum(axis=0)
    return y, gx, gw, gb
=== wrong: the bias added p times :: output :: added p times
-    y = x @ w
+    y = x @ w + b
-    y = y + b
=== wrong: no sum :: output, traffic :: This is a partial sum
-    comm.all_reduce(y)
=== wrong: the sum on rank 0, and a broadcast :: traffic :: and no comm.
+    comm.reduce(y, dst=0)
+    y = comm.broadcast(y, src=0)
=== wrong: the gradient of x is summed, too :: all :: CollectiveMismatch :: raised
     gx, gw, gb = g @ w.T, x.T @ g, g.sum(axis=0)
+    comm.all_reduce(gx)
=== wrong: the gradient of the bias is summed, too :: local, traffic :: added p times
+    comm.all_reduce(gb)
=== wrong: the gradient of w divided by p :: local :: divided by p
-    gx, gw, gb = g @ w.T, x.T @ g, g.sum(axis=0)
+    gx, gw, gb = g @ w.T, x.T @ g / comm.size, g.sum(axis=0)
=== wrong: the columns are gathered, and the rows, too :: traffic :: no comm.all_gather
-    y = x @ w
-    comm.all_reduce(y)
+    y = np.concatenate(comm.all_gather(x), axis=1) @ np.concatenate(comm.all_gather(w))
=== wrong: half of the rows in each of two all-reduces, and one more :: traffic :: expected one all-reduce
     comm.all_reduce(y)
+    comm.all_reduce(np.zeros(1))
=== right: rank 0 has the bias in its partial sum
def row_linear(comm, x, w, b, g):
    y = x @ w
    if comm.rank == 0:
        y += b
    y = comm.all_reduce(y)
    return y, g @ w.T, x.T @ g, np.ones(len(g)) @ g
=== right: a reduce-scatter and an all-gather
def row_linear(comm, x, w, b, g):
    own = comm.reduce_scatter((x @ w).ravel())
    y = np.concatenate([np.ravel(part) for part in comm.all_gather(own)]).reshape(len(x), -1)
    return y + b, np.dot(g, w.T), np.dot(x.T, g), g.sum(0)
=== right: a p-th of the bias on each rank
def row_linear(comm, x, w, b, g):
    y = x @ w + b / comm.size
    comm.all_reduce(y)
    return y, (w @ g.T).T, (g.T @ x).T, g.sum(axis=0)
"""
