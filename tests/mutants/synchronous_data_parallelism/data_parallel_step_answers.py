ANSWERS = r"""
=== parts
alone: one rank: the three lines
even: the serial run's steps, p divides the minibatch
ragged: the serial run's steps, uneven shards and ranks without samples
one: one all-reduce of d numbers, and nothing else
bits: the same weights on all ranks, to the bit
kept: the arguments stay as they are
=== base
def data_parallel_step(comm, w, v, x, y, total, lr, momentum, weight_decay):
    g = len(x) / total * mean_gradient(w, x, y) if len(x) else np.zeros_like(w)
    comm.all_reduce(g)
    v = momentum * v + g + weight_decay * w
    return w - lr * v, v
=== wrong: mean of the ranks' means :: ragged :: This is a mean of the ranks' means
-    g = len(x) / total * mean_gradient(w, x, y) if len(x) else np.zeros_like(w)
-    comm.all_reduce(g)
+    g = mean_gradient(w, x, y) if len(x) else np.zeros_like(w)
+    comm.all_reduce(g, op="mean")
=== wrong: the sum is made and not used :: even, ragged, one, bits :: nothing was all-reduced
+    g = mean_gradient(w, x, y) if len(x) else np.zeros_like(w)
+    comm.all_reduce(g.copy())
=== wrong: sum instead of mean: normalised by n, not by kn :: even, ragged
:: the serial run divides by the whole minibatch
-    g = len(x) / total * mean_gradient(w, x, y) if len(x) else np.zeros_like(w)
+    g = mean_gradient(w, x, y) if len(x) else np.zeros_like(w)
=== wrong: sum over all samples :: alone, even, ragged :: divide by `total`
+    g = len(x) * mean_gradient(w, x, y) if len(x) else np.zeros_like(w)
=== wrong: the gradient of no samples :: ragged :: no sample, so there is no mean :: raised
+    g = len(x) / total * mean_gradient(w, x, y)
=== wrong: weight decay once for every rank :: even, ragged :: Weight decay came in once for every rank
+    g = weight_decay * w + len(x) / total * mean_gradient(w, x, y) if len(x) else np.zeros_like(w)
-    v = momentum * v + g + weight_decay * w
+    v = momentum * v + g
=== wrong: no weight decay :: alone, even, ragged :: Weight decay is missing
-    v = momentum * v + g + weight_decay * w
+    v = momentum * v + g
=== wrong: momentum and weight decay by heart :: alone, even, ragged :: expected
+    v = 0.9 * v + g + 0.05 * w
=== wrong: momentum without correction: the velocity has the learning rate in it
:: alone, even, ragged :: momentum correction
-    v = momentum * v + g + weight_decay * w
-    return w - lr * v, v
+    v = momentum * v + lr * (g + weight_decay * w)
+    return w - v, v
=== wrong: in place, into the caller's arrays :: kept :: the caller's w was changed
+    v *= momentum
+    v += g + weight_decay * w
+    w -= lr * v
+    return w, v
=== wrong: decoupled weight decay :: alone, even, ragged :: Weight decay is to go through the velocity
+    v = momentum * v + g
+    return w - lr * v - lr * weight_decay * w, v
=== wrong: the velocities are added up :: even, ragged :: The velocities of all ranks were added
-    comm.all_reduce(g)
-    v = momentum * v + g + weight_decay * w
+    v = momentum * v + g + weight_decay * w / comm.size
+    comm.all_reduce(v)
=== wrong: the weights are averaged, each velocity is left as it was :: even, ragged, bits
:: were the weights averaged
def data_parallel_step(comm, w, v, x, y, total, lr, momentum, weight_decay):
    g = comm.size * len(x) / total * mean_gradient(w, x, y) if len(x) else np.zeros_like(w)
    v = momentum * v + g + weight_decay * w
    w = w - lr * v
    return comm.all_reduce(w, op="mean"), v
=== wrong: rank 0 updates and broadcasts the weights :: one :: got comm.broadcast
def data_parallel_step(comm, w, v, x, y, total, lr, momentum, weight_decay):
    g = len(x) / total * mean_gradient(w, x, y) if len(x) else np.zeros_like(w)
    comm.reduce(g, dst=0)
    w, v = w.copy(), v.copy()
    if comm.rank == 0:
        v = momentum * v + g + weight_decay * w
        w = w - lr * v
    comm.broadcast(w)
    comm.broadcast(v)
    return w, v
=== wrong: two all-reduces: the gradient, and the number of samples :: one :: `total` is an argument
     comm.all_reduce(g)
+    g = g * total / comm.all_reduce(np.array([float(len(x))]))[0]
=== wrong: a rank without samples takes no part :: ragged :: had returned :: stuck
 def data_parallel_step(comm, w, v, x, y, total, lr, momentum, weight_decay):
+    if len(x) == 0:
+        return w, v
=== wrong: float32 on the way :: alone, even, ragged, one :: to float32 perhaps
-    comm.all_reduce(g)
+    g = comm.all_reduce(g.astype(np.float32)).astype(float)
=== wrong: all gradients are gathered, and added up with the own one first :: one, bits :: got comm.all_gather
+    every = comm.all_gather(g)
+    g = every[comm.rank].copy()
+    for i in range(1, comm.size):
+        g += every[(comm.rank + i) % comm.size]
=== wrong: returns the weights alone :: all :: expected (w, v)
-    return w - lr * v, v
+    return w - lr * v
=== wrong: an all-reduce, and no training :: all :: The weights are as they were
def data_parallel_step(comm, w, v, *rest):
    comm.all_reduce(np.zeros_like(w))
    return w, v
=== right: a mean of the ranks with weights p len(x) / total; weight decay goes in before it, once on average
def data_parallel_step(comm, w, v, x, y, total, lr, momentum, weight_decay):
    g = weight_decay * w
    if len(x):
        g += comm.size * len(x) / total * mean_gradient(w, x, y)
    g = comm.all_reduce(g, op="mean", algorithm="ring")
    new_v = momentum * v + g
    return w - lr * new_v, new_v
=== right: the sum over the samples, asynchronously; its own gradient formula
def data_parallel_step(comm, w, v, x, y, total, lr, momentum, weight_decay):
    g = x.T @ (1 / (1 + np.exp(-(x @ w))) - y)
    comm.all_reduce(g, async_op=True).wait()
    v = momentum * v + (g / total + weight_decay * w)
    return [w - lr * v, v]
"""
