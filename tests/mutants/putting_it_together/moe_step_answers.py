ANSWERS = r"""
=== parts
y: y on each rank is that of one node
gradients: the gradients of x and of the gates
gw: the gradients of this rank's experts
messages: four all-to-alls, each with the slots of the other ranks' experts
=== base
def moe_step(comm, x, slots, gates, experts, capacity, target):
    p, n, d = comm.size, len(experts), x.shape[1]
    kept = slots >= 0
    tokens, places, gate = np.nonzero(kept)[0], slots[kept], gates[kept][:, None]

    def to_experts(rows):
        buffer = np.zeros((p * n * capacity, d))
        buffer[places] = rows
        received = comm.all_to_all(list(buffer.reshape(p, n, capacity, d)))
        return np.concatenate(received, axis=1)

    def to_tokens(rows):
        received = comm.all_to_all([np.array(share) for share in np.split(rows, p, axis=1)])
        return np.concatenate(received).reshape(-1, d)[places]

    read = to_experts(x[tokens])
    made = np.stack([expert(experts[i], read[i]) for i in range(n)])
    outputs = to_tokens(made)
    y = x.copy()
    np.add.at(y, tokens, gate * outputs)
    g = y - target
    ggates = np.zeros(gates.shape)
    ggates[kept] = np.sum(g[tokens] * outputs, axis=1)
    came = to_experts(gate * g[tokens])
    back, gw = zip(*[expert_gradients(experts[i], read[i], came[i]) for i in range(n)])
    gw = np.stack(gw)
    gx = g.copy()
    np.add.at(gx, tokens, to_tokens(np.stack(back)))
    return y, gx, ggates, gw
=== wrong: all tokens are gathered :: messages :: An all-gather brings every rank the tokens of all others
-        received = comm.all_to_all(list(buffer.reshape(p, n, capacity, d)))
+        received = [each.reshape(p, n, capacity, d)[comm.rank] for each in comm.all_gather(buffer)]
=== wrong: the slots of all experts go to every rank :: messages :: Every rank gets the slots of all experts
+        received = [each.reshape(p, n, capacity, d)[comm.rank] for each in comm.all_to_all([buffer] * p)]
=== wrong: no empty slots at the end :: messages :: Empty slots are sent, too
+        blocks = buffer.reshape(p, n * capacity, d)
+        sent = [block[: 1 + np.max(np.nonzero(block.any(axis=1))[0], initial=0)] for block in blocks]
+        received = [np.pad(rows, ((0, n * capacity - len(rows)), (0, 0))).reshape(n, capacity, d)
+                    for rows in comm.all_to_all(sent)]
=== wrong: one message to each rank :: messages :: expected four comm.all_to_all and nothing else
+        sent = [comm.isend(np.array(block), r) for r, block in enumerate(buffer.reshape(p, n, capacity, d))
+                if r != comm.rank]
+        received = [buffer.reshape(p, n, capacity, d)[r] if r == comm.rank else comm.recv(r) for r in range(p)]
+        [each.wait() for each in sent]
=== wrong: in 32 bits :: y, gradients, gw, messages :: expected
+        received = comm.all_to_all(list(buffer.reshape(p, n, capacity, d).astype(np.float32)))
+        received = [each.astype(float) for each in received]
=== wrong: experts of this rank only :: y, gradients, gw, messages :: Tokens met experts of their own rank only
+        received = list(buffer.reshape(p, n, capacity, d))
-        received = comm.all_to_all([np.array(share) for share in np.split(rows, p, axis=1)])
+        received = [np.array(share) for share in np.split(rows, p, axis=1)]
=== wrong: the experts are dealt in turn :: y, gradients, gw, messages :: y: expected
+        received = comm.all_to_all([np.array(buffer.reshape(n, p, capacity, d)[:, r]) for r in range(p)])
=== wrong: outputs come back with an all-reduce :: messages :: not a sum over all ranks
-        received = comm.all_to_all([np.array(share) for share in np.split(rows, p, axis=1)])
-        return np.concatenate(received).reshape(-1, d)[places]
+        whole = np.zeros((p, p * n, capacity, d))
+        for r, share in enumerate(np.split(rows, p, axis=1)):
+            whole[r, comm.rank * n : (comm.rank + 1) * n] = share
+        comm.all_reduce(whole)
+        return whole[comm.rank].reshape(-1, d)[places]
=== wrong: an all-to-all for each choice :: messages :: both choices of a token fit in one all-to-all
def moe_step(comm, x, slots, gates, experts, capacity, target):
    p, n, d = comm.size, len(experts), x.shape[1]
    k = slots.shape[1]
    kept = [slots[:, j] >= 0 for j in range(k)]
    def there(rows):
        total = 0
        for j in range(k):
            buffer = np.zeros((p * n * capacity, d))
            buffer[slots[kept[j], j]] = rows[j]
            total = total + np.concatenate(comm.all_to_all(list(buffer.reshape(p, n, capacity, d))), axis=1)
        return total
    def back(rows):
        result = []
        for j in range(k):
            came = comm.all_to_all([np.array(share) for share in np.split(rows, p, axis=1)])
            result.append(np.concatenate(came).reshape(-1, d)[slots[kept[j], j]])
        return result
    read = there([x[kept[j]] for j in range(k)])
    outputs = back(np.stack([expert(w, rows) for w, rows in zip(experts, read)]))
    y = x.copy()
    for j in range(k):
        y[kept[j]] += gates[kept[j], j][:, None] * outputs[j]
    g, ggates = y - target, np.zeros(gates.shape)
    for j in range(k):
        ggates[kept[j], j] = (g[kept[j]] * outputs[j]).sum(axis=1)
    came = there([gates[kept[j], j][:, None] * g[kept[j]] for j in range(k)])
    both = [expert_gradients(w, rows, grad) for w, rows, grad in zip(experts, read, came)]
    gx = g.copy()
    for j, rows in enumerate(back(np.stack([a for a, _ in both]))):
        gx[kept[j]] += rows
    return y, gx, ggates, np.stack([b for _, b in both])
=== wrong: no skip connection :: y, gradients, gw, messages :: x itself is missing
-    y = x.copy()
+    y = np.zeros(x.shape)
=== wrong: dropped tokens are zero :: y, gradients, messages :: keeps its x
+    y = np.where(kept.any(axis=1)[:, None], x, 0.0)
=== wrong: a barrier :: messages :: waits for what it needs
+    comm.barrier()
+    y = x.copy()
=== wrong: x is changed :: y :: changed its argument x
+    y = x
-    return y, gx, ggates, gw
+    return y.copy(), gx, ggates, gw
=== wrong: the gradient of x without that of y itself :: gradients, messages :: The gradient of y itself is missing
-    gx = g.copy()
+    gx = np.zeros(x.shape)
=== wrong: dropped tokens have no gradient :: gradients, messages :: has the gradient of y, not 0
+    gx = np.where(kept.any(axis=1)[:, None], g, 0.0)
=== wrong: outputs without the gates :: y, gradients, gw, messages :: multiplied by the gates
-    np.add.at(y, tokens, gate * outputs)
+    np.add.at(y, tokens, outputs)
=== wrong: only one choice of a token is added :: y, gradients, gw, messages :: y: expected
+    y[tokens] += gate * outputs
=== wrong: gradients without the gates :: gradients, gw, messages :: the gradient of y times the gate
-    came = to_experts(gate * g[tokens])
+    came = to_experts(g[tokens])
=== wrong: the gates' gradient has the gate :: gradients :: does not contain the gate
-    ggates[kept] = np.sum(g[tokens] * outputs, axis=1)
+    ggates[kept] = np.sum(g[tokens] * gate * outputs, axis=1)
=== wrong: the gates have no gradient :: gradients :: ggates
+    pass
=== wrong: the target's distance from x :: gradients, gw, messages :: gx
-    g = y - target
+    g = x - target
=== wrong: the sign of the gradient :: gradients, gw, messages :: gx
+    g = target - y
=== wrong: only the first choice :: y, gradients, gw, messages :: y: expected
-    kept = slots >= 0
+    slots, kept = slots.copy(), slots >= 0
+    slots[:, 1:], kept[:, 1:] = -1, False
=== wrong: -1 is the last slot :: y, gradients, gw, messages :: y: expected
+    kept = slots >= -1
=== wrong: a rank without tokens stays away :: y, gradients, gw, messages ::  :: stuck
+    if not len(x): return x.copy(), x.copy(), gates.copy(), np.zeros(experts.shape)
+    kept = slots >= 0
=== wrong: only one choice adds to the gradient :: gradients, messages :: gx: expected
-    np.add.at(gx, tokens, to_tokens(np.stack(back)))
+    gx[tokens] += to_tokens(np.stack(back))
=== wrong: what came is joined rank by rank :: y, gradients, gw, messages :: y: expected
-        return np.concatenate(received, axis=1)
+        return np.concatenate(received).reshape(n, p * capacity, d)
=== wrong: each expert reads the first rank's slots twice :: y, gradients, gw, messages :: y: expected
+        return np.concatenate([received[0]] * p, axis=1)
=== wrong: what came back is in another order :: y, gradients, gw, messages :: y: expected
-        return np.concatenate(received).reshape(-1, d)[places]
+        return np.concatenate(received, axis=1).reshape(-1, d)[places]
=== wrong: outputs in the order of the slots :: y, gradients, gw, messages :: y: expected
+        return np.concatenate(received).reshape(-1, d)[np.sort(places)]
=== wrong: all ranks' gradients are added once more :: gw, messages :: another sum or mean over ranks is wrong
-    gw = np.stack(gw)
+    gw = np.stack(gw) * p
=== wrong: gradients of experts are all-reduced as if they were replicas :: gw, messages :: gw: expected
+    gw = np.stack(gw)
+    comm.all_reduce(gw)
=== wrong: the mean over the ranks :: gw, messages :: sums, not means over the ranks
+    gw = np.stack(gw) / p
=== wrong: the first expert does everything :: y, gradients, gw, messages :: expected
-    made = np.stack([expert(experts[i], read[i]) for i in range(n)])
+    made = np.stack([expert(experts[0], read[i]) for i in range(n)])
=== wrong: gradients of the outputs at the outputs :: gradients, gw, messages :: gx: expected
-    back, gw = zip(*[expert_gradients(experts[i], read[i], came[i]) for i in range(n)])
+    back, gw = zip(*[expert_gradients(experts[i], made[i], came[i]) for i in range(n)])
=== wrong: without the gates' gradient :: all :: expected (y, gx, ggates, gw)
-    return y, gx, ggates, gw
+    return y, gx, gw
=== right: a loop over tokens, one list of what goes to each rank, tanh's slope from what the experts made
def moe_step(comm, x, slots, gates, experts, capacity, target):
    n, d = experts.shape[0], x.shape[1]
    share = n * capacity
    def there(value):
        parts = [np.zeros((share, d)) for _ in range(comm.size)]
        for t in range(slots.shape[0]):
            for j in range(slots.shape[1]):
                if slots[t, j] != -1:
                    parts[slots[t, j] // share][slots[t, j] % share] = value(t, j)
        return comm.all_to_all(parts)
    def back(parts):
        return comm.all_to_all(parts)
    def each(t):
        for j, s in enumerate(slots[t]):
            if s >= 0:
                yield j, s // share, s % share
    read = there(lambda t, j: x[t])
    expert_of = np.arange(share) // capacity
    made = [np.array([np.tanh(row @ experts[e, :d] + experts[e, d]) for e, row in zip(expert_of, rows)])
            for rows in read]
    outputs = back(made)
    y, ggates = np.array(x), np.zeros_like(gates)
    for t in range(len(x)):
        for j, r, s in each(t):
            y[t] = y[t] + gates[t, j] * outputs[r][s]
    g = y - target
    for t in range(len(x)):
        for j, r, s in each(t):
            ggates[t, j] = g[t] @ outputs[r][s]
    gw, inputs = np.zeros_like(experts), []
    for rows, out, grads in zip(read, made, there(lambda t, j: gates[t, j] * g[t])):
        inner = grads * (1 - out**2)
        for e, row, gradient in zip(expert_of, rows, inner):
            gw[e] += np.outer(np.append(row, 1.0), gradient)
        inputs.append(np.array([experts[e, :d] @ gradient for e, gradient in zip(expert_of, inner)]))
    came, gx = back(inputs), g.copy()
    for t in range(len(x)):
        for j, r, s in each(t):
            gx[t] += came[r][s]
    return y, gx, ggates, gw
=== right: matrices of zeros and ones as in GShard, asynchronous collectives
def moe_step(comm, x, slots, gates, experts, capacity, target):
    p, n, (T, d) = comm.size, len(experts), x.shape
    total = p * n * capacity
    dispatch = (slots[:, :, None] == np.arange(total)).astype(float)
    combine = np.einsum("tk,tks->ts", gates, dispatch)
    def exchange(blocks):
        return comm.all_to_all([np.ascontiguousarray(each) for each in blocks], async_op=True).wait()
    read = np.swapaxes(np.stack(exchange((dispatch.sum(axis=1).T @ x).reshape(p, n, capacity, d))), 0, 1)
    flat = read.reshape(n, p * capacity, d)
    out = np.tanh(flat @ experts[:, :d] + experts[:, d:])
    home = np.concatenate(exchange(np.swapaxes(out.reshape(n, p, capacity, d), 0, 1)), axis=0).reshape(total, d)
    y = x + combine @ home
    g = y - target
    inner = np.stack(exchange((combine.T @ g).reshape(p, n, capacity, d)))
    inner = np.swapaxes(inner, 0, 1).reshape(n, p * capacity, d) * (1 - out**2)
    gin = (inner @ np.swapaxes(experts[:, :d], 1, 2)).reshape(n, p, capacity, d)
    gx = g + dispatch.sum(axis=1) @ np.concatenate(exchange(np.swapaxes(gin, 0, 1))).reshape(total, d)
    gw = np.concatenate([np.swapaxes(flat, 1, 2) @ inner, inner.sum(axis=1, keepdims=True)], axis=1)
    return [y, gx, np.einsum("td,tks,sd->tk", g, dispatch, home), gw]
"""
