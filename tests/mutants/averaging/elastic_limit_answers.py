ANSWERS = r"""
=== parts
alone: one worker with a pull in every step
several: several workers with a pull in every step
periods: longer periods
=== base
def elastic_limit(p, lr, curvature, period):
    shrink = 1 - lr * curvature
    q, s = shrink ** (period - 1), shrink**period
    return (2 + 2 * s) / (2 * q + p + p * s)
=== wrong: the condition of one worker for all :: several, periods :: limit of one worker
def elastic_limit(p, lr, curvature, period):
    a = lr * curvature
    return (4 - 2 * a) / (4 - a)
=== wrong: the condition of period 1 for all :: periods :: a pull in every step
def elastic_limit(p, lr, curvature, period):
    a = lr * curvature
    return (4 - 2 * a) / (2 + 2 * p - p * a)
=== wrong: one plain step too many :: all :: one of the `period` steps
-    q, s = shrink ** (period - 1), shrink**period
+    q, s = shrink ** (period), shrink**(period + 1)
=== wrong: where the smaller eigenvalue is 0 :: all :: here it is 0
-    return (2 + 2 * s) / (2 * q + p + p * s)
+    return s / (q + p * s)
=== wrong: rounded to six digits after the point :: several :: expected :: hidden only
+    return round((2 + 2 * s) / (2 * q + p + p * s), 6)
=== wrong: a search on a coarse grid :: all :: still shrink
def elastic_limit(p, lr, curvature, period):
    a = 1 - lr * curvature
    q = a ** (period - 1)
    last = 0.0
    for alpha in np.arange(0.001, 2.0, 0.001):
        m = np.array([[q * (a - alpha), q * alpha], [p * alpha, 1 - p * alpha]])
        if np.abs(np.linalg.eigvals(m)).max() <= 1 + 1e-12:
            last = alpha
    return last
=== wrong: the sum of the pulls forgotten in the matrix :: several, periods :: one worker
def elastic_limit(p, lr, curvature, period):
    a = 1 - lr * curvature
    return 2 * (1 + a**period) / (2 * a ** (period - 1) + 1 + a**period)
=== wrong: steps beyond the hundredth are forgotten :: periods :: expected
def elastic_limit(p, lr, curvature, period):
    plain = 1 - lr * curvature
    q = plain ** (min(period, 100) - 1)
    return 2 * (1 + q * plain) / (2 * q + p * (1 + q * plain))
=== right: halves the interval in which the limit is
def elastic_limit(p, lr, curvature, period):
    def growth(alpha):
        step = np.diag([1 - lr * curvature, 1.0])
        pull = step + alpha * np.array([[-1.0, 1.0], [p, -p]])
        return np.abs(np.linalg.eigvals(np.linalg.matrix_power(step, period - 1) @ pull)).max()
    low, high = 0.0, 4.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if growth(middle) <= 1 else (low, middle)
    return low
=== right: plays rounds of all workers, and solves det(A + I) = 0 by two points
def elastic_limit(p, lr, curvature, period):
    def determinant(alpha):
        columns = []
        for x, c in ((1.0, 0.0), (0.0, 1.0)):
            pull = alpha * (x - c)
            x, c = x - lr * curvature * x - pull, c + p * pull
            for _ in range(period - 1):
                x -= lr * curvature * x
            columns.append((x, c))
        return np.linalg.det(np.array(columns).T + np.eye(2))
    at_0, at_1 = determinant(0.0), determinant(1.0)
    return np.float64(at_0 / (at_0 - at_1))
"""
