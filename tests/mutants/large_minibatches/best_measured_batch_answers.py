ANSWERS = r"""
=== parts
regret: the target takes at most 2 % longer than with the best minibatch
calls: at most 50 measurements, for at most 1.5 times the best time
=== base
def best_measured_batch(seconds_per_step, b_c, p, most_per_node):
    def time(i):
        return (1 + b_c / (i * p)) * seconds_per_step(i * p)

    low, high = 1, most_per_node
    while low < high:
        middle = (low + high) // 2
        if time(middle) < time(middle + 1):
            high = middle
        else:
            low = middle + 1
    return low * p
=== wrong: measures every minibatch :: all :: more than 1,000 times :: raised
def best_measured_batch(seconds_per_step, b_c, p, most_per_node):
    def time(i):
        return (1 + b_c / (i * p)) * seconds_per_step(i * p)

    return p * min(range(1, most_per_node + 1), key=time)
=== wrong: ternary search over all numbers :: calls :: expected at most 50
def best_measured_batch(seconds_per_step, b_c, p, most_per_node):
    def time(i):
        return (1 + b_c / (i * p)) * seconds_per_step(i * p)

    low, high = 1, most_per_node
    while high - low > 2:
        a, b = low + (high - low) // 3, high - (high - low) // 3
        if time(a) < time(b):
            high = b - 1
        else:
            low = a + 1
    return p * min(range(low, high + 1), key=time)
=== wrong: B_c itself :: all :: B_c alone
def best_measured_batch(seconds_per_step, b_c, p, most_per_node):
    def time(i):
        return (1 + b_c / (i * p)) * seconds_per_step(i * p)

    return p * max(1, min(round(b_c / p), most_per_node))
=== wrong: the largest minibatch :: all :: The largest minibatch may have
def best_measured_batch(seconds_per_step, b_c, p, most_per_node):
    def time(i):
        return (1 + b_c / (i * p)) * seconds_per_step(i * p)

    return p * most_per_node
=== wrong: the root, from two measurements :: all :: times as long to the target
def best_measured_batch(seconds_per_step, b_c, p, most_per_node):
    def time(i):
        return (1 + b_c / (i * p)) * seconds_per_step(i * p)

    one, many = seconds_per_step(p), seconds_per_step(p * most_per_node)
    slope = max(many - one, 1e-12) / max(most_per_node - 1, 1) / p
    best = (b_c * max(one - slope * p, 0) / slope) ** 0.5
    return p * max(1, min(round(best / p), most_per_node))
=== wrong: the seconds of a step alone :: all :: the smallest minibatch
-        return (1 + b_c / (i * p)) * seconds_per_step(i * p)
+        return seconds_per_step(i * p)
=== wrong: the most samples a second :: all :: most samples a second
+        return seconds_per_step(i * p) / i
=== wrong: asks for minibatches that are no multiples of p :: all :: ValueError :: raised
+        return (1 + b_c / (i * p)) * seconds_per_step(i)
=== wrong: the samples of one node :: all :: The samples of one node
-    return low * p
+    return low
=== wrong: asks beyond the memory :: all :: ValueError :: raised
-    low, high = 1, most_per_node
+    low, high = 1, 2 * most_per_node
=== wrong: powers of two only :: all :: times as long to the target
def best_measured_batch(seconds_per_step, b_c, p, most_per_node):
    def time(i):
        return (1 + b_c / (i * p)) * seconds_per_step(i * p)

    powers = [2**e for e in range(20) if 2**e <= most_per_node] + [most_per_node]
    return p * min(powers, key=time)
=== wrong: powers of two, and one fine grid around the best of them :: regret :: read from a disk
def best_measured_batch(seconds_per_step, b_c, p, most_per_node):
    def time(i):
        return (1 + b_c / (i * p)) * seconds_per_step(i * p)

    best = min({min(2**j, most_per_node) for j in range(21)}, key=time)
    low, high = max(1, best // 2), min(2 * best, most_per_node)
    return p * min({round(low * (high / low) ** (j / 24)) for j in range(25)}, key=time)
=== right: golden section, each time kept
from functools import lru_cache

def best_measured_batch(seconds_per_step, b_c, p, most_per_node):
    @lru_cache(None)
    def time(i):
        return (1 + b_c / (i * p)) * seconds_per_step(i * p)

    fib = [1, 2]
    while fib[-1] <= most_per_node:
        fib.append(fib[-1] + fib[-2])
    left, k = 0, len(fib) - 1  # the best one is between left and left + fib[k]

    def at(i):
        return time(i) if i <= most_per_node else float("inf")

    while k > 1:
        if at(left + fib[k - 2]) <= at(left + fib[k - 1]) and left + fib[k - 1] > left + fib[k - 2]:
            k -= 1
        else:
            left, k = left + fib[k - 2], k - 2 if k == 2 else k - 1
    near = [i for i in range(max(left - 1, 1), left + 4) if i <= most_per_node]
    return p * min(near, key=time)
=== right: a grid of ratios, twice refined
def best_measured_batch(seconds_per_step, b_c, p, most_per_node):
    known = {}

    def time(i):
        if i not in known:
            known[i] = (1 + b_c / (i * p)) * seconds_per_step(i * p)
        return known[i]

    low, high = 1, most_per_node
    for _ in range(3):
        grid = sorted({int(round(i)) for i in np.geomspace(low, high, 16)})
        place = min(range(len(grid)), key=lambda j: time(grid[j]))
        low, high = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
    return int(p * min(known, key=known.get))
"""
