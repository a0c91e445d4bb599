ANSWERS = r"""
=== parts
constant: constant gradients: entries that wait move as far as with dense momentum
any: any gradients: what was sent and what waits are the steps of dense momentum
entries: the right entries are sent and cleared, also with equal magnitudes
masked: with masking
=== base
def corrected_entries(gradient, velocity, waiting, m, k, masking):
    velocity *= m
    velocity += gradient
    waiting += velocity
    indices = np.argsort(-np.abs(waiting), kind="stable")[:k]
    values = waiting[indices]
    waiting[indices] = 0
    if masking:
        velocity[indices] = 0
    return indices, values
=== wrong: ranked in float32 :: entries :: indices: expected
-    indices = np.argsort(-np.abs(waiting), kind="stable")[:k]
+    indices = np.argsort(-np.abs(waiting).astype(np.float32), kind="stable")[:k]
=== wrong: chosen by the gradient :: entries, masked :: indices
+    indices = np.argsort(-np.abs(gradient), kind="stable")[:k]
=== wrong: without magnitude :: entries, masked :: choose the largest magnitudes
+    indices = np.argsort(-waiting, kind="stable")[:k]
=== wrong: a sort that is not stable :: entries :: kind='stable'
+    indices = np.argsort(-np.abs(waiting))[:k]
=== wrong: the last k of an ascending sort, which are all if k is 0 :: constant, entries :: is all of x if k is 0
+    indices = len(waiting) - 1 - np.argsort(np.abs(waiting[::-1]), kind="stable")[-k:]
=== wrong: chosen by the velocity :: entries, masked :: chosen by the velocity
+    indices = np.argsort(-np.abs(velocity), kind="stable")[:k]
=== wrong: the gradients wait :: all :: without the momentum of the steps
-    waiting += velocity
+    waiting += gradient
=== wrong: new arrays :: all :: by the last velocity alone
+    waiting = waiting + velocity
=== wrong: Nesterov's momentum :: all :: Nesterov
+    waiting += m * velocity + gradient
=== wrong: the sent entries stay :: any, entries, masked :: they would be sent again
-    waiting[indices] = 0
=== wrong: everything is cleared :: all :: by the last velocity alone
+    waiting[...] = 0
=== wrong: momentum twice :: all :: momentum is in v already
     velocity += gradient
+    waiting *= m
=== wrong: 1 - m before the gradient :: all :: multiplied by 1 - m
-    velocity += gradient
+    velocity += (1 - m) * gradient
=== wrong: the gradient is overwritten :: entries, masked :: the gradient was changed
+    gradient += velocity
+    velocity[...] = gradient
=== wrong: the velocity of the step before :: all :: The old velocity was added
 def corrected_entries(gradient, velocity, waiting, m, k, masking):
+    waiting += velocity
     velocity += gradient
-    waiting += velocity
=== wrong: always masked :: any, entries :: masking is the other way round, or missing
-    if masking:
-        velocity[indices] = 0
+    velocity[indices] = 0
=== wrong: never masked :: masked :: masking is the other way round, or missing
-    if masking:
-        velocity[indices] = 0
=== wrong: zeros are not sent :: entries :: Exactly k entries
     indices = np.argsort(-np.abs(waiting), kind="stable")[:k]
+    indices = indices[waiting[indices] != 0]
=== wrong: masking clears the whole velocity :: masked :: in the sent entries alone
-        velocity[indices] = 0
+        velocity[...] = 0
=== wrong: masking clears what is kept :: masked :: not in those that are kept
+        velocity[np.setdiff1d(np.arange(len(velocity)), indices)] = 0
=== right: new arrays, copied back at the end
def corrected_entries(gradient, velocity, waiting, m, k, masking):
    u = gradient + m * velocity
    total = waiting + u
    order = sorted(range(len(total)), key=lambda i: (-abs(total[i]), i))
    indices = np.array(sorted(order[:k]), dtype=int)
    values = total[indices].copy()
    total[indices] = 0.0
    if masking:
        u[indices] = 0.0
    velocity[:], waiting[:] = u, total
    return indices, values
=== right: a mask of ones and zeros
def corrected_entries(gradient, velocity, waiting, m, k, masking):
    np.multiply(velocity, m, out=velocity)
    np.add(velocity, gradient, out=velocity)
    np.add(waiting, velocity, out=waiting)
    rank = np.empty(len(waiting), int)
    rank[np.lexsort((np.arange(len(waiting)), -np.abs(waiting)))] = np.arange(len(waiting))
    keep = rank >= k
    indices = np.flatnonzero(~keep)
    values = waiting[~keep]
    waiting *= keep
    if masking:
        velocity *= keep
    return indices, values
"""
