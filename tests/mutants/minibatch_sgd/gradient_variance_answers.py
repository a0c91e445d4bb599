ANSWERS = r"""
=== parts
with: drawn with replacement
without: drawn without replacement
large: a mean that is far larger than the spread
=== base
def gradient_variance(gradients, batch_size, replacement):
    n, d = gradients.shape
    one = gradients.var(axis=0).sum()
    if replacement:
        return one / batch_size
    if n == 1:
        return 0.0
    return one / batch_size * (n - batch_size) / (n - 1)
=== wrong: many samples are taken for infinitely many :: without :: This is the variance with replacement
-    if replacement:
+    if replacement or n > 5000:
=== wrong: with and without exchanged :: all :: This is the variance without replacement
-        return one / batch_size
+        return one / batch_size * (n - batch_size) / max(n - 1, 1)
-    return one / batch_size * (n - batch_size) / (n - 1)
+    return one / batch_size
=== wrong: the whole covariance matrix :: with, large :: the trace is the sum of its diagonal
+        return np.cov(gradients.T, bias=True).sum() / batch_size
=== wrong: distances that are not squared :: with, large :: The distances were not squared
+        return np.linalg.norm(gradients - gradients.mean(axis=0), axis=1).mean() / batch_size
=== wrong: divides by n - 1 :: with, large :: Divided by n - 1
+        return gradients.var(axis=0, ddof=min(1, n - 1)).sum() / batch_size
=== wrong: the factor is upside down :: without, large :: upside down
-    return one / batch_size * (n - batch_size) / (n - 1)
+    return one / batch_size * (n - 1) / (n - batch_size) if batch_size < n else 0.0
=== wrong: not a number for one sample :: without :: With a single sample there is nothing to draw
def gradient_variance(gradients, batch_size, replacement):
    n = len(gradients)
    one = gradients.var(axis=0).sum()
    return one / batch_size if replacement else one / batch_size * np.float64(n - batch_size) / (n - 1)
=== wrong: second moments :: large :: difference of two numbers near 1e16
def gradient_variance(gradients, batch_size, replacement):
    n, d = gradients.shape
    total = 0.0
    for column in range(d):
        total += sum(g * g for g in gradients[:, column]) / n - (sum(gradients[:, column]) / n) ** 2
    if replacement or batch_size == 1:
        return total / batch_size
    return total / batch_size * (n - batch_size) / (n - 1)
=== wrong: the mean of the squared lengths less the squared length of the mean :: large :: subtract the mean first
-    one = gradients.var(axis=0).sum()
+    one = (gradients**2).sum(axis=1).mean() - (gradients.mean(axis=0) ** 2).sum()
=== wrong: in single precision :: all :: expected
+    one = gradients.astype(np.float32).var(axis=0).sum()
=== wrong: the mean is subtracted in place :: with :: gradient_variance changed its argument gradients at [0, 0]
def gradient_variance(gradients, batch_size, replacement):
    n = len(gradients)
    gradients -= gradients.mean(axis=0)
    one = (gradients**2).sum() / n
    return one / batch_size if replacement else one / batch_size * (n - batch_size) / max(n - 1, 1)
=== wrong: an estimate from draws :: all :: gradient_variance(
def gradient_variance(gradients, batch_size, replacement):
    rng, full = np.random.default_rng(0), gradients.mean(axis=0)
    draws = [gradients[rng.choice(len(gradients), batch_size, replace=replacement)].mean(axis=0) for _ in range(200)]
    return np.mean([((draw - full) ** 2).sum() for draw in draws])
=== wrong: without replacement two samples count as one :: without :: got 0.
def gradient_variance(gradients, batch_size, replacement):
    n = len(gradients)
    one = gradients.var(axis=0).sum() / batch_size
    if replacement:
        return one
    return one * (n - batch_size) / (n - 1) if n > 2 else 0.0
=== right: the trace of numpy's covariance, a factor for both
def gradient_variance(gradients, batch_size, replacement):
    n = len(gradients)
    if n == 1:
        return 0
    sample_covariance = np.atleast_2d(np.cov(gradients, rowvar=False))
    factor = (n - 1) / n / batch_size if replacement else 1 / batch_size - 1 / n
    return np.trace(sample_covariance) * factor
=== right: every possible batch is tried, if there are few
import itertools

def gradient_variance(gradients, batch_size, replacement):
    n, full = len(gradients), gradients.mean(axis=0)
    if n > 10 or n**batch_size > 100_000 and replacement:
        one = float(np.mean(np.linalg.norm(gradients - full, axis=1) ** 2))
        return one / batch_size * (1 if replacement else (n - batch_size) / (n - 1))
    rows = range(n)
    batches = itertools.product(rows, repeat=batch_size) if replacement else itertools.combinations(rows, batch_size)
    return np.mean([((gradients[list(batch)].mean(axis=0) - full) ** 2).sum() for batch in batches])
=== right: one pass, as Welford has it
def gradient_variance(gradients, batch_size, replacement):
    n, d = gradients.shape
    mean, squares = np.zeros(d), np.zeros(d)
    for count, gradient in enumerate(gradients, 1):
        step = gradient - mean
        mean = mean + step / count
        squares = squares + step * (gradient - mean)
    total = squares.sum() / n
    if replacement or batch_size == 1:
        return total / batch_size
    return total / batch_size * (n - batch_size) / (n - 1)
=== right: from the distances of all pairs, a fraction of Python's
from fractions import Fraction

def gradient_variance(gradients, batch_size, replacement):
    n = len(gradients)
    total = sum(float(((gradients - row) ** 2).sum()) for row in gradients) / (2 * n * n)
    if replacement:
        return np.array(total / batch_size)
    return total * float(Fraction(n - batch_size, batch_size * (n - 1))) if n > 1 else 0
"""
