ANSWERS = r"""
=== parts
rows: averages over neighbours: the rows sum to 1
columns: the mean stays: the columns sum to 1, too, on every graph
factor: machines agree fast enough
=== right: weight 1 / (1 + the largest number) for each pair, symmetric
def mixing_matrix(neighbours):
    p = len(neighbours)
    most = max(len(near) for near in neighbours)
    W = np.zeros((p, p))
    for i, near in enumerate(neighbours):
        for j in near:
            W[i, j] = 1 / (1 + most)
        W[i, i] = 1 - len(near) / (1 + most)
    return W
=== wrong: the mean of itself and its neighbours :: columns :: different numbers of neighbours
-            W[i, j] = 1 / (1 + most)
-        W[i, i] = 1 - len(near) / (1 + most)
+            W[i, j] = 1 / (1 + len(near))
+        W[i, i] = 1 - len(near) / (1 + len(near))
=== wrong: the mean of the neighbours, without itself :: columns, factor :: column
+            W[i, j] = 1 / len(near)
+        W[i, i] = 0.0 if near else 1.0
=== wrong: no weight for the machine with the most neighbours :: factor :: consensus factor
+            W[i, j] = 1 / max(1, most)
+        W[i, i] = 1 - len(near) / max(1, most)
=== wrong: nearly nothing for itself :: factor :: keeps too little of its own
+            W[i, j] = 0.9 / max(1, most)
+        W[i, i] = 1 - 0.9 * len(near) / max(1, most)
=== wrong: pairs with the smaller number of neighbours :: all :: nothing is left
+            W[i, j] = 1 / (1 + min(len(near), len(neighbours[j])))
+        W[i, i] = 1 - W[i].sum()
=== wrong: the transposed mean of itself and its neighbours :: all :: row
-            W[i, j] = 1 / (1 + most)
-        W[i, i] = 1 - len(near) / (1 + most)
-    return W
+            W[i, j] = 1 / (1 + len(near))
+        W[i, i] = 1 - len(near) / (1 + len(near))
+    return W.T
=== wrong: half for itself, to be safe :: factor :: weights of some pairs are too small
-    return W
+    return (W + np.eye(p)) / 2
=== wrong: the identity :: all :: nobody hears
+    return np.eye(p)
=== wrong: 1 / p for all :: all :: no neighbours
+    return np.full((p, p), 1 / p)
=== wrong: the same own weight for all :: all :: own weight is the rest
-        W[i, i] = 1 - len(near) / (1 + most)
+        W[i, i] = 1 / (1 + most)
=== wrong: one direction only :: all :: hear of each other
-        for j in near:
+        for j in [j for j in near if j > i]:
=== right: the identity less a multiple of the Laplacian
def mixing_matrix(neighbours):
    A = np.array([[float(j in near) for j in range(len(neighbours))] for near in neighbours])
    degrees = np.diag(A.sum(axis=1))
    return np.eye(len(A)) - (degrees - A) / (1 + degrees.max())
=== right: Metropolis' weights, made doubly stochastic step by step
def mixing_matrix(neighbours):
    p = len(neighbours)
    W = np.eye(p)
    for i in range(p):
        for j in neighbours[i]:
            if i < j:
                weight = 1 / (1 + max(len(neighbours[i]), len(neighbours[j])))
                step = np.zeros(p)
                step[i], step[j] = 1, -1
                W -= weight * np.outer(step, step)
    return W
"""
