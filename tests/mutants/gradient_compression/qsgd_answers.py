ANSWERS = r"""
=== parts
levels: the norm, and the levels for the given random numbers
average: right on average, and the squared error within its bound
bytes: one byte a number
corners: zeros, one number, whole multiples, tiny numbers, a hundred levels
=== base
def qsgd(gradient, s, uniform):
    norm = np.linalg.norm(gradient)
    if norm == 0:
        return 0.0, np.zeros(len(gradient), np.int8)
    a = s * np.abs(gradient) / norm
    lower = np.floor(a)
    levels = lower + (uniform < a - lower)
    return norm, (np.sign(gradient) * levels).astype(np.int8)
=== wrong: to the nearest :: all :: rounded to the nearest
-    levels = lower + (uniform < a - lower)
+    levels = np.round(a)
=== wrong: the comparison the other way round :: all :: the other way round
+    levels = lower + (uniform >= a - lower)
=== wrong: rounded up for large random numbers :: levels, bytes, corners :: rounds up for *large* random numbers
+    levels = np.floor(a + uniform)
=== wrong: one random number for all :: levels, bytes :: The first random number
+    levels = lower + (uniform[0] < a - lower)
=== wrong: its own random numbers :: all :: levels
+    levels = lower + (np.random.default_rng(0).random(len(a)) < a - lower)
=== wrong: also where the random number is equal to the rest :: corners :: equal to the rest
+    levels = lower + (uniform <= a - lower)
=== wrong: floor of the signed number :: levels, bytes, corners :: floor of a negative number
-    a = s * np.abs(gradient) / norm
+    a = s * gradient / norm
-    return norm, (np.sign(gradient) * levels).astype(np.int8)
+    return norm, (levels).astype(np.int8)
=== wrong: an epsilon in the norm :: corners :: levels
+    a = s * np.abs(gradient) / (norm + 1e-8)
=== wrong: the rest in float32 :: corners :: expected 2 at [0], got 1
+    a = (s * np.abs(gradient) / norm).astype(np.float32)
=== wrong: the gradient is overwritten :: levels :: changed its argument gradient
+    sign = np.sign(gradient)
+    a = np.abs(gradient, out=gradient)
+    a *= s / norm
-    return norm, (np.sign(gradient) * levels).astype(np.int8)
+    return norm, (sign * levels).astype(np.int8)
=== wrong: whole numbers in float64 :: bytes :: one byte a number
-        return 0.0, np.zeros(len(gradient), np.int8)
+        return 0.0, np.zeros(len(gradient))
-    return norm, (np.sign(gradient) * levels).astype(np.int8)
+    return norm, np.sign(gradient) * levels
=== wrong: a NaN made a whole number :: corners :: 0 / 0 is NaN
-    if norm == 0:
-        return 0.0, np.zeros(len(gradient), np.int8)
=== wrong: the signed number with a random number added, rounded down :: levels, bytes, corners :: levels
-    levels = lower + (uniform < a - lower)
-    return norm, (np.sign(gradient) * levels).astype(np.int8)
+    return norm, np.floor(s * gradient / norm + uniform).astype(np.int8)
=== right: by np.modf, entry by entry
def qsgd(gradient, s, uniform):
    norm = float(np.sqrt(np.sum(gradient * gradient)))
    levels = np.zeros(gradient.shape, dtype=np.int8)
    for i, (x, u) in enumerate(zip(gradient, uniform)):
        if x != 0:
            rest, whole = np.modf(abs(x) / norm * s)
            level = int(whole) + (1 if u < rest else 0)
            levels[i] = level if x > 0 else -level
    return norm, levels
=== right: the sum with the complement, rounded down
def qsgd(gradient, s, uniform):
    norm = np.sqrt(gradient @ gradient)
    a = s * np.abs(gradient) / max(norm, np.finfo(float).tiny)
    return norm, np.copysign(np.ceil(a - uniform).clip(min=0), gradient).astype("int8")
"""
