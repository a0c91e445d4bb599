ANSWERS = r"""
=== parts
compute: no messages: the machines compute
each: an all-reduce after each step
several: an all-reduce after several steps; one machine alone
=== base
def pass_seconds(cluster, ranks, batch_size, period):
    p = len(ranks)
    machine, factor = cluster.slow
    slowest = factor if machine in ranks else 1
    steps = capstone.SAMPLES / batch_size
    message = cluster.alpha + cluster.nbytes / p * cluster.beta
    ring = 2 * (p - 1) * message
    return steps * batch_size / p * cluster.sample_seconds * slowest + steps / period * ring
=== wrong: nobody is slow :: all :: all wait for it
-    slowest = factor if machine in ranks else 1
+    slowest = 1
=== wrong: always slow :: all :: not among the chosen ones
+    slowest = factor
=== wrong: a mean machine :: all :: not for the mean of all
+    slowest = (p - 1 + factor) / p if machine in ranks else 1
=== wrong: every machine computes the minibatch :: all :: is divided among the chosen machines
-    return steps * batch_size / p * cluster.sample_seconds * slowest + steps / period * ring
+    return steps * batch_size * cluster.sample_seconds * slowest + steps / period * ring
=== wrong: all machines share :: all :: were not chosen compute nothing
+    return steps * batch_size / cluster.workers * cluster.sample_seconds * slowest + steps / period * ring
=== wrong: always an all-reduce :: several :: are `period` steps
+    return steps * batch_size / p * cluster.sample_seconds * slowest + steps * ring
=== wrong: whole messages :: each, several :: has nbytes / p bytes
-    message = cluster.alpha + cluster.nbytes / p * cluster.beta
+    message = cluster.alpha + cluster.nbytes * cluster.beta
=== wrong: a message without alpha :: each, several :: takes alpha, too
+    message = cluster.nbytes / p * cluster.beta
=== wrong: half a ring :: each, several :: (p - 1) for the sums
-    ring = 2 * (p - 1) * message
+    ring = (p - 1) * message
=== right: by steps
def pass_seconds(cluster, ranks, batch_size, period):
    share = batch_size / len(ranks)
    times = [share * cluster.sample_seconds * dict([cluster.slow]).get(rank, 1.0) for rank in ranks]
    messages = 2 * (len(ranks) - 1) * (cluster.alpha + cluster.nbytes * cluster.beta / len(ranks))
    return capstone.SAMPLES / batch_size * (max(times) + messages / period)
"""
