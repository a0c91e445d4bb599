ANSWERS = r"""
=== parts
loss: the loss, the same on each rank
gradient: the gradient of this rank's logits
large: large and small logits
traffic: at most three all-reduces, of 3 n words together
=== base
def cross_entropy(comm, logits, targets, start):
    n, own = logits.shape
    rows = np.flatnonzero((targets >= start) & (targets < start + own))
    columns = targets[rows] - start
    largest = logits.max(axis=1)
    comm.all_reduce(largest, op="max")
    e = np.exp(logits - largest[:, None])
    total = e.sum(axis=1)
    comm.all_reduce(total)
    chosen = np.zeros(n)
    chosen[rows] = logits[rows, columns]
    comm.all_reduce(chosen)
    loss = np.mean(np.log(total) + largest - chosen)
    glogits = e / total[:, None]
    glogits[rows, columns] -= 1
    return loss, glogits / n
=== wrong: the logits are gathered :: traffic :: no comm.all_gather
def cross_entropy(comm, logits, targets, start):
    n, own = logits.shape
    whole = np.concatenate(comm.all_gather(logits), axis=1)
    shifted = whole - whole.max(axis=1, keepdims=True)
    e = np.exp(shifted)
    chosen = shifted[np.arange(n), targets]
    glogits = e / e.sum(axis=1, keepdims=True)
    glogits[np.arange(n), targets] -= 1
    return float(np.mean(np.log(e.sum(axis=1)) - chosen)), glogits[:, start : start + own] / n
=== wrong: each rank with a maximum of its own :: loss, gradient, large :: the rank's own maximum
-    comm.all_reduce(largest, op="max")
=== wrong: the maxima are added up :: large :: cross_entropy
+    comm.all_reduce(largest)
=== wrong: one maximum of all samples :: large :: cross_entropy on rank
-    largest = logits.max(axis=1)
+    largest = np.full(n, logits.max())
=== wrong: the sum of this rank alone :: loss, gradient, large :: cross_entropy on rank
-    comm.all_reduce(total)
=== wrong: the target's logit of this rank alone :: loss, large :: cross_entropy on rank
-    comm.all_reduce(chosen)
=== wrong: targets of other ranks are clipped :: loss, large :: cross_entropy on rank
-    chosen[rows] = logits[rows, columns]
+    chosen[:] = logits[np.arange(n), np.clip(targets - start, 0, own - 1)]
=== wrong: targets of other ranks take a column of this one :: gradient, large :: take columns of this one
-    glogits[rows, columns] -= 1
+    glogits[np.arange(n), (targets - start) % own] -= 1
=== wrong: the exponentials are all-reduced :: traffic :: cross_entropy on rank
     comm.all_reduce(chosen)
+    comm.all_reduce(np.zeros((n, 7)))
=== wrong: the gradient of all columns :: gradient, large ::
-    return loss, glogits / n
+    return loss, np.tile(glogits / n, comm.size)
=== wrong: targets are used as columns :: all :: IndexError :: raised
-    columns = targets[rows] - start
+    columns = targets[rows]
=== right: two all-reduces
def cross_entropy(comm, logits, targets, start):
    n, own = logits.shape
    hot = targets[:, None] == np.arange(start, start + own)
    top = comm.all_reduce(logits.max(axis=1), op="max")[:, None]
    e = np.exp(logits - top)
    pair = comm.all_reduce(np.stack([e.sum(1), np.where(hot, logits - top, 0).sum(1)]))
    return float((np.log(pair[0]) - pair[1]).sum() / n), (e / pair[0][:, None] - hot) / n
=== right: maxima of all ranks by one sum of a matrix is too much, so three short ones
def cross_entropy(comm, logits, targets, start):
    n, own = logits.shape
    c = np.array([max(row) for row in logits])
    comm.all_reduce(c, op="max")
    s, t = np.zeros(n), np.zeros(n)
    for i in range(n):
        s[i] = np.exp(logits[i] - c[i]).sum()
        if 0 <= targets[i] - start < own:
            t[i] = logits[i, targets[i] - start] - c[i]
    comm.all_reduce(t)
    comm.all_reduce(s)
    grad = np.exp(logits - c[:, None] - np.log(s)[:, None])
    for i in range(n):
        if 0 <= targets[i] - start < own:
            grad[i, targets[i] - start] -= 1
    return np.mean(np.log(s) - t), grad / n
"""
