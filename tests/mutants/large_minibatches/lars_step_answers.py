ANSWERS = r"""
=== parts
first: a first step: the ratio of each matrix, and 1 for biases
many: many steps with momentum, while the rate changes
zero: norms of 0 have ratio 1
unit: another unit of a gradient makes the same step
place: in place: the same array objects, and the gradients as they were
memory: memory for a few arrays of one layer
=== base
def lars_step(weights, gradients, velocities, lr, momentum, weight_decay, trust):
    for i, (w, g, v) in enumerate(zip(weights, gradients, velocities)):
        ratio, a, b = 1.0, np.linalg.norm(w), np.linalg.norm(g)
        if w.ndim > 1 and a > 0 and b > 0:
            ratio = trust * a / (b + weight_decay * a)
        v *= momentum
        v += lr * ratio * (g + weight_decay * w)
        w -= v
=== wrong: velocities of its own :: first, many, zero, unit, place :: expected
-        v *= momentum
+        own = lars_step.__dict__.setdefault(str(id(w)), (w, np.zeros_like(w)))[1]
+        v[...] = own * momentum
-        w -= v
+        own[...] = v
+        w -= v
=== wrong: changes nothing :: all :: velocities are as they were
+        w, v = w.copy(), momentum * v
=== wrong: one ratio for all layers :: first, many, zero, unit, place :: One ratio was taken for all layers
 def lars_step(weights, gradients, velocities, lr, momentum, weight_decay, trust):
+    A, B = (np.sqrt(sum((x**2).sum() for x in xs)) for xs in (weights, gradients))
-            ratio = trust * a / (b + weight_decay * a)
+            ratio = trust * A / (B + weight_decay * A)
=== wrong: no weight decay in the denominator :: first, many, zero, place :: missing in the denominator
-            ratio = trust * a / (b + weight_decay * a)
+            ratio = trust * a / b
=== wrong: the norm of the sum in the denominator :: first, many, zero, place :: not the norm of the sum
+            ratio = trust * a / np.linalg.norm(g + weight_decay * w)
=== wrong: the ratio upside down :: first, many, zero, unit, place :: The ratio is upside down
+            ratio = trust * (b + weight_decay * a) / a
=== wrong: squared norms :: first, many, zero, unit, place :: The norms were squared
+            ratio = trust * a**2 / (b**2 + weight_decay * a**2)
=== wrong: an epsilon beside the norm :: many, unit :: expected
+            ratio = trust * a / (b + weight_decay * a + 1e-8)
=== wrong: the ratio is limited to 10 :: unit :: expected
+            ratio = min(10.0, trust * a / (b + weight_decay * a))
=== wrong: plain SGD :: first, many, zero, unit, place :: this is SGD
+            unused = trust * a / (b + weight_decay * a)
=== wrong: the weight decay without the ratio :: first, many, zero, place :: it is a factor of g + decay * w
-        v += lr * ratio * (g + weight_decay * w)
+        v += lr * (ratio * g + weight_decay * w)
=== wrong: the weight decay only in the ratio :: first, many, zero, place :: the weight decay is to be in the step, too
+        v += lr * ratio * g
=== wrong: no weight decay for biases :: first, many, place :: Biases are to have weight decay as well
+        v += lr * ratio * (g + (w.ndim > 1) * weight_decay * w)
=== wrong: writes weight decay into the gradient :: place :: writes into the gradient
+        g += weight_decay * w
+        v += lr * ratio * g
=== wrong: the rate outside the velocity :: first, many, zero, unit, place
:: The learning rate belongs into the velocity
-        v += lr * ratio * (g + weight_decay * w)
-        w -= v
+        v += ratio * (g + weight_decay * w)
+        w -= lr * v
=== wrong: no exception for a norm of 0 :: zero :: A matrix of zeros would never move
-        if w.ndim > 1 and a > 0 and b > 0:
-            ratio = trust * a / (b + weight_decay * a)
+        if w.ndim > 1:
+            ratio = trust * a / np.float64(b + weight_decay * a)
=== wrong: biases have a ratio, too :: first, many, place :: with one axis have the ratio 1
-        if w.ndim > 1 and a > 0 and b > 0:
+        if a > 0 and b > 0:
=== wrong: a matrix of one row or column is taken for a bias :: first, many, unit, place :: this is SGD
+        if min(w.shape) > 1 and w.ndim > 1 and a > 0 and b > 0:
=== wrong: makes new arrays, and puts them into the lists :: place, memory :: another array object than before
-        w -= v
+        weights[i] = w - v
=== wrong: up the slope :: first, many, zero, unit, place :: The step goes up
+        w += v
=== wrong: copies of all layers :: memory :: All layers seem to be copied
-    for i, (w, g, v) in enumerate(zip(weights, gradients, velocities)):
+    new = []
+    for w, g, v in zip(weights, gradients, velocities):
-        v *= momentum
-        v += lr * ratio * (g + weight_decay * w)
+        new.append(momentum * v + lr * ratio * (g + weight_decay * w))
+    for w, v, fresh in zip(weights, velocities, new):
+        v[...] = fresh
=== wrong: the old velocity :: first, many, zero, unit, place :: moved by the old velocity
             ratio = trust * a / (b + weight_decay * a)
+        before = v.copy()
-        w -= v
+        w -= before
=== right: without a name for the ratio, by whole-array assignments
def lars_step(weights, gradients, velocities, lr, momentum, weight_decay, trust):
    def size(x):
        return float(np.sqrt(np.sum(x * x)))

    for layer in range(len(weights)):
        w, g = weights[layer], gradients[layer]
        local = lr
        if g.ndim == 2 and size(w) * size(g) != 0:
            local = lr * trust / (size(g) / size(w) + weight_decay)
        velocities[layer][...] = momentum * velocities[layer] + local * (g + weight_decay * w)
        weights[layer][...] = w - velocities[layer]
=== right: row by row, the last layer first
def lars_step(weights, gradients, velocities, lr, momentum, weight_decay, trust):
    for w, g, v in reversed(list(zip(weights, gradients, velocities))):
        rate = lr
        a, b = np.linalg.norm(w.ravel()), np.linalg.norm(g.ravel())
        if w.ndim > 1 and a and b:
            rate = lr * trust * a / (b + weight_decay * a)
        for row in range(len(w)):
            v[row] = momentum * v[row] + rate * (g[row] + weight_decay * w[row])
            w[row] -= v[row]
"""
