ANSWERS = r"""
=== parts
smooth: smooth functions
scale: any scale of x and of f
one: one wrong element among many
kinks: kinks
=== base
def check_gradient(f, gradient, x):
    h = 1e-5 * np.abs(x).max()
    E = h * np.eye(len(x))
    left = np.array([(f(x) - f(x - e)) / h for e in E])
    right = np.array([(f(x + e) - f(x)) / h for e in E])
    g = gradient(x)
    size = max(np.abs(g).max(), np.abs(left).max(), np.abs(right).max())
    return bool(np.all((np.minimum(left, right) - 1e-3 * size <= g) & (g <= np.maximum(left, right) + 1e-3 * size)))
=== wrong: a fixed step :: scale, kinks :: h has to fit the size of x
def check_gradient(f, gradient, x):
    h = 1e-5
    slopes = np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(len(x))])
    g = gradient(x)
    return bool(np.abs(slopes - g).max() <= 1e-3 * max(np.abs(g).max(), np.abs(slopes).max()))
=== wrong: an absolute tolerance :: scale, kinks :: about 1e-30
def check_gradient(f, gradient, x):
    h = 1e-5 * np.abs(x).max()
    slopes = np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(len(x))])
    g = gradient(x)
    return bool(np.allclose(slopes, g))
=== wrong: the mean of the differences :: one, kinks :: look at the largest
def check_gradient(f, gradient, x):
    h = 1e-5 * np.abs(x).max()
    slopes = np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(len(x))])
    g = gradient(x)
    return bool(np.abs(slopes - g).mean() <= 1e-3 * np.abs(g).max())
=== wrong: every element relative to itself :: one, kinks :: Divide by the largest element
def check_gradient(f, gradient, x):
    h = 1e-5 * np.abs(x).max()
    slopes = np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(len(x))])
    g = gradient(x)
    return bool((np.abs(slopes - g) < 1e-3 * np.abs(g)).all())
=== wrong: kinks are skipped :: kinks :: A kink does not excuse everything
-    return bool(np.all((np.minimum(left, right) - 1e-3 * size <= g) & (g <= np.maximum(left, right) + 1e-3 * size)))
+    return bool(np.all((np.abs(g - left) <= 1e-3 * size) | (np.abs(left - right) > 1e-3 * size)))
=== wrong: every element relative to itself, but 0 is 0 :: one :: lost in rounding
+    size = np.max(np.abs([left, right, g]), axis=0)
+    return bool(np.all((np.minimum(left, right) - 1e-3 * size <= g) & (g <= np.maximum(left, right) + 1e-3 * size)))
=== wrong: only what is too large is wrong :: smooth, one :: planted bug was missed
+    return bool(np.all(g - np.maximum(left, right) <= 1e-3 * size))
=== wrong: only what is too small is wrong :: kinks :: planted bug was missed
+    return bool(np.all(np.minimum(left, right) - g <= 1e-3 * size))
=== wrong: at a kink the left or the right slope, nothing between :: kinks :: any slope between the left and
+    return bool(np.all((np.abs(g - left) <= 1e-3 * size) | (np.abs(g - right) <= 1e-3 * size)))
=== wrong: the left slope is taken for the smaller one :: kinks :: either may be the larger one
+    return bool(np.all((g >= left - 1e-3 * size) & (g <= right + 1e-3 * size)))
=== wrong: forward differences :: kinks :: any slope between the left and
+    return bool(np.all(np.abs(g - right) <= 1e-3 * size))
=== wrong: a verdict for each element :: all :: np.all makes one of them
+    return np.abs(g - right) <= 1e-3 * size
=== wrong: a tolerance of 1.5 % :: smooth, one :: Is the tolerance below 1 %?
+    size = 15 * size
+    return bool(np.all((np.minimum(left, right) - 1e-3 * size <= g) & (g <= np.maximum(left, right) + 1e-3 * size)))
=== wrong: a step that is too small :: all :: false alarm
def check_gradient(f, gradient, x):
    h = 1e-15 * np.abs(x).max()
    slopes = np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(len(x))])
    g = gradient(x)
    return bool(np.abs(slopes - g).max() <= 1e-3 * max(np.abs(g).max(), np.abs(slopes).max()))
=== wrong: a step from the largest element, which may be 0 :: scale :: none need be positive
-    h = 1e-5 * np.abs(x).max()
+    h = 1e-5 * x.max()
-    return bool(np.all((np.minimum(left, right) - 1e-3 * size <= g) & (g <= np.maximum(left, right) + 1e-3 * size)))
+    return bool(np.all((g >= np.minimum(left, right) - 1e-3 * size) & (g <= np.maximum(left, right) + 1e-3 * size)))
=== wrong: a large step :: smooth :: One element is wrong by 1.02 %
+    h = 0.05 * np.abs(x).max()
-    return bool(np.all((np.minimum(left, right) - 1e-3 * size <= g) & (g <= np.maximum(left, right) + 1e-3 * size)))
+    return bool(np.all((g >= np.minimum(left, right) - 1e-3 * size) & (g <= np.maximum(left, right) + 1e-3 * size)))
=== wrong: a step from each element's own size :: scale :: one element of x alone may be 0
def check_gradient(f, gradient, x):
    h = np.where(x == 0, 1e-5, 1e-5 * np.abs(x))
    E = np.diag(h)
    left = np.array([(f(x) - f(x - e)) / e.max() for e in E])
    right = np.array([(f(x + e) - f(x)) / e.max() for e in E])
    g = gradient(x)
    size = max(np.abs(g).max(), np.abs(left).max(), np.abs(right).max())
    return bool(np.all((g >= np.minimum(left, right) - 1e-3 * size) & (g <= np.maximum(left, right) + 1e-3 * size)))
=== wrong: NaN is left out of the largest difference :: one, kinks :: A comparison with NaN is False
def check_gradient(f, gradient, x):
    h = 1e-5 * np.abs(x).max()
    slopes = np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(len(x))])
    g = gradient(x)
    return bool(np.nanmax(np.abs(slopes - g)) <= 1e-3 * np.abs(slopes).max())
=== wrong: x is put back by arithmetic :: smooth :: x + h - h is not x
def check_gradient(f, gradient, x):
    h, sides = 1e-5 * np.abs(x).max(), []
    middle = f(x)
    for i in range(len(x)):
        x[i] += h
        right = (f(x) - middle) / h
        x[i] -= 2 * h
        left = (middle - f(x)) / h
        x[i] += h
        sides.append((min(left, right), max(left, right)))
    g = gradient(x)
    size = np.abs(sides).max()
    return bool(all(a - 1e-3 * size <= c <= b + 1e-3 * size for (a, b), c in zip(sides, g)))
=== wrong: x is not put back :: smooth, kinks :: check_gradient changed its argument x at [0]
def check_gradient(f, gradient, x):
    h, g, slopes = 1e-5 * np.abs(x).max(), gradient(x), []
    for i in range(len(x)):
        before = f(x)
        x[i] += h
        slopes.append((f(x) - before) / h)
    return bool(np.abs(slopes - g).max() <= 1e-3 * np.abs(slopes).max())
=== wrong: the norm of the differences, 1 % :: smooth, one, kinks :: planted bug was missed
def check_gradient(f, gradient, x):
    h = 1e-5 * np.abs(x).max()
    slopes = np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(len(x))])
    g = gradient(x)
    return bool(np.linalg.norm(slopes - g) <= 0.01 * np.linalg.norm(slopes))
=== wrong: only the direction :: smooth, one, kinks :: planted bug was missed
def check_gradient(f, gradient, x):
    h = 1e-5 * np.abs(x).max()
    slopes = np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(len(x))])
    g = gradient(x)
    return bool(slopes @ g >= 0.9999 * np.linalg.norm(slopes) * np.linalg.norm(g) > 0)
=== wrong: the slope is not divided by 2 :: all :: false alarm
def check_gradient(f, gradient, x):
    h = 1e-5 * np.abs(x).max()
    slopes = np.array([(f(x + e) - f(x - e)) / h for e in h * np.eye(len(x))])
    g = gradient(x)
    return bool(np.abs(slopes - g).max() <= 1e-3 * max(np.abs(g).max(), np.abs(slopes).max()))
=== wrong: the error instead of a verdict :: all :: expected True, got
def check_gradient(f, gradient, x):
    h = 1e-5 * np.abs(x).max()
    slopes = np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(len(x))])
    g = gradient(x)
    return np.abs(slopes - g).max()
=== wrong: NaN is taken for 0 :: one :: A comparison with NaN is False
-    g = gradient(x)
+    g = np.nan_to_num(gradient(x))
-    return bool(np.all((np.minimum(left, right) - 1e-3 * size <= g) & (g <= np.maximum(left, right) + 1e-3 * size)))
+    return bool(np.all((g >= np.minimum(left, right) - 1e-3 * size) & (g <= np.maximum(left, right) + 1e-3 * size)))
=== right: x is changed and put back from a kept value, numpy's truth value
def check_gradient(f, gradient, x):
    h, middle, good, sides = 1e-6 * np.abs(x).max(), f(x), True, []
    for i, old in enumerate(x.tolist()):
        x[i] = old + h
        right = (f(x) - middle) / (x[i] - old)
        x[i] = old - h
        left = (middle - f(x)) / (old - x[i])
        x[i] = old
        sides.append([left, right])
    low, high, g = np.min(sides, axis=1), np.max(sides, axis=1), gradient(x)
    tolerance = 4e-3 * np.abs(sides).max()
    return np.logical_and(g > low - tolerance, g < high + tolerance).all()
=== right: central differences, one-sided ones where they fail
def check_gradient(f, gradient, x):
    g, h, e = gradient(x), 6e-6 * np.linalg.norm(x) / np.sqrt(len(x)), np.eye(len(x))
    central = np.array([f(x + h * v) - f(x - h * v) for v in e]) / (2 * h)
    size = np.max(np.abs(central))
    for i in np.flatnonzero(~(np.abs(central - g) <= 1e-3 * size)):
        sides = sorted([(f(x + h * e[i]) - f(x)) / h, (f(x) - f(x - h * e[i])) / h])
        if not sides[0] - 1e-3 * size <= g[i] <= sides[1] + 1e-3 * size:
            return False
    return True
=== right: extrapolated one-sided slopes, 1 or 0
def check_gradient(f, gradient, x, tolerance=4e-3):
    g, h, middle = gradient(x), 1e-4 * max(abs(x)), f(x)

    def slope(i, step):
        near, far = x.copy(), x.copy()
        near[i] += step
        far[i] += 2 * step
        return 2 * (f(near) - middle) / step - (f(far) - middle) / (2 * step)

    sides = [sorted([slope(i, -h), slope(i, h)]) for i in range(len(x))]
    size = np.abs([*sides, *zip(g, g)]).max()
    return int(all(a - tolerance * size <= c <= b + tolerance * size for (a, b), c in zip(sides, g)))
"""
