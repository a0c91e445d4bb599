ANSWERS = r"""
=== parts
network: slow networks: the server, and the all-reduce
stragglers: stragglers: random ones, and a persistent one
stale: stale gradients: more of them are needed
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
    times = cluster.gradients / p * (longest + ring), cluster.gradients * penalty / rate
    return *times, "synchronous" if times[0] < times[1] else "asynchronous"
=== wrong: the word alone :: all :: expected (synchronous, asynchronous, choice)
-    return *times, "synchronous" if times[0] < times[1] else "asynchronous"
+    return "synchronous" if times[0] < times[1] else "asynchronous"
=== wrong: always synchronous :: all :: times as long to the target as the other choice
+    return *times, "synchronous"
=== wrong: the other way round :: all :: times as long to the target as the other choice
+    return *times, "synchronous" if times[0] > times[1] else "asynchronous"
=== wrong: another word :: all :: expected 'synchronous' or 'asynchronous' as the choice, got 'async'
+    return *times, "synchronous" if times[0] < times[1] else "async"
=== wrong: seconds a gradient :: all :: seconds of synchronous training: expected
+    return *(time / cluster.gradients for time in times), "synchronous" if times[0] < times[1] else "asynchronous"
=== wrong: the staleness penalty is forgotten :: stragglers, stale :: The staleness penalty is left out
-    penalty = 1 + cluster.penalty * (p - 1)
+    penalty = 1
=== wrong: the penalty is for p gradients :: stragglers, stale :: not of p
+    penalty = 1 + cluster.penalty * p
=== wrong: no straggler at all :: all :: seconds of synchronous training: expected
-    p, q, f, slowest = cluster.workers, cluster.slow_share, cluster.slow_factor, cluster.slowest
+    p, q, f, slowest = cluster.workers, 0.0, 1.0, 1.0
=== wrong: no persistent straggler :: all :: The persistent straggler is left out
+    p, q, f, slowest = cluster.workers, cluster.slow_share, cluster.slow_factor, 1.0
=== wrong: no random stragglers :: stragglers :: The random stragglers are left out
+    p, q, f, slowest = cluster.workers, 0.0, 1.0, cluster.slowest
=== wrong: the persistent straggler makes as many gradients as the others :: all :: makes fewer gradients a second
-    rate = (p - 1) / (mean + x) + 1 / (mean * slowest + x)
+    rate = p / (mean + x)
=== wrong: the exchange takes a worker no time :: network :: the next gradient begins after both
+    rate = (p - 1) / mean + 1 / (mean * slowest)
=== wrong: the queue at the server is forgotten :: network :: The server serves one worker at a time
-    rate = min(rate, 1 / x)
=== wrong: the seconds of workers and of the server add up :: all :: the longer of the two times counts
+    rate = 1 / (mean / p + x)
=== wrong: a synchronous step takes the mean of the workers' times :: all :: as long as the slowest of its gradients
-    longest = cluster.seconds * max(slowest, 1 + (1 - (1 - q) ** p) * (f - 1))
+    longest = mean * (p - 1 + slowest) / p
=== wrong: some worker is delayed in every synchronous step :: stragglers :: only if one of its p gradients is
+    longest = cluster.seconds * max(slowest, f)
=== wrong: whole vectors go round the ring :: network :: a chunk of nbytes / p bytes
-    ring = 2 * (p - 1) * (cluster.alpha + cluster.nbytes / p * cluster.beta)
+    ring = 2 * (p - 1) * (cluster.alpha + cluster.nbytes * cluster.beta)
=== wrong: the reduce-scatter alone :: network :: after the reduce-scatter there is the all-gather
+    ring = (p - 1) * (cluster.alpha + cluster.nbytes / p * cluster.beta)
=== wrong: the all-reduce is forgotten :: network :: The all-reduce is left out
+    ring = 0.0
=== wrong: a push without a pull :: network :: An exchange is a push and a pull
-    x = 2 * (cluster.alpha + cluster.nbytes * cluster.beta)
+    x = cluster.alpha + cluster.nbytes * cluster.beta
=== wrong: alpha is forgotten in the exchange :: network :: seconds of asynchronous training: expected
+    x = 2 * cluster.nbytes * cluster.beta
=== wrong: a synchronous step is one gradient :: all :: A synchronous step uses p gradients
-    times = cluster.gradients / p * (longest + ring), cluster.gradients * penalty / rate
+    times = cluster.gradients * (longest + ring), cluster.gradients * penalty / rate
=== wrong: random delays do not touch asynchronous workers :: stragglers :: Delays hold up asynchronous workers
-    mean = cluster.seconds * (1 + q * (f - 1))
+    mean = cluster.seconds
=== right: plays both, step by step
import heapq

def choose(cluster):
    rng = np.random.default_rng(1)
    p, steps = cluster.workers, 20_000
    times = cluster.seconds * np.where(rng.random((steps, p)) < cluster.slow_share, cluster.slow_factor, 1.0)
    times[:, 0] *= cluster.slowest
    ring = 2 * (p - 1) * (cluster.alpha + cluster.nbytes / p * cluster.beta)
    together = (times.max(axis=1).mean() + ring) * cluster.gradients / p
    exchange = 2 * (cluster.alpha + cluster.nbytes * cluster.beta)
    ready, free, count = [(times[0, i], i) for i in range(p)], 0.0, 0
    heapq.heapify(ready)
    while count < 1500 * p:
        at, worker = heapq.heappop(ready)
        free = max(free, at) + exchange
        count += 1
        heapq.heappush(ready, (free + times[rng.integers(steps), worker], worker))
    alone = free / count * (1 + cluster.penalty * (p - 1)) * cluster.gradients
    return [together, alone, "synchronous" if together < alone else "asynchronous"]
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
    return *(c.gradients / each for each in learning.values()), max(learning, key=learning.get)
"""
