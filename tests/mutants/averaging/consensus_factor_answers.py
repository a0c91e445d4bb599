ANSWERS = r"""
=== parts
symmetric: symmetric matrices, eigenvalues of 0 and above near 1
others: negative and complex eigenvalues, and an eigenvalue 1 that occurs twice
=== base
def consensus_factor(W):
    values = sorted(abs(value) for value in np.linalg.eigvals(W))
    return values[-2] if len(values) > 1 else 0.0
=== wrong: the spectral gap :: all :: spectral gap
-    return values[-2] if len(values) > 1 else 0.0
+    return 1 - values[-2] if len(values) > 1 else 0.0
=== wrong: one machine forgotten :: symmetric :: IndexError :: raised
+    return values[-2]
=== wrong: the formula of the ring for all :: all :: expected
+    return (1 + 2 * np.cos(2 * np.pi / len(W))) / 3 if len(values) > 1 else 0.0
=== wrong: without absolute values :: others :: negative eigenvalue
-    values = sorted(abs(value) for value in np.linalg.eigvals(W))
+    values = sorted(value.real for value in np.linalg.eigvals(W))
=== wrong: eigvalsh for any matrix :: others :: not symmetric
+    values = sorted(abs(value) for value in np.linalg.eigvalsh(W))
=== wrong: the second singular value :: others :: singular value
def consensus_factor(W):
    values = np.linalg.svd(W, compute_uv=False)
    return values[1] if len(W) > 1 else 0.0
=== wrong: all eigenvalues 1 left out :: others :: Only one eigenvalue 1
def consensus_factor(W):
    values = sorted(abs(value) for value in np.linalg.eigvals(W) if abs(value) < 1 - 1e-9)
    return values[-1] if values else 0.0
=== wrong: sorted before the absolute values are taken :: others :: orders complex numbers by their real parts
def consensus_factor(W):
    values = np.sort(np.linalg.eigvals(W))
    return max(abs(values[0]), abs(values[-2])) if len(W) > 1 else 0.0
=== wrong: the last of many steps of the power iteration :: others :: expected :: hidden only
def consensus_factor(W):
    x, factor = np.arange(1.0, len(W) + 1) ** 2, 0.0
    for _ in range(2000):
        y = (x - x.mean()) @ W.T
        size = np.linalg.norm(y)
        if size < 1e-12:
            return 0.0
        factor, x = size / np.linalg.norm(x - x.mean()), y / size
    return factor
=== right: takes the mean out first
def consensus_factor(W):
    return np.abs(np.linalg.eigvals(W - 1 / len(W))).max()
=== right: eigenvalues of the distances to the mean
def consensus_factor(W):
    W = np.asarray(W) - np.full(np.shape(W), 1 / len(W))
    moduli = [abs(complex(each)) for each in np.linalg.eig(W)[0]]
    return max(moduli)
"""
