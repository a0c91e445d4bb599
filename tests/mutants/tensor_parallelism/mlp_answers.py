ANSWERS = r"""
=== parts
output: y, whole on each rank
input: the gradient of x, whole on each rank
weights: the gradients of the weights and biases
traffic: one all-reduce of B d words in the forward, and one in the backward
reads: each rank reads its shard of the weights only
=== base
def mlp(comm, x, w1, b1, w2, b2, g):
    units = np.array_split(np.arange(len(b1)), comm.size)[comm.rank]
    v1, v2 = w1[:, units], w2[units, :]
    z = x @ v1 + b1[units]
    a = gelu(z)
    y = a @ v2
    comm.all_reduce(y)
    gz = g @ v2.T * gelu_slope(z)
    gx = gz @ v1.T
    comm.all_reduce(gx)
    return y + b2, gx, x.T @ gz, gz.sum(axis=0), a.T @ g, g.sum(axis=0)
=== wrong: the shard of w1 is read twice :: reads :: more than once :: raised
-    gx = gz @ v1.T
+    gx = gz @ w1[:, units].T
=== wrong: row before column, GELU of partial sums :: output, input, weights, reads
:: The GELU is computed of partial sums
def mlp(comm, x, w1, b1, w2, b2, g):
    d, h = w1.shape
    rows = np.array_split(np.arange(d), comm.size)[comm.rank]
    units = np.array_split(np.arange(h), comm.size)[comm.rank]
    z = x[:, rows] @ w1[rows, :]
    a = gelu(z)
    y = a @ w2[:, :]
    comm.all_reduce(y)
    gz = (g @ w2[:, :].T) * gelu_slope(z)
    gx = np.zeros_like(x)
    gx[:, rows] = gz @ w1[rows, :].T
    comm.all_reduce(gx)
    return y + b2, gx, x.T @ gz[:, units], gz[:, units].sum(axis=0), a[:, units].T @ g, g.sum(axis=0)
=== wrong: row before column, hidden units all-reduced :: traffic, reads :: at most 2 all-reduces
def mlp(comm, x, w1, b1, w2, b2, g):
    d, h = w1.shape
    rows = np.array_split(np.arange(d), comm.size)[comm.rank]
    units = np.array_split(np.arange(h), comm.size)[comm.rank]
    z = x[:, rows] @ w1[rows, :]
    comm.all_reduce(z)
    z += b1
    a = gelu(z)
    y = np.zeros_like(g)
    y[:, rows] = a @ w2[:, rows]
    comm.all_reduce(y)
    ga = g[:, rows] @ w2[:, rows].T
    comm.all_reduce(ga)
    gz = ga * gelu_slope(z)
    gx = np.zeros_like(x)
    gx[:, rows] = gz @ w1[rows, :].T
    comm.all_reduce(gx)
    return y + b2, gx, x.T @ gz[:, units], gz[:, units].sum(axis=0), a[:, units].T @ g, g.sum(axis=0)
=== wrong: an all-reduce in both layers :: traffic :: only y and gx are partial sums
     comm.all_reduce(gx)
+    whole = np.zeros((len(x), len(b1)))
+    whole[:, units] = a
+    comm.all_reduce(whole)
=== wrong: the gradient of the replicated input is not reduced :: input, reads :: This is a partial sum
-    comm.all_reduce(gx)
=== wrong: y is not summed :: output, reads :: This is a partial sum
-    comm.all_reduce(y)
=== wrong: b2 added p times :: output, reads :: b2 is added p times
-    y = a @ v2
+    y = a @ v2 + b2
-    return y + b2, gx, x.T @ gz, gz.sum(axis=0), a.T @ g, g.sum(axis=0)
+    return y, gx, x.T @ gz, gz.sum(axis=0), a.T @ g, g.sum(axis=0)
=== wrong: no b1 :: output, input, weights, reads :: b1 is missing
-    z = x @ v1 + b1[units]
+    z = x @ v1
=== wrong: w1 as if it were an array :: all :: w1 is in a file :: raised
+    z = x @ w1 + b1[units]
=== wrong: no slope of the GELU :: input, weights, reads :: The slope of the GELU is missing
-    gz = g @ v2.T * gelu_slope(z)
+    gz = g @ v2.T
=== wrong: the slope at the output of the GELU :: input, weights, reads :: not of its output
+    gz = g @ v2.T * gelu_slope(a)
=== wrong: gradients divided by p :: input, weights, reads :: divided by p
+    gz = g / comm.size @ v2.T * gelu_slope(z)
=== wrong: whole weights are read :: reads :: has room for :: raised
-    v1, v2 = w1[:, units], w2[units, :]
+    v1, v2 = w1[:, :][:, units], w2[:, :][units, :]
=== wrong: gb2 all-reduced :: weights, traffic :: added p times
-    return y + b2, gx, x.T @ gz, gz.sum(axis=0), a.T @ g, g.sum(axis=0)
+    return y + b2, gx, x.T @ gz, gz.sum(axis=0), a.T @ g, comm.all_reduce(g.sum(axis=0))
=== wrong: hidden units in equal blocks, the last ones forgotten :: output, input, weights, reads :: mlp on rank
-    units = np.array_split(np.arange(len(b1)), comm.size)[comm.rank]
+    units = np.arange(len(b1) // comm.size) + comm.rank * (len(b1) // comm.size)
=== wrong: every p-th hidden unit :: weights, reads :: mlp on rank
+    units = np.arange(comm.rank, len(b1), comm.size)
=== right: both sums in one all-reduce at the end
def mlp(comm, x, w1, b1, w2, b2, g):
    low, extra = divmod(len(b1), comm.size)
    first = comm.rank * low + min(comm.rank, extra)
    own = slice(first, first + low + (comm.rank < extra))
    v1, v2 = w1[:, own], w2[own]
    z = x @ v1 + b1[own]
    gz = (g @ v2.T) * gelu_slope(z)
    both = np.stack([gelu(z) @ v2, gz @ v1.T])
    comm.all_reduce(both)
    return both[0] + b2, both[1], x.T @ gz, gz.sum(0), gelu(z).T @ g, g.sum(0)
=== right: unit by unit
def mlp(comm, x, w1, b1, w2, b2, g):
    units = np.array_split(np.arange(w1.shape[1]), comm.size)[comm.rank]
    y, gx, gw1, gb1, gw2 = np.zeros_like(g), np.zeros_like(x), [], [], []
    for i in units:
        into, out = w1[:, i], w2[i, :]
        z = x @ into + b1[i]
        y += np.outer(gelu(z), out)
        gz = gelu_slope(z) * (g @ out)
        gx += np.outer(gz, into)
        gw1.append(x.T @ gz)
        gb1.append(gz.sum())
        gw2.append(gelu(z) @ g)
    y = comm.all_reduce(y)
    y = y + b2
    comm.all_reduce(gx)
    return y, gx, np.array(gw1).T, np.array(gb1), np.array(gw2), g.sum(axis=0)
"""
