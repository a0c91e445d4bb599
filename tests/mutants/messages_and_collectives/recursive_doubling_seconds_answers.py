ANSWERS = r"""
=== parts
powers: p a power of two
others: p not a power of two
=== base
def recursive_doubling_seconds(p, nbytes, alpha, beta, gamma=0.0):
    rounds = p.bit_length() - 1
    fold = 0 if p == 2**rounds else 1
    return (rounds + 2 * fold) * (alpha + nbytes * beta) + (rounds + fold) * nbytes * gamma
=== wrong: sends, then receives :: all :: one message's time
-    return (rounds + 2 * fold) * (alpha + nbytes * beta) + (rounds + fold) * nbytes * gamma
+    return (2 * (rounds + fold)) * (alpha + nbytes * beta) + (rounds + fold) * nbytes * gamma
=== wrong: a fold that does not add :: others :: The fold adds, too
+    return (rounds + 2 * fold) * (alpha + nbytes * beta) + (rounds ) * nbytes * gamma
=== wrong: a fold of one message :: others :: a message before and one after
+    return (rounds + fold) * (alpha + nbytes * beta) + (rounds + fold) * nbytes * gamma
=== wrong: an empty vector costs nothing :: powers :: An empty message takes time, too
+    return 0.0 if nbytes == 0 else (rounds + 2 * fold) * (alpha + nbytes * beta) + (rounds + fold) * nbytes * gamma
=== wrong: a fold always :: powers :: there is no fold
-    fold = 0 if p == 2**rounds else 1
+    fold = 1
=== wrong: log2 p to the nearest :: others :: expected
-    rounds = p.bit_length() - 1
+    rounds = round(math.log2(p))
=== wrong: whole elements only :: others :: expected
-    rounds = p.bit_length() - 1
+    nbytes, rounds = nbytes // 8 * 8, p.bit_length() - 1
=== right: with math.log2
def recursive_doubling_seconds(p, nbytes, alpha, beta, gamma=0.0):
    rounds = math.floor(math.log2(p))
    time = rounds * (alpha + nbytes * (beta + gamma))
    if 2**rounds < p:
        time += 2 * (alpha + nbytes * beta) + nbytes * gamma
    return time
=== right: by halving p
def recursive_doubling_seconds(p, nbytes, alpha, beta, gamma=0.0):
    is_power, rounds = True, 0
    while p > 1:
        is_power = is_power and p % 2 == 0
        p, rounds = p // 2, rounds + 1
    message, addition = np.float64(alpha + nbytes * beta), nbytes * gamma
    return rounds * (message + addition) + (0 if is_power else message + addition + message)
"""
