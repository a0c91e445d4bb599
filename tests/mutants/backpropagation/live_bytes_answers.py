ANSWERS = r"""
=== parts
evaluation: evaluation
kept: training, nothing freed
freed: training, freed as backward passes
=== right: closed forms
def live_bytes(widths, batch, mode):
    a = [batch * n for n in widths]
    w = [0] + [m * n for m, n in zip(widths, widths[1:])]
    L = range(1, len(a))
    if mode == "evaluation":
        return 8 * max(a[i - 1] + a[i] for i in L)
    if mode == "nothing freed":
        return 8 * (2 * sum(a) - a[0] + sum(w))
    return 8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)
=== wrong: numbers, not bytes :: all :: numbers, not bytes
-        return 8 * max(a[i - 1] + a[i] for i in L)
+        return max(a[i - 1] + a[i] for i in L)
-        return 8 * (2 * sum(a) - a[0] + sum(w))
-    return 8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)
+        return 2 * sum(a) - a[0] + sum(w)
+    return max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)
=== wrong: 4 bytes a number :: all :: 8 bytes here, not 4
+        return 4 * max(a[i - 1] + a[i] for i in L)
-        return 8 * (2 * sum(a) - a[0] + sum(w))
-    return 8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)
+        return 4 * (2 * sum(a) - a[0] + sum(w))
+    return 4 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)
=== wrong: the last layer is missing :: evaluation :: The last layer is missing
+        return 8 * max([a[i - 1] + a[i] for i in L[:-1]] or [0])
=== wrong: evaluation keeps all :: evaluation :: in evaluation an activation is freed
+        return 8 * sum(a)
=== wrong: the largest alone :: evaluation :: live at once
+        return 8 * max(a)
=== wrong: the two largest, neighbours or not :: evaluation :: need not be neighbours
+        return 8 * sum(sorted(a)[-2:])
=== wrong: the weights count :: all :: in any case
+        return 8 * (max(a[i - 1] + a[i] for i in L) + sum(w))
-        return 8 * (2 * sum(a) - a[0] + sum(w))
-    return 8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)
+        return 8 * (2 * sum(a) - a[0] + 2 * sum(w))
+    return 8 * (max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L) + sum(w))
=== wrong: looks between the steps :: freed :: the peak lies within a step
-    return 8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)
+    return 8 * max([sum(a) + a[-1]] + [sum(a[:i]) + (i > 1) * a[i - 1] + sum(w[i:]) for i in L])
=== wrong: the weights' gradients are freed :: freed :: The gradients of the weights were freed
+    return 8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + w[i] for i in L)
=== wrong: only the activation is freed :: freed :: frees the activation's gradient, too
+    return 8 * max(sum(a[:i + 1]) + sum(a[i:]) + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)
=== wrong: nothing is freed :: freed :: freed as backward passes
+    return 8 * (2 * sum(a) - a[0] + sum(w))
=== wrong: the end of the forward pass :: freed :: when the forward pass ends
+    return 8 * sum(a)
=== wrong: only the last layer's step :: freed :: 'training'): expected
+    return 8 * (sum(a) + a[-1] + (len(a) > 2) * a[-2] + w[-1])
=== wrong: no gradient of the output :: kept, freed :: The gradient of the last activation, L, is missing
-        return 8 * (2 * sum(a) - a[0] + sum(w))
-    return 8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)
+        return 8 * (2 * sum(a) - a[0] - a[-1] + sum(w))
+    return 8 * max(sum(a[:i + 1]) + (i < len(w) - 1) * a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)
=== wrong: the weights' gradients are missing :: kept, freed :: gradients of the weights are missing
+        return 8 * (2 * sum(a) - a[0])
+    return 8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] for i in L)
=== wrong: a gradient for the input :: kept, freed :: Nobody asks
+        return 8 * (2 * sum(a) + sum(w))
+    return 8 * max(sum(a[:i + 1]) + a[i] + a[i - 1] + sum(w[i:]) for i in L)
=== wrong: weights with a bias :: kept, freed :: 'nothing freed'): expected
+        return 8 * (2 * sum(a) - a[0] + sum(w) + sum(widths[1:]))
+    return 8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) + sum(widths[i:]) for i in L)
=== wrong: the list is used up :: evaluation :: live_bytes changed its argument widths[0]
     w = [0] + [m * n for m, n in zip(widths, widths[1:])]
+    widths.reverse()
=== right: played through
def live_bytes(widths, batch, mode):
    a, L = np.array(widths) * batch, len(widths) - 1
    now = peak = a[0]
    for l in range(1, L + 1):
        now += a[l]
        peak = max(peak, now)
        if mode == "evaluation":
            now -= a[l - 1]
    if mode == "evaluation":
        return float(8 * peak)
    now += a[L]
    for l in range(L, 0, -1):
        now += widths[l] * widths[l - 1]
        if l > 1:
            now += a[l - 1]
        peak = max(peak, now)
        if mode == "training":
            now -= 2 * a[l]
    return 8 * peak
"""
