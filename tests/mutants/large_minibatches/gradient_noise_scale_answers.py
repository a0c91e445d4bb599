ANSWERS = r"""
=== parts
means: the ratio of the two means over the draws
exact: exact, if all possible minibatches are drawn
units: the same in every unit; infinite, if no |G|^2 is left
=== base
def gradient_noise_scale(small, large, b_small, b_large):
    s, l = (small**2).sum(axis=1), (large**2).sum(axis=1)
    s, l = s.mean(), l.mean()
    trace = (s - l) / (1 / b_small - 1 / b_large)
    squared_norm = l - trace / b_large
    return trace / squared_norm if squared_norm > 0 else np.inf
=== wrong: at most 99 times the larger size :: units :: much noise
-    return trace / squared_norm if squared_norm > 0 else np.inf
+    return min(trace / squared_norm, 99 * b_large) if squared_norm > 0 else np.inf
=== wrong: negative estimates :: units :: at 0 or below it
+    return trace / squared_norm
=== wrong: 0 over 0 :: units :: at 0 or below it
+    return trace / squared_norm if squared_norm >= 0 else np.inf
=== wrong: an epsilon beside |G|^2 :: units :: all multiplied by 1e-9
+    return trace / (squared_norm + 1e-20) if squared_norm > 0 else np.inf
=== wrong: the mean of the ratios :: all :: This is the mean of the ratios of single draws
-    s, l = s.mean(), l.mean()
+    m = min(len(s), len(l))
+    s, l = s[:m], l[:m]
-    return trace / squared_norm if squared_norm > 0 else np.inf
+    return np.mean(trace / squared_norm)
=== wrong: draws of the small size for both :: all :: expected
+    s, l = s.mean(), l.sum() / len(s)
=== wrong: the gradients are averaged, then squared :: all :: Square each draw
-    s, l = (small**2).sum(axis=1), (large**2).sum(axis=1)
+    s, l = (small.mean(axis=0) ** 2).sum(), (large.mean(axis=0) ** 2).sum()
=== wrong: the mean norm, squared :: all :: The norms were averaged, and then squared
-    s, l = (small**2).sum(axis=1), (large**2).sum(axis=1)
-    s, l = s.mean(), l.mean()
+    s, l = np.linalg.norm(small, axis=1), np.linalg.norm(large, axis=1)
+    s, l = s.mean() ** 2, l.mean() ** 2
=== wrong: tr(Sigma) is cut off at 0 :: units :: may be negative
     trace = (s - l) / (1 / b_small - 1 / b_large)
+    trace = max(trace, 0.0)
=== right: the formulas of McCandlish et al., appendix A.1
def gradient_noise_scale(small, large, b_small, b_large):
    s, l = np.einsum("dn,dn->", small, small) / len(small), np.einsum("dn,dn->", large, large) / len(large)
    g = (b_large * l - b_small * s) / (b_large - b_small)
    sigma = (s - l) * b_small * b_large / (b_large - b_small)
    return float("inf") if g <= 0 else sigma / g
=== right: a system of two linear equations
def gradient_noise_scale(small, large, b_small, b_large):
    left = [np.mean(np.linalg.norm(g, axis=1) ** 2) for g in (small, large)]
    squared_norm, trace = np.linalg.solve([[1, 1 / b_small], [1, 1 / b_large]], left)
    return np.float64(trace / squared_norm) if squared_norm > 0 else np.array(np.inf)
"""
