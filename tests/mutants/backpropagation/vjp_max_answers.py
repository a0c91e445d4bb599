ANSWERS = r"""
=== parts
largest: the largest of each row gets the gradient
ties: ties share it
=== base
def vjp_max(g, x):
    m = x == x.max(axis=1, keepdims=True)
    return m * g[:, None] / m.sum(axis=1, keepdims=True)
=== wrong: the last of the tied elements gets all :: ties :: All of g went to the last
def vjp_max(g, x):
    out = np.zeros_like(x)
    last = x.shape[1] - 1 - x[:, ::-1].argmax(axis=1)
    out[np.arange(len(x)), last] = g
    return out
=== wrong: fails without rows :: largest :: need at least one array to stack :: raised
def vjp_max(g, x):
    return np.stack([d * (row == row.max()) / (row == row.max()).sum() for d, row in zip(g, x)])
=== wrong: the first of the tied elements gets all :: ties :: All of g went to the first
def vjp_max(g, x):
    out = np.zeros_like(x)
    out[np.arange(len(x)), x.argmax(axis=1)] = g
    return out
=== wrong: the maximum of the whole array :: all :: vjp_max(g, x)
def vjp_max(g, x):
    m = (x == x.max()) if x.size else x
    return m / np.maximum(m.sum(axis=1, keepdims=True), 1) * g[:, None]
=== wrong: g is divided in place :: ties :: vjp_max changed its argument g at [0]
-    return m * g[:, None] / m.sum(axis=1, keepdims=True)
+    g /= m.sum(axis=1)
+    return m * g[:, None]
=== wrong: one flag for all rows that have ties :: ties :: ties
+    return m * g[:, None] / (m.sum(axis=1).max() if len(x) else 1)
=== wrong: g is laid along the columns where it fits :: all :: g alone along the columns
+    return m / m.sum(axis=1, keepdims=True) * (g if len(g) == x.shape[1] else g[:, None])
=== wrong: x is shifted in place :: largest :: vjp_max changed its argument x at [0, 0]
def vjp_max(g, x):
    x -= x.max(axis=1, keepdims=True)
    m = x == 0
    return m / m.sum(axis=1, keepdims=True) * g[:, None]
=== wrong: equal up to rounding :: largest :: vjp_max(g, x), x of shape (
def vjp_max(g, x):
    m = x >= x.max(axis=1, keepdims=True) - 1e-12
    return m / m.sum(axis=1, keepdims=True) * g[:, None]
=== wrong: a steep softmax :: largest :: vjp_max(g, x), x of shape (
def vjp_max(g, x):
    e = np.exp(1e6 * (x - x.max(axis=1, keepdims=True)))
    return e / e.sum(axis=1, keepdims=True) * g[:, None]
=== wrong: in single precision :: all :: vjp_max(g, x)
def vjp_max(g, x):
    m = (x == x.max(axis=1, keepdims=True)).astype(np.float32)
    return m / m.sum(axis=1, keepdims=True) * g.astype(np.float32)[:, None]
=== right: row by row
def vjp_max(g, x):
    out = np.zeros(x.shape)
    for i, row in enumerate(x):
        winners = [j for j in range(len(row)) if row[j] == max(row)]
        for j in winners:
            out[i, j] = g[i] / len(winners)
    return out
=== right: by where
def vjp_max(g, x):
    z = x.max(axis=1, keepdims=True)
    count = np.count_nonzero(x == z, axis=1)
    return np.where(x == z, g.reshape(-1, 1) / count.reshape(-1, 1), 0)
=== right: counts the equal ones of a sorted row
def vjp_max(g, x):
    out = np.zeros(x.shape)
    for i in range(x.shape[0]):
        values, places, counts = np.unique(x[i], return_inverse=True, return_counts=True)
        out[i, np.flatnonzero(places == len(values) - 1)] = g[i] / counts[-1]
    return out
"""
