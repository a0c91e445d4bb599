ANSWERS = r"""
=== parts
without: p a power of two, gamma = 0
with: any p, and gamma; infinite where the ring never is faster
=== base
def crossover(p, alpha, beta, gamma=0.0):
    rounds = p.bit_length() - 1
    fold = 0 if p == 2**rounds else 1
    share = (p - 1) / p
    later = (2 * (p - 1) - rounds - 2 * fold) * alpha
    gained = (rounds + 2 * fold - 2 * share) * beta + (rounds + fold - share) * gamma
    return later / gained if gained > 0 else math.inf
=== wrong: in elements :: all :: in elements of 8 bytes
-    return later / gained if gained > 0 else math.inf
+    return later / gained / 8 if gained > 0 else math.inf
=== wrong: rounded :: all :: not to be rounded
+    return round(later / gained) if gained > 0 else math.inf
=== wrong: 0 instead of infinity :: with :: expected math.inf, got 0.
+    return later / gained if gained > 0 else 0.0
=== wrong: infinite for two ranks whatever gamma is :: with :: got inf
+    return later / gained if p > 2 else math.inf
=== wrong: divides by zero for two ranks without gamma :: with :: ZeroDivisionError :: raised
+    return later / gained
=== wrong: None where the ring is never faster :: with :: expected math.inf, got None
+    return later / gained if gained > 0 else None
=== wrong: a power of two that is below the size :: all :: expected
+    return 2.0 ** math.floor(math.log2(later / gained)) if gained > 0 else math.inf
=== wrong: infinite where a byte gains little :: all :: got inf :: hidden only
+    return later / gained if gained > 1e-11 else math.inf
=== wrong: no fold :: with :: The fold is missing
-    fold = 0 if p == 2**rounds else 1
+    fold = 0
=== wrong: Rabenseifner's algorithm instead of the ring :: all :: Rabenseifner's algorithm
def crossover(p, alpha, beta, gamma=0.0):
    rounds = p.bit_length() - 1
    share = 1 - 1 / 2**rounds
    saved = (rounds - 2 * share) * beta + (rounds - share) * gamma
    return rounds * alpha / saved if saved > 0 else math.inf
=== wrong: gamma of n bytes for the ring :: with :: expected
-    gained = (rounds + 2 * fold - 2 * share) * beta + (rounds + fold - share) * gamma
+    gained = (rounds + 2 * fold - 2 * share) * beta + (rounds + fold - 1) * gamma
=== wrong: a table of logarithms up to 128 :: all :: expected
def crossover(p, alpha, beta, gamma=0.0):
    rounds = max(k for k in range(8) if 2**k <= p)
    fold = 0 if p == 2**rounds else 1
    later = (2 * (p - 1) - rounds - 2 * fold) * alpha
    gained = (rounds + 2 * fold - 2 * (p - 1) / p) * beta + (rounds + fold - (p - 1) / p) * gamma
    return later / gained if gained > 0 else math.inf
=== right: from the two functions, as the meeting point of two lines
def crossover(p, alpha, beta, gamma=0.0):
    def difference(nbytes):
        return ring_seconds(p, nbytes, alpha, beta, gamma) - recursive_doubling_seconds(p, nbytes, alpha, beta, gamma)
    start, end = difference(0), difference(8 * p)
    return math.inf if end >= start else start * 8 * p / (start - end)
=== right: by bisection
def crossover(p, alpha, beta, gamma=0.0):
    def ring_is_faster(nbytes):
        ring = ring_seconds(p, nbytes, alpha, beta, gamma)
        return ring < recursive_doubling_seconds(p, nbytes, alpha, beta, gamma)
    low, high = 0.0, 1e15
    if not ring_is_faster(high):
        return float("inf")
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if ring_is_faster(middle) else (middle, high)
    return high
=== right: numpy's infinity, by division
def crossover(p, alpha, beta, gamma=0.0):
    folded = p & (p - 1) != 0
    messages = int(np.log2(p)) + 2 * folded
    additions = int(np.log2(p)) + folded
    share = 1 - 1 / p
    with np.errstate(divide="ignore"):
        return np.float64((2 * p - 2 - messages) * alpha) / max(
            np.float64(0.0), messages * beta + additions * gamma - share * (2 * beta + gamma)
        )
"""
