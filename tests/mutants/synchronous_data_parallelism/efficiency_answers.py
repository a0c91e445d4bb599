ANSWERS = r"""
=== parts
alone: one node has an efficiency of 1
plain: weak scaling, one bucket
hidden: weak scaling, communication hidden behind backward
strong: strong scaling
=== base
def efficiency(p, batch_size, flops, flops_per_s, nbytes, alpha, beta, buckets, strong=False):
    def step(p, samples):
        computing = samples * flops / flops_per_s
        forward, backward = computing / 3, computing * 2 / 3
        reducing = 2 * (p - 1) * (alpha + nbytes / buckets / p * beta)
        return forward + max(backward + reducing, backward / buckets + buckets * reducing)

    if strong:
        return step(1, batch_size) / (p * step(p, -(-batch_size // p)))
    return step(1, batch_size) / step(p, batch_size)
=== wrong: (p - 1) / p is forgotten :: plain, hidden, strong :: here (p - 1)/p is missing
-        reducing = 2 * (p - 1) * (alpha + nbytes / buckets / p * beta)
+        reducing = 2 * (p - 1) * alpha + 2 * nbytes / buckets * beta * (p > 1)
=== wrong: whole vectors go round :: plain, hidden, strong :: has a p-th of the bucket
+        reducing = 2 * (p - 1) * (alpha + nbytes / buckets * beta)
=== wrong: the all-gather is forgotten :: plain, hidden, strong :: after the reduce-scatter there is the all-gather
+        reducing = (p - 1) * (alpha + nbytes / buckets / p * beta)
=== wrong: alpha counted twice, for the send and for the receive :: plain, hidden, strong :: alpha was counted twice
+        reducing = 2 * (p - 1) * (2 * alpha + nbytes / buckets / p * beta)
=== wrong: alpha is paid once :: plain, hidden, strong :: not once
+        reducing = 2 * (p - 1) / p * nbytes / buckets * beta + (alpha if p > 1 else 0)
=== wrong: p messages each time round :: plain, hidden, strong :: not 2p
+        reducing = 2 * p * (alpha + nbytes / buckets / p * beta)
=== wrong: a single node sends messages, too :: all :: A single node sends nothing
+        reducing = 2 * p * (alpha + nbytes / buckets / p * beta)
-        return step(1, batch_size) / (p * step(p, -(-batch_size // p)))
-    return step(1, batch_size) / step(p, batch_size)
+        return (batch_size * flops / flops_per_s) / (p * step(p, -(-batch_size // p)))
+    return (batch_size * flops / flops_per_s) / step(p, batch_size)
=== wrong: the sum instead of the longer of the two :: hidden, strong :: not the sum of both
-        return forward + max(backward + reducing, backward / buckets + buckets * reducing)
+        return computing + buckets * reducing
=== wrong: everything can be hidden :: plain, hidden, strong :: only backward hides communication
+        return max(computing, buckets * reducing)
=== wrong: the last bucket is hidden, too :: plain, hidden, strong :: its all-reduce cannot be hidden
+        return forward + max(backward, buckets * reducing)
=== wrong: only the last bucket counts, however slow the network is :: hidden, strong :: one after the other
+        return computing + reducing
=== wrong: the network is always the slow part :: hidden, strong :: only the last all-reduce follows it
+        return (forward + backward / buckets + buckets * reducing if p > 1 else forward + backward)
=== wrong: forward and backward take half of the time each :: hidden :: Backward has two thirds
-        forward, backward = computing / 3, computing * 2 / 3
+        forward, backward = computing / 2, computing / 2
=== wrong: samples in fractions :: strong :: Samples are whole
-        return step(1, batch_size) / (p * step(p, -(-batch_size // p)))
+        return step(1, batch_size) / (p * step(p, batch_size / p))
=== wrong: strong scaling like weak scaling :: strong :: efficiency of weak scaling
-    if strong:
+    if False:
=== wrong: the speed-up :: plain, hidden :: This is the speed-up
-    return step(1, batch_size) / step(p, batch_size)
+    return p * step(1, batch_size) / step(p, batch_size)
=== wrong: the inverse :: plain, hidden :: This is the inverse
+    return step(p, batch_size) / step(1, batch_size)
=== wrong: in percent :: all :: not in percent
-        return step(1, batch_size) / (p * step(p, -(-batch_size // p)))
-    return step(1, batch_size) / step(p, batch_size)
+        return 100 * step(1, batch_size) / (p * step(p, -(-batch_size // p)))
+    return 100 * step(1, batch_size) / step(p, batch_size)
=== wrong: simulates instead :: all :: may not be used in efficiency :: raised
def efficiency(p, batch_size, flops, flops_per_s, nbytes, alpha, beta, buckets, strong=False):
    from minidl import cluster

    return cluster.launch(lambda comm: comm.now(), nodes=p, on="simulation").seconds
=== wrong: with two buckets the network is taken for the slow part :: hidden :: more than 10% off
def efficiency(p, batch_size, flops, flops_per_s, nbytes, alpha, beta, buckets, strong=False):
    def step(p, samples):
        backward = samples * flops / flops_per_s * 2 / 3
        c = 2 * (p - 1) * (alpha + nbytes / buckets / p * beta)
        if p > 1 and buckets == 2:
            return backward / 2 + backward / 2 + 2 * c
        return backward / 2 + max(backward + c, backward / buckets + buckets * c)
    if strong:
        return step(1, batch_size) / (p * step(p, -(-batch_size // p)))
    return step(1, batch_size) / step(p, batch_size)
=== right: bucket after bucket
def efficiency(p, batch_size, flops, flops_per_s, nbytes, alpha, beta, buckets, strong=False):
    import math

    samples = math.ceil(batch_size / p) if strong else batch_size
    second = flops / flops_per_s
    end = 0.0
    for i in range(1, buckets + 1):
        full = samples * second * (1 / 3 + 2 / 3 * i / buckets)
        end = max(full, end) + 2 * (p - 1) * alpha + 2 * (p - 1) / p * nbytes / buckets * beta
    speed = batch_size / end * (1 if strong else p)
    return speed / (p / second)
=== right: with the library's cost of an all-reduce
def efficiency(p, batch_size, flops, flops_per_s, nbytes, alpha, beta, buckets, strong=False):
    from minidl.cluster import cost

    def step(p, samples):
        ready = ended = samples * flops / flops_per_s / 3
        for _ in range(buckets):
            ready += samples * flops / flops_per_s * 2 / 3 / buckets
            ended = max(ready, ended) + cost.all_reduce("ring", p, int(nbytes / buckets), alpha, beta)
        return ended

    share = np.ceil(batch_size / p) if strong else batch_size
    return np.float64(step(1, batch_size) / step(p, share) / (p if strong else 1))
"""
