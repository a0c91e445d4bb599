"""Known answers to `choose`."""

EXERCISE = "choose"
PARTS = {
    "network": "slow networks: the server, and the all-reduce",
    "stragglers": "stragglers: random ones, and a persistent one",
    "stale": "stale gradients: more of them are needed",
}

ANSWERS = r"""
=== base
def choose(cluster):
    p, q, f, slowest = cluster.workers, cluster.slow_share, cluster.slow_factor, cluster.slowest
    ring = 2 * (p - 1) * (cluster.alpha + cluster.nbytes / p * cluster.beta)
    x = 2 * (cluster.alpha + cluster.nbytes * cluster.beta)
    mean = cluster.seconds * (1 + q * (f - 1))
    longest = cluster.seconds * max(slowest, 1 + (1 - (1 - q) ** p) * (f - 1))
    rate = (p - 1) / (mean + x) + 1 / (mean * slowest + x)
    rate = min(rate, 1 / x)
    penalty = 1 + cluster.penalty * (p - 1)
    return "synchronous" if (longest + ring) / p < penalty / rate else "asynchronous"
=== wrong: always synchronous :: all :: always synchronous
def choose(cluster):
    return 'synchronous'
=== wrong: always asynchronous :: all :: always asynchronous
def choose(cluster):
    return 'asynchronous'
=== wrong: the staleness penalty is forgotten :: stragglers, stale :: The staleness penalty is left out
-    penalty = 1 + cluster.penalty * (p - 1)
+    penalty = 1
=== wrong: no straggler at all :: all :: The regret is more than 10%
-    p, q, f, slowest = cluster.workers, cluster.slow_share, cluster.slow_factor, cluster.slowest
+    p, q, f, slowest = cluster.workers, 0.0, 1.0, 1.0
=== wrong: no persistent straggler :: all :: The persistent straggler is left out
+    p, q, f, slowest = cluster.workers, cluster.slow_share, cluster.slow_factor, 1.0
=== wrong: no random stragglers :: stragglers :: The random stragglers are left out
+    p, q, f, slowest = cluster.workers, 0.0, 1.0, cluster.slowest
=== wrong: the queue at the server is forgotten :: network :: The server serves one worker at a time
-    rate = min(rate, 1 / x)
=== wrong: the network is forgotten :: network :: The network's time is left out
-    rate = (p - 1) / (mean + x) + 1 / (mean * slowest + x)
-    rate = min(rate, 1 / x)
+    rate = (p - 1) / (mean ) + 1 / (mean * slowest )
-    return "synchronous" if (longest + ring) / p < penalty / rate else "asynchronous"
+    return "synchronous" if longest / p < penalty / rate else "asynchronous"
=== wrong: a synchronous step takes the mean of the workers' times :: all :: as long as the slowest of its gradients
-    longest = cluster.seconds * max(slowest, 1 + (1 - (1 - q) ** p) * (f - 1))
+    longest = mean * (p - 1 + slowest) / p
=== wrong: some worker is delayed in every synchronous step :: stragglers :: only if at least one of its p gradients is
+    longest = cluster.seconds * max(slowest, f)
=== wrong: whole vectors go round the ring :: network :: a chunk of nbytes / p bytes
-    ring = 2 * (p - 1) * (cluster.alpha + cluster.nbytes / p * cluster.beta)
+    ring = 2 * (p - 1) * (cluster.alpha + cluster.nbytes * cluster.beta)
=== wrong: alpha is forgotten in the ring :: network :: takes alpha seconds
+    ring = 2 * (p - 1) * cluster.nbytes / p * cluster.beta
=== wrong: the other way round :: all :: the other choice each time
-    return "synchronous" if (longest + ring) / p < penalty / rate else "asynchronous"
+    return "synchronous" if (longest + ring) / p > penalty / rate else "asynchronous"
=== wrong: another word :: all :: expected 'synchronous' or 'asynchronous', got 'async'
+    return "synchronous" if (longest + ring) / p < penalty / rate else "async"
=== wrong: the all-reduce is forgotten :: network :: The all-reduce is left out
+    return "synchronous" if longest / p < penalty / rate else "asynchronous"
=== wrong: random delays do not touch asynchronous workers :: stragglers :: Delays hold up asynchronous workers
-    mean = cluster.seconds * (1 + q * (f - 1))
+    mean = cluster.seconds
=== wrong: the seconds of workers and of the server add up :: all :: the longer of the two times counts
-    rate = min(rate, 1 / x)
+    rate = 1 / (mean / p + x)
=== right: plays both, step by step
import heapq

def choose(cluster):
    rng = np.random.default_rng(1)
    p, steps = cluster.workers, 400
    times = cluster.seconds * np.where(rng.random((steps, p)) < cluster.slow_share, cluster.slow_factor, 1.0)
    times[:, 0] *= cluster.slowest
    ring = 2 * (p - 1) * (cluster.alpha + cluster.nbytes / p * cluster.beta)
    together = (times.max(axis=1) + ring).sum() / (steps * p)
    exchange = 2 * (cluster.alpha + cluster.nbytes * cluster.beta)
    ready, free, count = [(times[0, i], i) for i in range(p)], 0.0, 0
    heapq.heapify(ready)
    while count < steps * p:
        at, worker = heapq.heappop(ready)
        free = max(free, at) + exchange
        count += 1
        heapq.heappush(ready, (free + times[rng.integers(steps), worker], worker))
    alone = free / count * (1 + cluster.penalty * (p - 1))
    return "synchronous" if together < alone else "asynchronous"
=== right: learning per second, with the harmonic mean of the workers
def choose(cluster):
    p, c = cluster.workers, cluster
    seconds = c.seconds * np.array([c.slowest] + [1.0] * (p - 1))
    slow = 1 + c.slow_share * (c.slow_factor - 1)
    nobody = (1 - c.slow_share) ** p
    step = nobody * seconds.max() + (1 - nobody) * max(seconds.max(), c.seconds * c.slow_factor)
    step += (2 - 2 / p) * c.nbytes * c.beta + 2 * (p - 1) * c.alpha
    server = 1 / (2 * c.alpha + 2 * c.nbytes * c.beta)
    workers = np.sum(1 / (slow * seconds + 1 / server))
    learning = {"synchronous": p / step, "asynchronous": min(server, workers) / (1 + c.penalty * (p - 1))}
    return max(learning, key=learning.get)
"""
