ANSWERS = r"""
=== parts
mixed: bytes with 16-bit weights
float32: bytes with 32-bit weights
sent: numbers that a rank sends in a step
ragged: ranges that differ by one number
=== base
def memory_and_traffic(P, N, stage, is_mixed, r):
    share = P // N + (r < P % N)
    after = P // N + ((r + 1) % N < P % N)
    state, gradient, weight = (12, 2, 2) if is_mixed else (8, 4, 4)
    nbytes = state * (share if stage >= 1 else P)
    nbytes += gradient * (share if stage >= 2 else P)
    nbytes += weight * (share if stage >= 3 else P)
    passes = 2 if stage == 3 else 1
    return nbytes, P - share + passes * (P - after)
=== wrong: nothing is divided :: mixed, float32, ragged :: This is what a rank keeps without sharding
-    share = P // N + (r < P % N)
+    share = P
-    return nbytes, P - share + passes * (P - after)
+    share = P // N + (r < P % N)
+    return nbytes, P - share + passes * (P - after)
=== wrong: the last range has the rest :: ragged :: expected
+    share = P // N + (P % N if r == N - 1 else 0)
=== wrong: the last ranges are the longer ones :: ragged :: expected
+    share = P // N + (N - 1 - r < P % N)
=== wrong: the remainder of the other division :: all :: expected
+    share = P // N + (r < N % P)
=== wrong: the state has no copy of the weights :: mixed, ragged :: 4 + 4 + 4 bytes
-    state, gradient, weight = (12, 2, 2) if is_mixed else (8, 4, 4)
+    state, gradient, weight = (8, 2, 2) if is_mixed else (8, 4, 4)
=== wrong: momentum and variance of 16 bits :: mixed, ragged :: Momentum and variance have 32 bits
+    state, gradient, weight = (4, 2, 2) if is_mixed else (8, 4, 4)
=== wrong: Adam without a variance :: float32, ragged :: two numbers for each weight
+    state, gradient, weight = (12, 2, 2) if is_mixed else (4, 4, 4)
=== wrong: a second copy of 32-bit weights :: float32, ragged :: there is no second copy
+    state, gradient, weight = (12, 2, 2) if is_mixed else (12, 4, 4)
=== wrong: 32-bit gradients of 16-bit weights :: mixed, ragged :: Gradients have as many bits as the weights
+    state, gradient, weight = (12, 4, 2) if is_mixed else (8, 4, 4)
=== wrong: always mixed precision :: float32, ragged :: look at is_mixed
+    state, gradient, weight = (12, 2, 2)
=== wrong: never mixed precision :: mixed, ragged :: look at is_mixed
+    state, gradient, weight = (8, 4, 4)
=== wrong: the 32-bit copy belongs to the weights :: mixed, ragged :: its 32-bit copy among them
+    state, gradient, weight = (8, 2, 6) if is_mixed else (8, 4, 4)
=== wrong: the weights are divided first :: mixed, float32, ragged :: the state is the largest
-    nbytes = state * (share if stage >= 1 else P)
-    nbytes += gradient * (share if stage >= 2 else P)
-    nbytes += weight * (share if stage >= 3 else P)
+    nbytes = weight * (share if stage >= 1 else P)
+    nbytes += gradient * (share if stage >= 2 else P)
+    nbytes += state * (share if stage >= 3 else P)
=== wrong: each stage divides one component only :: mixed, float32, ragged
:: A stage also divides what the stages before it
+    nbytes = state * (share if stage == 1 else P)
+    nbytes += gradient * (share if stage == 2 else P)
+    nbytes += weight * (share if stage == 3 else P)
=== wrong: stage 0 divides the state :: mixed, float32, ragged :: This is one stage more
+    nbytes = state * share
+    nbytes += gradient * (share if stage >= 1 else P)
+    nbytes += weight * (share if stage >= 2 else P)
=== wrong: each stage divides one component less :: mixed, float32, ragged :: without sharding
+    nbytes = state * (share if stage >= 2 else P)
+    nbytes += gradient * (share if stage >= 3 else P)
+    nbytes += weight * P
=== wrong: equal fractions :: ragged :: Ranges have whole numbers
-    share = P // N + (r < P % N)
-    after = P // N + ((r + 1) % N < P % N)
+    share = after = P / N
=== wrong: every range is rounded down :: ragged :: P // N is the shorter range
+    share = after = P // N
=== wrong: every range is rounded up :: ragged :: only the first P % N ranks have them
+    share = after = -(-P // N)
=== wrong: in GB :: mixed, float32, ragged :: This is in GB
-    return nbytes, P - share + passes * (P - after)
+    return nbytes / 1e9, P - share + passes * (P - after)
=== wrong: the sum over all ranks :: mixed, float32, ragged :: what all ranks together keep
+    return N * nbytes, P - share + passes * (P - after)
=== wrong: bytes sent :: sent, ragged :: These are bytes
+    return nbytes, (2 if is_mixed else 4) * (P - share + passes * (P - after))
=== wrong: one pass :: sent, ragged :: two passes, not one
+    return nbytes, P - share
=== wrong: stage 3 sends as the others :: sent, ragged :: In stage 3 the weights are gathered twice
+    return nbytes, P - share + P - after
=== wrong: all stages send as stage 3 :: sent, ragged :: Only stage 3 gathers the weights twice
+    return nbytes, P - share + 2 * (P - after)
=== wrong: twice as many numbers without mixed precision :: sent, ragged :: does not depend on the precision
+    return nbytes, (1 if is_mixed else 2) * (P - share + passes * (P - after))
=== wrong: stage 3 scatters twice, too :: sent, ragged :: three passes
+    return nbytes, passes * (P - share + P - after)
=== wrong: every range is sent :: sent, ragged :: A rank does not send all ranges
+    return nbytes, (1 + passes) * P
=== wrong: only the own range is sent :: sent, ragged :: the ranges go round the ring
+    return nbytes, (1 + passes) * share
=== wrong: what all ranks send :: sent, ragged :: what all ranks together send
+    return nbytes, (1 + passes) * P * (N - 1)
=== wrong: an all-gather without the own range :: ragged :: that of the next rank, r + 1
+    return nbytes, (1 + passes) * (P - share)
=== wrong: the next rank in both passes :: ragged :: does not send is its own
+    return nbytes, (1 + passes) * (P - after)
=== wrong: the mean over the ranks :: ragged :: This is the mean over the ranks
+    return nbytes, (1 + passes) * P * (N - 1) / N
=== wrong: only the numbers sent :: all :: expected a pair (nbytes, sent)
+    return P - share + passes * (P - after)
=== wrong: the pair the other way round :: all :: in this order
+    return P - share + passes * (P - after), nbytes
=== wrong: stage 0 sends nothing :: sent, ragged :: an all-reduce of the gradients
+    return nbytes, (P - share + passes * (P - after)) * (stage > 0)
=== wrong: stages 2 and 3 gather twice :: sent, ragged :: Only stage 3 gathers the weights twice
-    passes = 2 if stage == 3 else 1
+    passes = 2 if stage >= 2 else 1
=== wrong: no rank after the last one :: ragged :: After rank N - 1 comes rank 0
-    after = P // N + ((r + 1) % N < P % N)
+    after = P // N + (r + 1 < P % N)
=== wrong: the rank before :: ragged :: not of the one before
+    after = P // N + ((r - 1) % N < P % N)
=== right: lengths of ranges from numpy's own cut, for two numbers in place of many
import numpy as np
def memory_and_traffic(P, N, stage, is_mixed, r):
    lengths = np.full(N, P // N)
    lengths[: P % N] += 1
    each = np.array([12, 2, 2] if is_mixed else [8, 4, 4])
    divided = np.arange(3) < stage
    nbytes = (each * np.where(divided, lengths[r], P)).sum()
    scattered, gathered = (lengths.sum() - lengths[i] for i in (r, r + 1 - N))
    return np.array([nbytes, scattered + gathered + (stage > 2) * gathered])
=== right: floats, as a list
def memory_and_traffic(P, N, stage, is_mixed, r):
    start = lambda i: i * (P // N) + min(i, P % N)
    own = float(start(r + 1) - start(r))
    next_one = (r + 1) % N
    after = float(start(next_one + 1) - start(next_one))
    state, rest = (12.0, 2.0) if is_mixed else (8.0, 4.0)
    kept = {0: state * P + 2 * rest * P, 1: state * own + 2 * rest * P, 2: (state + rest) * own + rest * P,
            3: (state + 2 * rest) * own}[stage]
    sends = 2.0 * P - own - after
    return [kept, sends + P - after if stage == 3 else sends]
"""
