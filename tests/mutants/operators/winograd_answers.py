ANSWERS = r"""
=== parts
outputs: the outputs are those of the direct sum
products: 4 multiplications for 2 outputs
filter: the filter is transformed once
=== wrong: the direct sum :: products, filter :: as many as the direct sum
def winograd(x, w):
    return [x[i] * w[0] + x[i + 1] * w[1] + x[i + 2] * w[2] for i in range(len(x) - 2)]
=== wrong: numpy's correlation :: products, filter :: as many as the direct sum
def winograd(x, w):
    return np.convolve(np.array(x), np.array(w)[::-1], "valid").tolist() if len(x) > 2 else []
=== wrong: converted to numbers that do not count :: products, filter :: converted to another type :: raised
def winograd(x, w):
    x = np.array(x, float)
    return [float(x[i] * w[0] + x[i + 1] * w[1] + x[i + 2] * w[2]) for i in range(len(x) - 2)]
=== base
def winograd(x, w):
    g1, g2 = (w[0] + w[1] + w[2]) * 0.5, (w[0] - w[1] + w[2]) * 0.5
    y = []
    for i in range(0, len(x) - 3, 2):
        m1 = (x[i] - x[i + 2]) * w[0]
        m2 = (x[i + 1] + x[i + 2]) * g1
        m3 = (x[i + 2] - x[i + 1]) * g2
        m4 = (x[i + 1] - x[i + 3]) * w[2]
        y += [m1 + m2 + m3, m2 - m3 - m4]
    if len(x) % 2 and len(x) > 2:
        y.append(x[-3] * w[0] + x[-2] * w[1] + x[-1] * w[2])
    return y
=== wrong: the weights are transformed for every tile :: filter :: transform them once, before the loop
-        m1 = (x[i] - x[i + 2]) * w[0]
+        g1, g2 = (w[0] + w[1] + w[2]) * 0.5, (w[0] - w[1] + w[2]) * 0.5
+        m1 = (x[i] - x[i + 2]) * w[0]
=== wrong: the products are halved :: products, filter :: A product that is halved counts twice
-    g1, g2 = (w[0] + w[1] + w[2]) * 0.5, (w[0] - w[1] + w[2]) * 0.5
+    g1, g2 = w[0] + w[1] + w[2], w[0] - w[1] + w[2]

-        m2 = (x[i + 1] + x[i + 2]) * g1
-        m3 = (x[i + 2] - x[i + 1]) * g2
+        m2 = (x[i + 1] + x[i + 2]) * g1 / 2
+        m3 = (x[i + 2] - x[i + 1]) * g2 / 2
=== wrong: no halves :: all :: The transformed weights 1 and 2 have a factor 1 / 2
+    g1, g2 = w[0] + w[1] + w[2], w[0] - w[1] + w[2]
=== wrong: the fourth product has the wrong sign :: all :: The fourth product is (x[1] - x[3]) w[2]
-        m4 = (x[i + 1] - x[i + 3]) * w[2]
+        m4 = (x[i + 3] - x[i + 1]) * w[2]
=== wrong: the third product is added twice :: all :: The third product is subtracted in the second output
-        y += [m1 + m2 + m3, m2 - m3 - m4]
+        y += [m1 + m2 + m3, m2 + m3 - m4]
=== wrong: the outputs of a tile are interchanged :: all :: The two outputs of each tile are interchanged
+        y += [m2 - m3 - m4, m1 + m2 + m3]
=== wrong: four products for each output :: products, filter :: The outputs of a tile share its four products
+        y.append(m1 + m2 + m3)
+        m2 = (x[i + 1] + x[i + 2]) * g1
+        m3 = (x[i + 2] - x[i + 1]) * g2
+        m4 = (x[i + 1] - x[i + 3]) * w[2]
+        m1 = (x[i] - x[i + 2]) * w[0]
+        y.append(m2 - m3 - m4)
=== wrong: the filter is turned round, as in a convolution of mathematics :: all :: The filter was turned round
-    y = []
+    y = []
+    w = w[::-1]
=== wrong: an output that is left over is forgotten :: outputs, products, filter :: A last output that is left over
-    if len(x) % 2 and len(x) > 2:
+    if False:
=== wrong: an output that is left over for any odd length :: outputs :: list index out of range :: raised
+    if len(x) % 2:
=== wrong: the output that is left over stays None :: all :: expected a list of numbers, got None among them
-    if len(x) % 2 and len(x) > 2:
-        y.append(x[-3] * w[0] + x[-2] * w[1] + x[-1] * w[2])
+    y += [None] * (len(x) % 2)
=== wrong: one output for two numbers :: all :: expected
-    return y
+    return y or [0.0]
=== wrong: pairs share one product only :: products, filter :: multiplied once, by a transformed weight
def winograd(x, w):
    y = []
    for i in range(0, len(x) - 3, 2):
        both = (x[i + 1] + x[i + 2]) * w[1]
        y.append(x[i] * w[0] + x[i + 1] * w[1] + x[i + 2] * w[2])
        y.append(both - x[i + 1] * w[1] + x[i + 1] * w[0] + x[i + 3] * w[2])
    return y + [x[-3] * w[0] + x[-2] * w[1] + x[-1] * w[2] for _ in range(len(x) % 2 and len(x) > 2)]
=== wrong: tiles overlap by one too few :: all :: expected
-    for i in range(0, len(x) - 3, 2):
+    for i in range(0, len(x) - 3, 3):
=== wrong: takes the numbers out of the caller's list :: outputs :: changed its argument x
def winograd(x, w):
    g1, g2 = (w[0] + w[1] + w[2]) / 2, (w[0] - w[1] + w[2]) / 2
    y = []
    while len(x) > 3:
        a, b, (c, d) = x.pop(0), x.pop(0), x[:2]
        m1, m2, m3, m4 = (a - c) * w[0], (b + c) * g1, (c - b) * g2, (b - d) * w[2]
        y += [m1 + m2 + m3, m2 - m3 - m4]
    return y + [sum(p * q for p, q in zip(x, w)) for _ in range(len(x) == 3)]
=== right: a last tile with a zero
def winograd(x, w):
    n = len(x)
    if n < 3:
        return []
    x = [*x, x[0] - x[0]] if n % 2 else x
    both = (w[0] + w[2]) / 2
    half = 0.5 * w[1]
    g = [w[0], both + half, both - half, w[2]]
    y = []
    for a, b, c, d in zip(x[0::2], x[1::2], x[2::2], x[3::2]):
        m = [u * v for u, v in zip((a - c, b + c, c - b, b - d), g)]
        y += [sum(m[:3]), m[1] - m[2] - m[3]]
    return y[: n - 2]
=== right: arrays of objects, as in the paper with matrices of signs
def winograd(x, w):
    n, kind = len(x), object if type(x[0] if x else 0.0) is not float else float
    outputs = max(0, n - 2)
    x, w = np.array(x + [0.0] * (n % 2), dtype=kind), np.array(w, dtype=kind)
    tiles = np.array([x[i : i + 4] for i in range(0, outputs, 2)], dtype=kind).reshape(-1, 4).T
    a, b, c, d = tiles
    u = np.stack([a - c, b + c, c - b, b - d])
    v = np.array([w[0], (w[0] + w[1] + w[2]) / 2, (w[0] - w[1] + w[2]) / 2, w[2]], dtype=kind)
    m = u * v[:, None]
    return np.stack([m[0] + m[1] + m[2], m[1] - m[2] - m[3]], 1).ravel()[:outputs]
=== right: F(4, 3), six products for four outputs, with additions in place of constants
def winograd(x, w):
    p, q, r = [each / 24 for each in w]
    times = lambda k, v: sum([v] * (k - 1), v)
    g = [times(6, p), -times(4, p + q + r), times(4, q - p - r), p + q + q + times(4, r), p - q - q + times(4, r), w[2]]
    y, i = [], 0
    while len(x) - i >= 6:
        a, b, c, d, e, f = x[i : i + 6]
        four = times(4, c)
        sums = [times(4, a) - times(5, c) + e, e + d - four - times(4, b), e - d - four + times(4, b),
                e - c + d + d - b - b, e - c - d - d + b + b, times(4, b) - times(5, d) + f]
        m = [u * v for u, v in zip(sums, g)]
        plus, minus, more, less = m[1] + m[2], m[1] - m[2], m[3] + m[4], m[3] - m[4]
        y += [m[0] + plus + more, minus + less + less, plus + times(4, more), minus + times(8, less) + m[5]]
        i += 4
    while len(x) - i >= 4:
        a, b, c, d = x[i : i + 4]
        m1, m2, m3 = (a - c) * w[0], (b + c) * times(12, p + q + r), (c - b) * times(12, p - q + r)
        y += [m1 + m2 + m3, m2 - m3 - (b - d) * w[2]]
        i += 2
    return y + [x[i] * w[0] + x[i + 1] * w[1] + x[i + 2] * w[2] for i in range(i, len(x) - 2)]
"""
