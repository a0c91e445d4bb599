ANSWERS = r"""
=== parts
first: the first step: which entries are sent
many: many steps: what was kept is sent later
bits: to the bit: each entry is sent or kept, and nothing is lost
corners: nothing to send, everything, no entries, a threshold of 0
=== base
def sparsify(gradient, residual, threshold):
    residual += gradient
    indices = np.flatnonzero(np.abs(residual) > threshold)
    values = residual[indices]
    residual[indices] = 0
    return indices, values
=== wrong: a residual of its own :: many :: expected
-    residual += gradient
+    _, own = sparsify.__dict__.setdefault(str(id(residual)), (residual, np.zeros_like(residual)))
+    residual[...] = own + gradient
-    residual[indices] = 0
+    residual[indices] = 0
+    own[...] = residual
=== wrong: no memory: what is small is dropped :: many, bits, corners :: never sent
+    residual[...] = gradient
=== wrong: the residual is a new array :: many, bits, corners :: Nothing is kept
+    residual = residual + gradient
=== wrong: the gradient is overwritten :: bits, corners :: the gradient was changed
+    gradient += residual
+    residual[...] = gradient
=== wrong: the residual is subtracted :: many, bits, corners :: add it
+    residual[...] = gradient - residual
=== wrong: no magnitude :: all :: compares the magnitude
-    indices = np.flatnonzero(np.abs(residual) > threshold)
+    indices = np.flatnonzero(residual > threshold)
=== wrong: >= in place of > :: all :: > and not >=
+    indices = np.flatnonzero(np.abs(residual) >= threshold)
=== wrong: chosen by the gradient alone :: many, bits, corners :: The gradient alone was compared
+    indices = np.flatnonzero(np.abs(gradient) > threshold)
=== wrong: the square is compared :: all :: compare the magnitude
+    indices = np.flatnonzero(residual**2 > threshold)
=== wrong: squares are compared :: corners :: expected
+    indices = np.flatnonzero(residual**2 > threshold**2)
=== wrong: the gradient is sent, not the total :: many, bits :: what waited in the residual is lost
-    values = residual[indices]
+    values = gradient[indices]
=== wrong: in float64 :: bits, corners :: float64
+    values = residual[indices].astype(np.float64)
=== wrong: the sent entries stay in the residual :: many, bits, corners :: they would be sent again
-    residual[indices] = 0
=== wrong: the threshold stays behind :: all :: The threshold was subtracted
-    values = residual[indices]
-    residual[indices] = 0
+    rest = np.sign(residual[indices]) * np.float32(threshold)
+    values = residual[indices] - rest
+    residual[indices] = rest
=== wrong: the threshold with the sign is sent :: all :: threshold was sent in place of the entry
+    values = np.sign(residual[indices]) * np.float32(threshold)
+    residual[indices] -= values
=== wrong: by subtraction, which rounds :: bits :: residual
 def sparsify(gradient, residual, threshold):
+    before = residual.copy()
-    residual[indices] = 0
+    sent = np.zeros_like(residual)
+    sent[indices] = values
+    residual[...] = gradient - (sent - before)
=== wrong: compared before the total is rounded :: corners :: round it once, then compare
+    exact = residual.astype(float) + gradient
-    indices = np.flatnonzero(np.abs(residual) > threshold)
+    indices = np.flatnonzero(np.abs(exact) > threshold)
=== wrong: nothing is kept where nothing is sent :: many, bits, corners :: expected
+    if not (np.abs(gradient + residual) > threshold).any():
+        return np.zeros(0, int), np.zeros(0, np.float32)
=== wrong: a mask in place of indices :: all :: np.flatnonzero makes indices
-    return indices, values
+    return np.abs(values) > 0, values
=== wrong: the indices by magnitude :: all :: ascending order
     indices = np.flatnonzero(np.abs(residual) > threshold)
+    indices = indices[np.argsort(-np.abs(residual[indices]))]
=== right: entry by entry
def sparsify(gradient, residual, threshold):
    indices, values = [], []
    for i in range(len(gradient)):
        total = gradient[i] + residual[i]
        if abs(total) > threshold:
            indices.append(i)
            values.append(total)
            residual[i] = 0
        else:
            residual[i] = total
    return np.array(indices, dtype=int), np.array(values, dtype=np.float32)
=== right: two masks, and a product with zero
def sparsify(gradient, residual, threshold):
    total = gradient + residual
    keep = (total <= threshold) & (total >= -threshold)
    np.copyto(residual, np.where(keep, total, np.float32(0)))
    (where,) = np.nonzero(~keep)
    return where.astype(np.uint32), np.take(total, where)
"""
