ANSWERS = r"""
=== parts
words: the words on the grid that was chosen
choice: the grid that sends the fewest words
=== base
def best_grid(p, B, d, h):
    found = []
    for tp in range(1, p + 1):
        if p % tp == 0:
            dp = p // tp
            activations = 2 * 2 * (tp - 1) / tp * (B / dp) * d
            gradients = 2 * (dp - 1) / dp * (2 * d * h / tp)
            found.append((activations + gradients, dp, tp))
    words, dp, tp = min(found)
    return dp, tp, words
=== wrong: data parallelism or tensor parallelism, nothing between :: choice :: There are grids between
-        if p % tp == 0:
+        if tp in (1, p):
=== wrong: powers of two only :: choice :: expected a grid :: hidden only
+        if p % tp == 0 and tp & (tp - 1) == 0:
=== wrong: always tensor parallelism :: choice ::
-    words, dp, tp = min(found)
+    words, dp, tp = found[-1]
=== wrong: always data parallelism :: choice ::
+    words, dp, tp = found[0]
=== wrong: the divisor nearest to the best fraction :: choice :: expected a grid
+    words, dp, tp = min(found, key=lambda each: abs(each[2] - (h * p / B) ** 0.5))
=== wrong: one all-reduce of activations :: all :: two all-reduces of activations
-            activations = 2 * 2 * (tp - 1) / tp * (B / dp) * d
+            activations = 2 * (tp - 1) / tp * (B / dp) * d
=== wrong: the whole minibatch on each replica :: choice :: There are grids between
+            activations = 2 * 2 * (tp - 1) / tp * B * d
=== wrong: the gradients of one layer :: all :: of both weights
-            gradients = 2 * (dp - 1) / dp * (2 * d * h / tp)
+            gradients = 2 * (dp - 1) / dp * (d * h / tp)
=== wrong: the gradients of whole weights :: choice :: There are grids between
+            gradients = 2 * (dp - 1) / dp * (2 * d * h)
=== wrong: no factor 2 of the ring :: words :: In a ring all-reduce
-            activations = 2 * 2 * (tp - 1) / tp * (B / dp) * d
-            gradients = 2 * (dp - 1) / dp * (2 * d * h / tp)
+            activations = 2 * (tp - 1) / tp * (B / dp) * d
+            gradients = (dp - 1) / dp * (2 * d * h / tp)
=== wrong: bytes :: words :: These are bytes
-    return dp, tp, words
+    return dp, tp, 8 * words
=== wrong: the words of all ranks :: words :: of all p ranks together
+    return dp, tp, p * words
=== wrong: no activations :: all :: The activations are missing
-            found.append((activations + gradients, dp, tp))
+            found.append((gradients, dp, tp))
=== wrong: at most 8 ranks divide a layer :: choice :: expected a grid
-    for tp in range(1, p + 1):
+    for tp in range(1, min(p, 8) + 1):
=== wrong: dp as a float :: all :: `//` divides integers
-            dp = p // tp
+            dp = p / tp
=== right: the last of equal grids
-    words, dp, tp = min(found)
+    words, dp, tp = min(found[::-1], key=lambda each: round(each[0], 9))
=== right: fractions
def best_grid(p, B, d, h):
    from fractions import Fraction as F
    def words(tp):
        dp = F(p, tp)
        return 4 * d * B / dp * (1 - F(1, tp)) + 4 * F(d * h, tp) * (1 - 1 / dp)
    tp = min((tp for tp in range(1, p + 1) if p % tp == 0), key=words)
    return p // tp, tp, float(words(tp))
"""
