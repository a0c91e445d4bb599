ANSWERS = r"""
=== parts
compute: compute
tensor: the all-reduces along tp
handover: what stages hand over
bubble: the bubble, with all that a micro-batch takes
data: the all-reduce of the gradients along dp
links: which groups are within a node
=== base
def step_time(plan, batch, model, cluster):
    dp, pp, tp, b = plan
    L, h, s = model.layers, model.width, model.context
    m = batch // (dp * b)
    layers = L // pp
    weights = layers * 12 * h * h / tp
    nbytes = 2 * b * s * h
    def link(apart, q):
        return cluster.inside if cluster.per_node % (apart * q) == 0 else cluster.between
    def ring(q, n, apart):
        alpha, beta = link(apart, q)
        return 2 * (q - 1) * (alpha + n / q * beta)
    compute = m * (2 + 4) * weights * b * s / cluster.flops
    tensor = m * layers * 4 * ring(tp, nbytes, 1)
    handover = 0
    if pp > 1:
        alpha, beta = link(tp, pp)
        handover = m * 2 * (alpha + nbytes * beta)
    bubble = (pp - 1) * (compute + tensor + handover) / m
    data = ring(dp, 2 * weights, tp * pp)
    return compute, tensor, handover, bubble, data
=== wrong: forward only :: compute, bubble, links :: both together are three times forward
-    compute = m * (2 + 4) * weights * b * s / cluster.flops
+    compute = m * 2 * weights * b * s / cluster.flops
=== wrong: backward as long as forward :: compute, bubble, links :: Backward takes twice as long as forward
+    compute = m * 4 * weights * b * s / cluster.flops
=== wrong: one operation for each weight :: compute, bubble, links :: a multiplication and an addition
+    compute = m * 3 * weights * b * s / cluster.flops
=== wrong: the whole minibatch on each replica :: compute, bubble, links :: its own share of the minibatch
+    compute = 6 * weights * batch * s / cluster.flops
=== wrong: samples for tokens :: compute, bubble, links :: Each token of a sample
+    compute = m * 6 * weights * b / cluster.flops
=== wrong: one micro-batch :: compute, bubble, links :: A step has m micro-batches
+    compute = 6 * weights * b * s / cluster.flops
=== wrong: all layers on each stage :: compute, tensor, bubble, data, links :: A stage has L / pp layers
-    layers = L // pp
+    layers = L
=== wrong: whole layers on each shard :: compute, bubble, data, links :: 1 / tp
-    weights = layers * 12 * h * h / tp
+    weights = layers * 12 * h * h
=== wrong: two all-reduces a layer :: tensor, bubble, links :: two all-reduces in backward, too
-    tensor = m * layers * 4 * ring(tp, nbytes, 1)
+    tensor = m * layers * 2 * ring(tp, nbytes, 1)
=== wrong: an all-reduce for each stage :: tensor, bubble, links :: for each layer
+    tensor = m * 4 * ring(tp, nbytes, 1)
=== wrong: all micro-batches in one all-reduce :: tensor, bubble, links :: of the activations of a micro-batch
+    tensor = layers * 4 * ring(tp, m * nbytes, 1)
=== wrong: gradients along tp :: tensor, bubble, links :: of activations, not of gradients
+    tensor = m * layers * 4 * ring(tp, 2 * weights, 1)
=== wrong: tp ranks are pp apart :: links :: Which link does this group use
-    tensor = m * layers * 4 * ring(tp, nbytes, 1)
+    tensor = m * layers * 4 * ring(tp, nbytes, pp)
-        alpha, beta = link(tp, pp)
+        alpha, beta = link(1, pp)
=== wrong: tensor without alpha and (q - 1) / q :: tensor, bubble, data, links :: expected
-        return 2 * (q - 1) * (alpha + n / q * beta)
+        return 2 * n * beta * (q > 1)
=== wrong: (q - 1) / q forgotten :: tensor, bubble, data, links :: nothing is sent to oneself
+        return 2 * q * (alpha + n / q * beta)
=== wrong: whole arrays round the ring :: tensor, bubble, data, links :: nbytes / q bytes
+        return 2 * (q - 1) * (alpha + n * beta)
=== wrong: one half of the ring :: tensor, bubble, data, links :: expected
+        return (q - 1) * (alpha + n / q * beta)
=== wrong: alpha once :: tensor, bubble, data, links :: alpha is the time of each message
+        return alpha * (q > 1) + 2 * (q - 1) * n / q * beta
=== wrong: a tree :: tensor, bubble, data, links :: expected
+        return 2 * np.ceil(np.log2(q)) * (alpha + n * beta)
=== wrong: 4 bytes :: tensor, handover, bubble, links :: A number has 2 bytes
-    nbytes = 2 * b * s * h
+    nbytes = 4 * b * s * h
=== wrong: one number for each token :: tensor, handover, bubble, links :: Every token has h numbers
+    nbytes = 2 * b * s
=== wrong: handed over in forward only :: handover, bubble, links :: in backward
-        handover = m * 2 * (alpha + nbytes * beta)
+        handover = m * (alpha + nbytes * beta)
=== wrong: one micro-batch handed over :: handover, bubble, links :: Every micro-batch is handed over
+        handover = 2 * (alpha + nbytes * beta)
=== wrong: over every border in turn :: handover, bubble, links :: used at the same time
+        handover = (pp - 1) * m * 2 * (alpha + nbytes * beta)
=== wrong: slices are handed over :: handover, bubble, links :: all tp ranks have them
+        handover = m * 2 * (alpha + nbytes / tp * beta)
=== wrong: one long message :: handover, bubble, links :: alpha counts for each
+        handover = 2 * (alpha + m * nbytes * beta)
=== wrong: handed over without a pipeline :: handover, links :: Without a pipeline nothing is handed over
-    if pp > 1:
+    if True:
=== wrong: pp bubbles :: bubble, links :: not pp
-    bubble = (pp - 1) * (compute + tensor + handover) / m
+    bubble = pp * (compute + tensor + handover) / m
=== wrong: the bubble over the total :: bubble, links :: here it was multiplied by the time without it
+    bubble = (pp - 1) / (m + pp - 1) * (compute + tensor + handover)
=== wrong: a share, not seconds :: bubble, links :: the bubble is in seconds
+    bubble = (pp - 1) / (m + pp - 1)
=== wrong: the bubble of compute only :: bubble, links :: its hand-over
+    bubble = (pp - 1) * compute / m
=== wrong: the bubble without the hand-over :: bubble, links :: the time of its hand-over
+    bubble = (pp - 1) * (compute + tensor) / m
=== wrong: the bubble of all micro-batches :: bubble, links :: not of all m
+    bubble = (pp - 1) * (compute + tensor + handover)
=== wrong: the bubble of one forward :: bubble, links :: idle in forward and in backward
+    bubble = (pp - 1) * (compute + tensor + handover) / m / 3
=== wrong: the bubble with the gradients :: bubble, links :: not a part of a micro-batch
-    bubble = (pp - 1) * (compute + tensor + handover) / m
-    data = ring(dp, 2 * weights, tp * pp)
+    data = ring(dp, 2 * weights, tp * pp)
+    bubble = (pp - 1) * (compute + tensor + handover + data) / m
=== wrong: the gradients of all parameters :: data, links :: its own stage and its own shard
-    data = ring(dp, 2 * weights, tp * pp)
+    data = ring(dp, 2 * L * 12 * h * h, tp * pp)
=== wrong: the gradients of all stages :: data, links :: its own stage only
+    data = ring(dp, 2 * weights * pp, tp * pp)
=== wrong: the gradients of all shards :: data, links :: its own shard only
+    data = ring(dp, 2 * weights * tp, tp * pp)
=== wrong: all-reduced for each micro-batch :: data, links :: added up first
+    data = m * ring(dp, 2 * weights, tp * pp)
=== wrong: over all ranks :: data, links :: only the dp replicas
+    data = ring(dp * pp * tp, 2 * weights, 1)
=== wrong: dp ranks are neighbours :: links :: Which link does this group use
+    data = ring(dp, 2 * weights, 1)
=== wrong: 4 bytes of a gradient :: data, links :: A number has 2 bytes
+    data = ring(dp, 4 * weights, tp * pp)
=== wrong: everything between nodes :: tensor, handover, bubble, data, links :: Which link does this group use
-        return cluster.inside if cluster.per_node % (apart * q) == 0 else cluster.between
+        return cluster.between
=== wrong: everything within a node :: tensor, handover, bubble, data, links :: Which link does this group use
+        return cluster.inside
=== wrong: what is at most as large as a node :: links :: Which link does this group use
+        return cluster.inside if apart * q <= cluster.per_node else cluster.between
=== wrong: the size of the group only :: links :: Which link does this group use
+        return cluster.inside if cluster.per_node % q == 0 else cluster.between
=== wrong: the total :: all :: expected five numbers
-    return compute, tensor, handover, bubble, data
+    return compute + tensor + handover + bubble + data
=== wrong: in milliseconds :: compute, tensor, handover, bubble, data, links :: expected
+    return tuple(1000 * each for each in (compute, tensor, handover, bubble, data))
=== wrong: another order :: handover, bubble, links :: expected
+    return compute, tensor, bubble, handover, data
=== right: the time of a micro-batch first, an array, ranks listed to see whether they share a node
def step_time(plan, batch, model, cluster):
    dp, pp, tp, b = plan
    extents, aparts = {"dp": dp, "pp": pp, "tp": tp}, {"tp": 1, "pp": tp, "dp": tp * pp}
    def seconds(axis, size):
        ranks = np.arange(cluster.ranks).reshape(dp, pp, tp)
        groups = np.moveaxis(ranks, "dp pp tp".split().index(axis), -1).reshape(-1, extents[axis])
        shared = cluster.per_node % (aparts[axis] * extents[axis]) == 0
        if shared:
            assert all(len(set(group // cluster.per_node)) == 1 for group in groups)
        alpha, beta = cluster.inside if shared else cluster.between
        return alpha + size * beta
    tokens = b * model.context
    W = 12 * model.width**2 * (model.layers // pp) / tp
    one = np.array([
        6 * W * tokens / cluster.flops,
        8 * (tp - 1) * (model.layers // pp) * seconds("tp", 2 * tokens * model.width / tp),
        2 * seconds("pp", 2 * tokens * model.width) if pp != 1 else 0,
    ])
    m = batch / dp / b
    return np.array([*(one * m), one.sum() * (pp - 1), 2 * (dp - 1) * seconds("dp", 2 * W / dp)])
=== right: reduce-scatter and all-gather apart, a list
def step_time(plan, batch, model, cluster):
    dp, pp, tp, b = plan
    micro_batches = range(batch // dp // b)
    stage = range(model.layers // pp)
    sent = model.width * model.context * b * 2.0
    def pick(apart, size):
        whole, rest = divmod(cluster.per_node, apart * size)
        return (cluster.between if rest else cluster.inside) if whole else cluster.between
    def pass_of_ring(size, n, link):
        return sum(link[0] + n / size * link[1] for _ in range(size - 1))
    gradient = 2 * 12 * model.width * model.width * len(stage) / tp
    compute = tensor = handover = 0.0
    for _ in micro_batches:
        compute += 3 * gradient * b * model.context / cluster.flops
        for _ in stage:
            tensor += 8 * pass_of_ring(tp, sent, pick(1, tp))
        handover += (pp > 1) * 2 * (pick(tp, pp)[0] + sent * pick(tp, pp)[1])
    each = (compute + tensor + handover) / len(micro_batches)
    return [compute, tensor, handover, each * (pp - 1), 2 * pass_of_ring(dp, gradient, pick(pp * tp, dp))]
"""
