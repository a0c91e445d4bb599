ANSWERS = r"""
=== parts
means: m and v are the decayed means of the gradient and of its square
root: m over the root of v, eps outside the root
start: corrected for the start at 0, at the first steps and later
=== base
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    w = w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return w, m, v
=== wrong: eps is always 0.1 :: root, start :: expected
-    w = w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)
+    w = w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + 0.1)
=== wrong: eps inside the root :: root, start :: eps stands inside the root here
+    w = w - lr * m / (1 - beta1**t) / np.sqrt(v / (1 - beta2**t) + eps)
=== wrong: eps is added before v is corrected :: start :: eps was added to the root of v, and that was corrected
+    w = w - lr * np.sqrt(1 - beta2**t) / (1 - beta1**t) * m / (np.sqrt(v) + eps)
=== wrong: t from 0 :: start :: The corrections are those of step t + 1
+    t = t + 1; w = w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)
=== wrong: the corrected means come back :: means :: The corrected mean was returned
+    m, v = m / (1 - beta1**t), v / (1 - beta2**t); w = w - lr * m / (np.sqrt(v) + eps)
=== wrong: (1 - beta)**t :: root, start :: w after adam_step(
+    w = w - lr * m / (1 - beta1)**t / (np.sqrt(v / (1 - beta2)**t) + eps)
=== wrong: t counted from 0, saved from the division by 0 :: start :: The corrections are those of step t - 1
+    t = max(t - 1, 1); w = w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)
=== wrong: the root of the correction is forgotten :: start :: w after adam_step(
+    w = w - lr * (1 - beta2**t) / (1 - beta1**t) * m / (np.sqrt(v) + eps * (1 - beta2**t))
=== wrong: m corrected for 20 steps only :: start :: Only v was corrected
+    m_hat = m / (1 - beta1**t) if t <= 20 else m
+    v_hat = v / (1 - beta2**t) if t <= 1000000000 else v
+    w = w - lr * m_hat / (np.sqrt(v_hat) + eps)
=== wrong: corrected for 1000 steps only :: start :: start at zero
+    m_hat = m / (1 - beta1**t) if t <= 1000 else m
+    v_hat = v / (1 - beta2**t) if t <= 1000 else v
+    w = w - lr * m_hat / (np.sqrt(v_hat) + eps)
=== wrong: moves by the old means :: root, start :: w moved by the means before the step
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    w = w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return w, beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
=== wrong: one v for all elements :: all :: v after adam_step(
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * np.sum(gradient**2)

    return w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v
=== wrong: the betas are exchanged :: all :: This is beta2's mean
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    m = beta2 * m + (1 - beta2) * gradient
    v = beta1 * v + (1 - beta1) * gradient**2
    w = w - lr * m / (1 - beta2**t) / (np.sqrt(v / (1 - beta1**t)) + eps)
    return w, m, v
=== wrong: right, but in place :: means :: adam_step changed its argument w at [0]
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    m += (1 - beta1) * (gradient - m)
    v += (1 - beta2) * (np.square(gradient) - v)
    root = np.sqrt(1 - beta2**t)
    w -= lr * root / (1 - beta1**t) * m / (np.sqrt(v) + eps * root)
    return w, m, v
=== wrong: counts the steps itself :: root, start :: w after adam_step(
steps = 0

def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    global steps
    steps += 1
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    w = w - lr * (m / (1 - beta1**steps)) / (np.sqrt(v / (1 - beta2**steps)) + eps)
    return w, m, v
=== wrong: means of its own :: all :: after adam_step(
means = {"m": 0, "v": 0}

def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    if t == 1:
        means.update(m=0, v=0)
    m = means["m"] = beta1 * means["m"] + (1 - beta1) * gradient
    v = means["v"] = beta2 * means["v"] + (1 - beta2) * gradient**2
    return w - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v
=== wrong: AdaGrad's sum :: all :: v after adam_step(
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    m = beta1 * m + (1 - beta1) * gradient
    v = v + gradient**2
    return w - lr * m / (1 - beta1**t) / (np.sqrt(v) + eps), m, v
=== wrong: the gradient and its square in full :: all :: The gradient was not multiplied by 1 - beta1
-    m = beta1 * m + (1 - beta1) * gradient
-    v = beta2 * v + (1 - beta2) * gradient**2
+    m = beta1 * m + gradient
+    v = beta2 * v + gradient**2
=== right: the other order of operations, eps corrected with it
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    m = m + (1 - beta1) * (gradient - m)
    v = v + (1 - beta2) * (np.square(gradient) - v)
    root = np.sqrt(1 - beta2**t)
    w = w - lr * root / (1 - beta1**t) * m / (np.sqrt(v) + eps * root)
    return w, m, v
=== right: element by element
import math

def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    out = [], [], []
    for w_i, m_i, v_i, g in zip(w, m, v, gradient):
        m_i = beta1 * m_i + (1 - beta1) * g
        v_i = beta2 * v_i + (1 - beta2) * g * g
        step = m_i / (1 - beta1**t) / (math.sqrt(v_i / (1 - beta2**t)) + eps)
        for column, value in zip(out, (w_i - lr * step, m_i, v_i)):
            column.append(value)
    return tuple(np.array(column) for column in out)
=== right: a list is returned, another argument with a default
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps, weight_decay=0.0):
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient * gradient
    return [w - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps) - weight_decay * w, m, v]
"""
