ANSWERS = r"""
=== parts
constant: as long as the rate is constant, the velocity form
changing: where the rate changes, the path of PyTorch's form
=== base
def corrected_step(w, v, gradient, lr, lr_before, mu):
    v = mu * v * lr / lr_before - lr * gradient; w = w + v
    return w, v
=== wrong: small changes of the rate are not corrected :: changing :: still holds the old rate
-    v = mu * v * lr / lr_before - lr * gradient; w = w + v
+    lr_before = lr if abs(lr / lr_before - 1) < 0.01 else lr_before
+    v = mu * v * lr / lr_before - lr * gradient; w = w + v
=== wrong: the ratio of the rates is kept between 0.01 and 100 :: changing :: corrected_step
+    v = mu * v * np.clip(lr / lr_before, 0.01, 100) - lr * gradient; w = w + v
=== wrong: the momentum is thrown away :: changing :: The old velocity was thrown away
+    v = (mu * v if lr == lr_before else 0.0) - lr * gradient; w = w + v
=== wrong: corrected twice :: changing :: corrected twice
+    v = mu * v * (lr / lr_before) ** 2 - lr * gradient; w = w + v
=== wrong: only where the rate rises :: changing :: it still holds the old rate
+    v = mu * v * max(1.0, lr / lr_before) - lr * gradient; w = w + v
=== wrong: the sum of gradients comes back :: all :: PyTorch's sum of gradients
+    v = -mu * v / lr_before + gradient; w = w - lr * v
=== wrong: the velocity is taken back to the old rate :: changing :: not the one it moved by
+    v = mu * lr / lr_before * v - lr * gradient; w = w + v; v = v * lr_before / lr
=== wrong: the factor is upside down :: changing :: The factor is upside down
+    v = mu * lr_before / lr * v - lr * gradient; w = w + v
=== wrong: the new gradient is rescaled too :: changing :: The new gradient was rescaled too
+    v = (mu * v - lr * gradient) * lr / lr_before; w = w + v
=== wrong: the gradient has the old rate :: changing :: The gradient was multiplied by the old rate
+    v = mu * v - lr_before * gradient; w = w + v
=== wrong: the correction is not kept :: changing :: but the uncorrected one was returned
+    w = w + mu * lr / lr_before * v - lr * gradient; v = mu * v - lr * gradient
=== wrong: the correction comes after the move :: changing :: w moved by the uncorrected velocity
+    w = w + mu * v - lr * gradient; v = mu * lr / lr_before * v - lr * gradient
=== wrong: PyTorch's form :: all :: This is PyTorch's form
+    v = mu * v + gradient; w = w - lr * v
=== wrong: without mu :: all :: The old velocity was not multiplied by mu
+    v = lr / lr_before * v - lr * gradient; w = w + v
=== wrong: right, but in place :: constant :: corrected_step changed its argument w at [0]
+    v *= lr / lr_before
+    for i in range(len(w)):
+        v[i] = mu * v[i] - lr * gradient[i]
+        w[i] += v[i]
=== wrong: only where the rate falls :: changing :: it still holds the old rate
+    v = mu * v * min(1.0, lr / lr_before) - lr * gradient; w = w + v
=== wrong: by the difference of the rates :: changing :: after corrected_step(
+    v = mu * v * (1 + lr - lr_before) - lr * gradient; w = w + v
=== right: through PyTorch's form
def corrected_step(w, v, gradient, lr, lr_before, mu):
    total = gradient - mu * v / lr_before
    w = w - lr * total
    return w, -lr * total
=== right: element by element, in copies
def corrected_step(w, v, gradient, lr, lr_before, mu):
    w, v = w.copy(), v * (lr / lr_before)
    for i in range(len(w)):
        v[i] = mu * v[i] - lr * gradient[i]
        w[i] += v[i]
    return [w, v]
"""
