ANSWERS = r"""
=== parts
weights: the weights after each step are those of one node
ragged: P not divisible by N, fewer numbers than ranks
clipped: clipped by the norm of the whole gradient
messages: one reduce-scatter, one all-gather, and for clipping one number
state: no rank has optimizer state but that of its range
=== base
def flat(arrays):
    return np.concatenate([each.ravel() for each in arrays])

def shard_optimizer(comm, weights, gradients, state, update, max_norm):
    N, r = comm.size, comm.rank
    g = comm.reduce_scatter(flat(gradients))
    g /= N
    if max_norm is not None:
        square = comm.all_reduce(float(g @ g))
        norm = np.sqrt(square)
        if norm > max_norm:
            g *= max_norm / norm
    own = np.array_split(flat(weights), N)[r]
    new, state = update(own, g, state)
    vector = np.concatenate(comm.all_gather(new))
    result, start = [], 0
    for w in weights:
        result.append(vector[start : start + w.size].reshape(w.shape))
        start += w.size
    return result, state
=== wrong: no sharding at all: all-reduce, and every rank updates everything :: messages, state
:: An all-reduce of the gradient brings every rank all of it
def shard_optimizer(comm, weights, gradients, state, update, max_norm):
    g = np.concatenate([each.ravel() for each in gradients])
    comm.all_reduce(g)
    g /= comm.size
    if max_norm is not None:
        norm = np.linalg.norm(g)
        if norm > max_norm:
            g *= max_norm / norm
    vector, state = update(np.concatenate([each.ravel() for each in weights]), g, state)
    result, start = [], 0
    for w in weights:
        result.append(vector[start : start + w.size].reshape(w.shape))
        start += w.size
    return result, state
=== wrong: all-reduce, then slice :: messages :: An all-reduce of the gradient brings every rank all of it
-    g = comm.reduce_scatter(flat(gradients))
+    g = flat(gradients)
+    comm.all_reduce(g)
+    g = np.array_split(g, N)[r].copy()
=== wrong: all gradients are gathered :: messages :: N times as much as their sum
+    g = sum(comm.all_gather(flat(gradients)))
+    g = np.array_split(g, N)[r].copy()
=== wrong: rank 0 collects and scatters :: messages :: makes that rank the bottleneck
+    total = comm.reduce(flat(gradients))
+    g = np.array(comm.scatter(np.array_split(total, N) if r == 0 else None))
=== wrong: a reduce-scatter for each parameter, whose chunks are not the range :: all :: but g has :: raised
+    g = np.concatenate([comm.reduce_scatter(each.ravel()) for each in gradients])
=== wrong: the gradient has half as many bytes :: weights, ragged, clipped, messages
:: the new weights, as one vector: expected
+    g = comm.reduce_scatter(flat(gradients).astype(np.float32)).astype(float)
=== wrong: padded to a multiple of N :: ragged, clipped, messages, state :: but g has :: raised
+    P = sum(w.size for w in weights)
+    g = comm.reduce_scatter(np.pad(flat(gradients), (0, -P % N)))
=== wrong: padded, weights and gradient :: messages, state :: without padding
+    P = sum(w.size for w in weights)
+    g = comm.reduce_scatter(np.pad(flat(gradients), (0, -P % N)))
-    own = np.array_split(flat(weights), N)[r]
+    own = np.array_split(np.pad(flat(weights), (0, -P % N)), N)[r]
=== wrong: the sum, not the mean :: weights, ragged, clipped :: the mean over the ranks, not the sum
-    g /= N
+    pass
=== wrong: divided twice :: weights, ragged, clipped :: divided by N twice
+    g /= N**2
=== wrong: clipped before the division :: clipped :: divide by N before
+    g /= 1
-            g *= max_norm / norm
+            g *= max_norm / norm
+    g /= N
=== wrong: the state is not passed on :: weights, ragged, clipped :: The state of the step before is lost
-    new, state = update(own, g, state)
+    new, state = update(own, g, None)
=== wrong: the old state is returned :: weights, ragged, clipped, state :: The state of the step before is lost
+    new, _ = update(own, g, state)
=== wrong: the state is gathered, too :: messages, state :: got 2 comm.all_gather
+    new, state = update(own, g, state[r] if state else None)
+    state = comm.all_gather(state)
=== wrong: the state is padded with that of the others :: state :: and no other array
+    new, state = update(own, g, state[1] if state else None)
+    state = [np.zeros(sum(w.size for w in weights)), state]
=== wrong: the state has a copy of all weights, as bytes :: state :: and no other array
+    new, state = update(own, g, state[1] if state else None)
+    state = [flat(weights).tobytes(), state]
=== wrong: updates everything with its own range's gradient in place :: state :: this rank's range has :: raised
+    whole = np.zeros(sum(w.size for w in weights))
+    start = sum(len(each) for each in np.array_split(whole, N)[:r])
+    whole[start : start + len(g)] = g
+    vector, state = update(flat(weights), whole, state)
+    new = vector[start : start + len(g)]
=== wrong: updates the range of each rank in turn :: state :: update was given :: raised
+    state, at = dict(state or {}), 0
+    for rank, part in enumerate(np.array_split(flat(weights), N)):
+        after, state[rank] = update(part, g if rank == r else np.zeros(len(part)), state.get(rank))
+        new = after if rank == r else locals().get("new")
=== wrong: nothing is gathered :: weights, ragged, clipped, messages :: Only this rank's range is new
-    vector = np.concatenate(comm.all_gather(new))
+    parts = np.array_split(flat(weights), N)
+    parts[r] = new
+    vector = np.concatenate(parts)
=== wrong: each rank broadcasts its range :: messages :: One all-gather brings every rank all ranges
+    vector = np.concatenate([comm.broadcast(new if root == r else None, root) for root in range(N)])
=== wrong: whole vectors are gathered :: messages :: Every rank gives its own range
+    parts = np.array_split(flat(weights), N)
+    parts[r] = new
+    whole = comm.all_gather(np.concatenate(parts))
+    vector = np.concatenate([np.array_split(each, N)[i] for i, each in enumerate(whole)])
=== wrong: a barrier before the all-gather :: messages :: A collective waits for what it needs
+    comm.barrier()
+    vector = np.concatenate(comm.all_gather(new))
=== wrong: each range clipped by its own norm :: clipped, messages :: Each range is clipped by its own norm
-        square = comm.all_reduce(float(g @ g))
+        square = float(g @ g)
=== wrong: ranks without numbers do not take part in the norm :: clipped :: make different collective calls :: raised
+        square = comm.all_reduce(float(g @ g)) if len(g) else 0.0
=== wrong: the whole gradient goes round for its norm :: messages :: those of one number
+        whole = np.zeros(sum(w.size for w in weights))
+        at = sum(len(each) for each in np.array_split(whole, N)[:r])
+        whole[at : at + len(g)] = g
+        comm.all_reduce(whole)
+        square = float(whole @ whole)
=== wrong: a number of each rank is gathered :: messages :: one comm.all_reduce
+        square = sum(comm.all_gather(float(g @ g)))
=== wrong: the ranks' own gradients are clipped :: clipped, messages :: clip the mean
-    g = comm.reduce_scatter(flat(gradients))
-    g /= N
-    if max_norm is not None:
-        square = comm.all_reduce(float(g @ g))
-        norm = np.sqrt(square)
-        if norm > max_norm:
-            g *= max_norm / norm
+    whole = flat(gradients)
+    if max_norm is not None:
+        whole *= min(1, max_norm / max(np.linalg.norm(whole), 1e-300))
+    g = comm.reduce_scatter(whole) / N
=== wrong: never clipped :: clipped, messages :: The gradient is not clipped
-        square = comm.all_reduce(float(g @ g))
-        norm = np.sqrt(square)
-        if norm > max_norm:
-            g *= max_norm / norm
+        pass
=== wrong: always scaled to max_norm :: clipped :: A gradient within the bound stays as it is
-        if norm > max_norm:
+        if norm > 0:
=== wrong: divided by a norm that may be 0 :: clipped, messages :: ZeroDivisionError :: raised
-        norm = np.sqrt(square)
-        if norm > max_norm:
-            g *= max_norm / norm
+        norm = float(np.sqrt(square))
+        g *= min(1.0, max_norm / norm)
=== wrong: a unit vector times its new length, also without a gradient :: clipped :: got nan
-            g *= max_norm / norm
+            pass
+        with np.errstate(invalid="ignore"):
+            g = g / norm * min(norm, max_norm)
=== wrong: without the root :: clipped :: the root of the sum of squares
-        norm = np.sqrt(square)
+        norm = square
=== wrong: the sum of norms :: clipped :: The squares of the ranks' norms
-        square = comm.all_reduce(float(g @ g))
-        norm = np.sqrt(square)
+        norm = comm.all_reduce(float(np.linalg.norm(g)))
=== wrong: numbers are clipped, not the norm :: clipped :: clipping by the norm keeps the direction
-        if norm > max_norm:
-            g *= max_norm / norm
+        np.clip(g, -max_norm, max_norm, out=g)
=== wrong: one vector is returned :: weights, ragged, clipped :: in the shapes of the parameters
-    return result, state
+    return vector, state
=== wrong: only the weights :: all :: expected a pair (weights, state)
+    return result
=== wrong: the caller's weights are overwritten :: weights :: changed its argument weights
+    for w, new in zip(weights, result): w[...] = new
+    return weights, state
=== wrong: the shapes are lost :: weights, ragged, clipped :: expected an array of shape
-        result.append(vector[start : start + w.size].reshape(w.shape))
+        result.append(vector[start : start + w.size])
=== wrong: column by column :: weights, ragged, clipped :: expected
-    return np.concatenate([each.ravel() for each in arrays])
+    return np.concatenate([each.ravel(order="F") for each in arrays])
=== wrong: whole parameters for each rank :: all :: expected
-    own = np.array_split(flat(weights), N)[r]
+    own = flat(weights[r::N]) if weights[r::N] else np.zeros(0)
+    g = np.resize(g, own.shape)
=== wrong: ranks without numbers stay away :: ragged, clipped, state ::  :: stuck
+    own = np.array_split(flat(weights), N)[r]
+    if not own.size: return list(weights), state
=== wrong: ranges of P // N numbers, and what is left over is forgotten :: ragged, clipped, messages, state
:: but g has :: raised
+    P = sum(w.size for w in weights)
+    own = flat(weights)[r * (P // N) : (r + 1) * (P // N)]
=== right: range by range of each parameter, so that update is called for pieces
def shard_optimizer(comm, weights, gradients, state, update, max_norm):
    P = sum(w.size for w in weights)
    lengths = [P // comm.size + (r < P % comm.size) for r in range(comm.size)]
    first = sum(lengths[: comm.rank])
    last = first + lengths[comm.rank]
    buffer = np.empty(P)
    np.concatenate([g.reshape(-1) for g in gradients], out=buffer)
    mean = comm.reduce_scatter(buffer, "mean")
    if max_norm is not None:
        mean = mean * min(1.0, max_norm / max(comm.all_reduce(np.dot(mean, mean)) ** 0.5, 1e-300))
    new, states, at, done = [], {}, 0, 0
    for number, w in enumerate(weights):
        a, b = max(first, at), min(last, at + w.size)
        if a < b:
            piece, states[number] = update(
                w.reshape(-1)[a - at : b - at], mean[done : done + b - a], (state or {}).get(number)
            )
            new.append(piece)
            done += b - a
        at += w.size
    whole = np.concatenate(comm.all_gather(np.concatenate([*new, np.zeros(0)])))
    cuts = np.cumsum([0] + [w.size for w in weights])
    return [whole[a:b].reshape(w.shape) for a, b, w in zip(cuts, cuts[1:], weights)], states
=== right: a state with more than that of update: its range, and the norm of each step
def shard_optimizer(comm, weights, gradients, state, update, max_norm):
    state = state or {"own": None, "norms": {}}
    g = comm.reduce_scatter(np.concatenate([each.ravel() for each in gradients]), "mean")
    norm = None if max_norm is None else float(np.sqrt(comm.all_reduce(np.sum(g**2))))
    if norm and norm > max_norm:
        g = g * max_norm / norm
    w = np.concatenate([each.ravel() for each in weights])
    start = comm.rank * (w.size // comm.size) + min(comm.rank, w.size % comm.size)
    w, own = update(w[start : start + g.size], g, state["own"])
    cuts = np.cumsum([each.size for each in weights])
    parts = np.split(np.concatenate(comm.all_gather(w)), cuts[:-1])
    state = {"own": own, "norms": {**state["norms"], str(len(state["norms"])): norm}, "range": (start, start + g.size)}
    return tuple(part.reshape(each.shape) for part, each in zip(parts, weights)), state
=== right: no update of an empty range, asynchronous collectives, arrays of one number
def shard_optimizer(comm, weights, gradients, state, update, max_norm):
    work = comm.reduce_scatter(np.concatenate([g.flatten() for g in gradients]), async_op=True)
    own = np.array_split(np.concatenate([w.flatten() for w in weights]), comm.size)[comm.rank].copy()
    g = work.wait() / comm.size
    if max_norm:
        total = np.array([np.sum(g**2)])
        comm.all_reduce(total)
        g = g * (max_norm / total[0] ** 0.5 if total[0] > max_norm**2 else 1.0)
    if own.size:
        own, state = update(own, g, state)
    pieces = comm.all_gather(own, async_op=True).wait()
    vector = np.hstack(pieces)
    out = tuple(np.empty_like(w) for w in weights)
    for w in out:
        w.ravel()[:] = vector[: w.size]
        vector = vector[w.size :]
    return out, state
"""
