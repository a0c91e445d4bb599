ANSWERS = r"""
=== parts
between: the best minibatch lies between the limits
limits: limits: one node, a free network, little memory, a tiny B_c, two samples a node
=== base
def best_batch(cluster):
    c, p = cluster, cluster.nodes
    ring = 2 * (p - 1) * (c.alpha + c.nbytes / p * c.beta)
    best = (c.b_c * p * ring / c.seconds_per_sample) ** 0.5
    each = max(1, min(int(best / p), c.most_per_node))
    def time(i):
        return (1 + c.b_c / (i * p)) * (c.seconds_per_sample * i + ring)
    return p * min(each, min(each + 1, c.most_per_node), key=time)
=== wrong: most samples a second :: all :: The largest minibatch
-    return p * min(each, min(each + 1, c.most_per_node), key=time)
+    return p * c.most_per_node
=== wrong: fewest samples :: all :: The smallest minibatch
+    return p
=== wrong: B_c itself :: all :: What steps cost on this cluster
+    return p * max(1, min(round(c.b_c / p), c.most_per_node))
=== wrong: not a multiple of p :: all :: Each node has the same number
+    return max(p, min(int(best), p * c.most_per_node))
=== wrong: rounded down :: limits :: was rounded down
+    return p * each
=== wrong: rounded up :: limits :: was rounded up
+    return p * max(1, min(int(-(-best // p)), c.most_per_node))
=== wrong: tries a thousand samples a node at most :: between :: go up to most_per_node
+    return p * min(range(1, min(c.most_per_node, 1000) + 1), key=time)
=== wrong: the samples of one node :: all :: The samples of one node
+    return min(each, min(each + 1, c.most_per_node), key=time)
=== wrong: p is forgotten under the root :: all :: p is missing under the root
-    best = (c.b_c * p * ring / c.seconds_per_sample) ** 0.5
+    best = (c.b_c * ring / c.seconds_per_sample) ** 0.5
-    return p * min(each, min(each + 1, c.most_per_node), key=time)
+    return p * max(1, min(round(best / p), c.most_per_node))
=== wrong: compute as long as the all-reduce :: between :: as long as the gradient
+    best = p * ring / c.seconds_per_sample
-    return p * min(each, min(each + 1, c.most_per_node), key=time)
+    return p * max(1, min(round(best / p), c.most_per_node))
=== wrong: divides by an all-reduce that takes no time :: limits :: ZeroDivisionError :: raised
+    best = c.b_c * p / (c.seconds_per_sample * c.b_c * p / ring) ** 0.5
=== wrong: no memory limit :: limits :: A node has memory for
-    each = max(1, min(int(best / p), c.most_per_node))
+    each = max(1, min(int(best / p), 10**9))
-    return p * min(each, min(each + 1, c.most_per_node), key=time)
+    return p * min(each, min(each + 1, 10**9), key=time)
=== wrong: alpha is forgotten :: all :: alpha was left out
-    ring = 2 * (p - 1) * (c.alpha + c.nbytes / p * c.beta)
+    ring = 2 * (p - 1) * c.nbytes / p * c.beta
-    return p * min(each, min(each + 1, c.most_per_node), key=time)
+    return p * max(1, min(round(best / p), c.most_per_node))
=== wrong: whole vectors go round the ring :: between :: has nbytes / p bytes
+    ring = 2 * (p - 1) * (c.alpha + c.nbytes * c.beta)
-    return p * min(each, min(each + 1, c.most_per_node), key=time)
+    return p * max(1, min(round(best / p), c.most_per_node))
=== right: tries all of them
def best_batch(cluster):
    p = cluster.nodes
    B = p * np.arange(1, cluster.most_per_node + 1)
    ring = 2 * (p - 1) * cluster.alpha + 2 * (1 - 1 / p) * cluster.nbytes * cluster.beta
    return B[np.argmin((B + cluster.b_c) / B * (cluster.seconds_per_sample * B / p + ring))]
=== right: walks uphill while it pays, in steps of one percent
def best_batch(cluster):
    c, p = cluster, cluster.nodes

    def time(i):
        steps = c.s_min * (1 + c.b_c / (i * p))
        return steps * (i * c.seconds_per_sample + 2 * (p - 1) * (c.alpha + c.nbytes / p * c.beta))

    i = 1
    while i < c.most_per_node and time(i + 1) < time(i):
        i = min(max(i + 1, int(1.01 * i)), c.most_per_node)
    return float(i * p)
"""
