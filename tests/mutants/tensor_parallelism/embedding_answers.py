ANSWERS = r"""
=== parts
output: the rows of the tokens, whole on each rank
once: the gradient of this rank's rows, tokens that differ
several: the gradient of this rank's rows, tokens that are there several times
traffic: one all-reduce of n d words, and nothing else
=== base
def embedding(comm, ids, table, start, g):
    here = (ids >= start) & (ids < start + len(table))
    rows = ids[here] - start
    y = np.zeros((len(ids), table.shape[1]))
    y[here] = table[rows]
    comm.all_reduce(y)
    gtable = np.zeros_like(table)
    np.add.at(gtable, rows, g[here])
    return y, gtable
=== wrong: rows of a repeated token counted once :: several :: adds each row once
-    np.add.at(gtable, rows, g[here])
+    gtable[rows] += g[here]
=== wrong: gradients of clipped tokens :: once, several :: are clipped
+    np.add.at(gtable, np.clip(ids - start, 0, len(table) - 1), g)
=== wrong: the gradient divided by p :: once, several :: divided by p
+    np.add.at(gtable, rows, g[here] / comm.size)
=== wrong: the gradient of the rows with the rank's y :: once, several :: embedding on rank
+    np.add.at(gtable, rows, y[here])
=== wrong: tokens of other ranks are clipped :: output :: are clipped
-    y[here] = table[rows]
+    y = table[np.clip(ids - start, 0, len(table) - 1)]
=== wrong: negative rows wrap around :: output :: their rows have to be zero
+    inside = ids < start + len(table)
+    y[inside] = table[(ids[inside] - start) % len(table)]
=== wrong: no sum :: output, traffic :: this rank's rows alone
-    comm.all_reduce(y)
=== wrong: the mean of the ranks :: output :: the mean over the ranks
-    return y, gtable
+    return y / comm.size, gtable
=== wrong: the gradient of the table is summed, too :: traffic :: expected one all-reduce
     np.add.at(gtable, rows, g[here])
+    comm.all_reduce(g.copy())
=== wrong: the mean of a token's positions :: several :: the mean over a token's positions
+    gtable /= np.maximum(np.bincount(rows, minlength=len(table)), 1)[:, None]
=== wrong: the table is gathered :: traffic :: no comm.all_gather
-    y[here] = table[rows]
-    comm.all_reduce(y)
+    y = np.concatenate(comm.all_gather(table))[ids]
=== wrong: the last row belongs to the next rank :: output, once, several :: embedding on rank
-    here = (ids >= start) & (ids < start + len(table))
+    here = (ids >= start) & (ids < start + len(table) - 1)
=== wrong: tables of equal size :: all :: embedding
+    here = (ids >= start) & (ids < start + comm.size)
=== wrong: start is forgotten :: all :: IndexError :: raised
-    rows = ids[here] - start
+    rows = ids[here]
=== right: a product with ones and zeros
def embedding(comm, ids, table, start, g):
    hot = (ids[:, None] == start + np.arange(len(table))).astype(float)
    y = comm.all_reduce(hot @ table)
    return y, hot.T @ g
=== right: token by token
def embedding(comm, ids, table, start, g):
    y, gtable = np.zeros(g.shape), np.zeros(table.shape)
    for position, token in enumerate(ids):
        if start <= token < start + len(table):
            y[position] = table[token - start]
            gtable[token - start] += g[position]
    own = comm.reduce_scatter(y.ravel())
    return [np.concatenate([np.ravel(each) for each in comm.all_gather(own)]).reshape(g.shape), gtable]
"""
