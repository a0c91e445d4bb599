ANSWERS = r"""
=== parts
constant: a constant rate
rising: the rate rises in the warm-up
falling: the rate drops
calls: one gradient for each step, in order
=== base
def corrected_run(w, gradient, rates, momentum):
    v, before = np.zeros_like(w), rates[0]
    for step, lr in enumerate(rates):
        v = momentum * (lr / before) * v + lr * gradient(w, step)
        w = w - v
        before = lr
    return w, v
=== wrong: no correction :: rising, falling :: The correction is missing
-        v = momentum * (lr / before) * v + lr * gradient(w, step)
+        v = momentum * v + lr * gradient(w, step)
=== wrong: the factor upside down :: rising, falling :: upside down
+        v = momentum * (before / lr) * v + lr * gradient(w, step)
=== wrong: the new gradient is corrected, too :: rising, falling :: The new gradient was corrected, too
+        v = (lr / before) * (momentum * v + lr * gradient(w, step))
=== wrong: corrected only where the rate rises :: falling :: missing where the rate is falling
+        v = momentum * (max(lr / before, 1)) * v + lr * gradient(w, step)
=== wrong: corrected only where the rate falls :: rising :: missing where the rate is rising
+        v = momentum * (min(lr / before, 1)) * v + lr * gradient(w, step)
=== wrong: divides by the momentum :: constant :: expected
+        v = momentum * (lr / before) * (v + before / np.float64(momentum) * gradient(w, step))
=== wrong: up the slope :: constant, rising, falling :: up the slope
+        v = momentum * (lr / before) * v - lr * gradient(w, step)
=== wrong: an average of gradients :: constant, rising, falling :: that is an average
+        v = momentum * (lr / before) * v + (1 - momentum) * lr * gradient(w, step)
=== wrong: corrected only where the rate changes by more than 5 % :: rising :: expected
+        before = lr if abs(lr / before - 1) < 0.05 else before
+        v = momentum * (lr / before) * v + lr * gradient(w, step)
=== wrong: a factor of at most 3 :: rising, falling :: expected
+        v = momentum * np.clip(lr / before, 1 / 3, 3) * v + lr * gradient(w, step)
=== wrong: the factor is at most 10 :: rising :: expected
+        v = momentum * min(10, lr / before) * v + lr * gradient(w, step)
=== wrong: corrected by the first rate, each time :: rising, falling :: corrected by the rate of the step before
-        before = lr
=== wrong: chapter 02's sign :: constant, rising, falling :: The sign of v is wrong
-    return w, v
+    return w, -v
=== wrong: the sum u is returned :: constant, rising, falling :: This is the sum u
+    return w, v / lr
=== wrong: only w is returned :: constant, rising, falling :: expected (w, v)
+    return w
=== wrong: writes into the initial weights :: constant :: changed its argument w
-        w = w - v
+        w -= v
=== wrong: two gradients a step :: calls :: compute it once a step
         v = momentum * (lr / before) * v + lr * gradient(w, step)
+        gradient(w, step)
=== wrong: all gradients at the initial weights :: all :: expected
     v, before = np.zeros_like(w), rates[0]
+    start = w
-        v = momentum * (lr / before) * v + lr * gradient(w, step)
+        v = momentum * (lr / before) * v + lr * gradient(start, step)
=== right: the rate outside, and v computed from u at the end
def corrected_run(w, gradient, rates, momentum):
    u = 0 * w
    for step in range(len(rates)):
        u = momentum * u + gradient(w, step)
        w = w - rates[step] * u
    return w, rates[-1] * u
=== right: the velocity is taken from the last two weights
def corrected_run(w, gradient, rates, momentum):
    old, new = w, w - rates[0] * gradient(w, 0)
    for step in range(1, len(rates)):
        ratio = rates[step] / rates[step - 1]
        old, new = new, new + momentum * ratio * (new - old) - rates[step] * gradient(new, step)
    return [new, old - new]
"""
