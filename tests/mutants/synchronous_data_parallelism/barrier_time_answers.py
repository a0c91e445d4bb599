ANSWERS = r"""
=== parts
exponential: exponentially distributed times
few: a few measured times
many: many measured times and many workers
=== base
def barrier_time(times, p):
    if np.ndim(times) == 0:
        return times * sum(1 / i for i in range(1, p + 1))
    at_most = np.arange(len(times) + 1) / len(times)
    return float(np.sum(np.sort(times) * np.diff(at_most**p)))
=== wrong: the mean instead of the last one :: all :: not the average one
def barrier_time(times, p):
    return float(np.mean(times))
=== wrong: the sum to p - 1 :: exponential :: sum to p - 1
-        return times * sum(1 / i for i in range(1, p + 1))
+        return times * sum(1 / i for i in range(1, p))
=== wrong: three terms of the series for more than 8 workers :: exponential :: Close: was it estimated :: hidden only
+        series = np.log(p) + 0.5772156649015329 + 1 / (2 * p) - 1 / (12 * p * p)
+        return float(times * (series if p > 8 else sum(1 / i for i in range(1, p + 1))))
=== wrong: a whole number is no float :: exponential :: barrier_time :: raised :: hidden only
-    if np.ndim(times) == 0:
+    if isinstance(times, float):
=== wrong: estimated by random numbers :: few, many :: Close: was it estimated by random numbers
-    return float(np.sum(np.sort(times) * np.diff(at_most**p)))
+    return float(np.random.default_rng(0).choice(times, (2000, p)).max(axis=1).mean())
=== wrong: equal times count once :: few :: measured twice counts twice
         return times * sum(1 / i for i in range(1, p + 1))
+    times = np.unique(times)
=== wrong: sorts the caller's array :: few :: barrier_time changed its argument
+    times.sort()
-    return float(np.sum(np.sort(times) * np.diff(at_most**p)))
+    return float(np.sum(times * np.diff(at_most**p)))
=== wrong: without replacement :: few, many :: with replacement
def barrier_time(times, p):
    from itertools import combinations

    if np.ndim(times) == 0:
        return times * sum(1 / i for i in range(1, p + 1))
    return float(np.mean([max(each) for each in combinations(times, min(p, len(times)))]))
=== wrong: all cases are listed :: many ::  :: stuck
def barrier_time(times, p):
    from itertools import product

    if np.ndim(times) == 0:
        return times * sum(1 / i for i in range(1, p + 1))
    return sum(map(max, product(times.tolist(), repeat=p))) / len(times) ** p
=== wrong: exponential only :: few, many :: expected a number
def barrier_time(times, p):
    return times * sum(1 / i for i in range(1, p + 1))
=== wrong: a hundred workers at most :: exponential, many :: expected
 def barrier_time(times, p):
+    p = min(p, 100)
=== right: the area above the distribution function
def barrier_time(times, p):
    if np.ndim(times) == 0:
        return sum(times / waiting for waiting in range(p, 0, -1))  # until the next of those still working is there
    ordered = np.sort(times)
    gaps = np.diff(ordered, prepend=0.0)
    someone_late = 1 - (np.arange(len(ordered)) / len(ordered)) ** p
    return float(gaps @ someone_late)
=== right: each value with its count, in a loop
def barrier_time(times, p):
    if isinstance(times, (int, float)):
        return times * float(np.sum(1 / np.arange(p, 0, -1)))
    values, counts = np.unique(times, return_counts=True)
    chance, total = 0.0, 0.0
    for value, up_to in zip(values, np.cumsum(counts) / len(times)):
        total += value * (up_to**p - chance)
        chance = up_to**p
    return total
"""
