ANSWERS = r"""
=== parts
rounds: the number of rounds
words: the words that a machine sends
=== base
def rounds_and_words(p, n, steps, period, first):
    alone = min(first, steps)
    rounds = alone + (steps - alone + period - 1) // period
    return rounds, rounds * 2 * (p - 1) / p * n
=== wrong: rounded down :: all :: may be incomplete
-    rounds = alone + (steps - alone + period - 1) // period
+    rounds = alone + (steps - alone) // period
=== wrong: one round more :: all :: no further round
+    rounds = alone + (steps - alone) // period + 1
=== wrong: all steps are in periods :: all :: Periods begin after
+    rounds = alone + (steps + period - 1) // period
=== wrong: no rounds at first :: all :: first `first` steps
+    rounds = (steps - alone + period - 1) // period
=== wrong: a single step has no round :: all :: expected :: hidden only
+    rounds = alone + (steps - alone + period - 1) // period if steps > 1 else 0
=== wrong: more first steps than steps :: all :: fewer than `first`
-    alone = min(first, steps)
+    alone = first
=== wrong: 10 words as an example :: words :: words: expected
-    return rounds, rounds * 2 * (p - 1) / p * n
+    return rounds, rounds * 2 * (p - 1) / p * 10
=== wrong: a reduce-scatter only :: words :: in each of the two
+    return rounds, rounds * (p - 1) / p * n
=== wrong: p chunks instead of p - 1 :: words :: p - 1 of them
+    return rounds, rounds * 2 * n
=== wrong: whole arrays :: words :: all machines together
+    return rounds, rounds * 2 * (p - 1) * n
=== wrong: bytes :: words :: These are bytes
+    return rounds, 8 * rounds * 2 * (p - 1) / p * n
=== wrong: the words of one round :: words :: of one round
+    return rounds, 2 * (p - 1) / p * n
=== wrong: words in every step :: words :: in every step
+    return rounds, steps * 2 * (p - 1) / p * n
=== wrong: n // p :: words :: n / p words, also where
+    return rounds, rounds * 2 * (p - 1) * (n // p)
=== wrong: all divided by // :: words :: need not be an integer
+    return rounds, rounds * 2 * (p - 1) * n // p
=== wrong: words of 32 bits :: words :: expected
def rounds_and_words(p, n, steps, period, first):
    alone = min(first, steps)
    rounds = alone + -(-(steps - alone) // period)
    return rounds, rounds * 2 * (p - 1) * (n % 2**32) / p
=== right: counts step by step, and message by message
def rounds_and_words(p, n, steps, period, first):
    rounds = sum(
        step < first or (step + 1 - first) % period == 0 or step == steps - 1 for step in range(steps)
    )
    words = 0.0
    for _ in range(rounds):
        for _ in range(2 * (p - 1)):
            words += n / p
    return [rounds, words]
=== right: math.ceil and numpy numbers
def rounds_and_words(p, n, steps, period, first):
    import math
    rounds = math.ceil(max(0, steps - first) / period) + min(steps, first)
    return np.int64(rounds), np.float64(2 * n * rounds - 2 * n * rounds / p)
"""
