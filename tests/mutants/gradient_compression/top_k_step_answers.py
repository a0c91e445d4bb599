ANSWERS = r"""
=== parts
weights: the weights after each step
kept: each rank keeps what it has not sent, to the bit
traffic: one all-gather of 8 k bytes, and nothing else
ties: equal magnitudes, and the same bits on all ranks
=== base
def top_k_step(comm, w, gradient, residual, k, lr):
    residual += gradient
    chosen = np.argsort(-np.abs(residual), kind="stable")[:k]
    message = pairs(chosen, residual[chosen])
    residual[chosen] = 0
    total = np.zeros_like(w)
    for each in comm.all_gather(message):
        indices, values = unpacked(each)
        total[indices] += values
    return w - lr * total / comm.size
=== wrong: its own learning rate :: weights, ties :: expected
-    return w - lr * total / comm.size
+    return w - 0.3 * total / comm.size
=== wrong: the weights in place :: weights :: changed its argument w at [
+    w -= lr * total / comm.size
+    return w
=== wrong: kept, but never sent :: weights, kept, ties :: There is no memory
-    residual += gradient
+    residual[...] = gradient
=== wrong: a residual of its own :: kept, ties :: The residual is as it was
+    residual = residual + gradient
=== wrong: the sent entries stay :: kept, ties :: they would be sent again
-    residual[chosen] = 0
=== wrong: a dense all-reduce of the sparse vector :: traffic :: adds up the whole vectors
-    for each in comm.all_gather(message):
-        indices, values = unpacked(each)
-        total[indices] += values
+    indices, values = unpacked(message)
+    total[indices] = values
+    comm.all_reduce(total)
=== wrong: the whole vector is gathered, with its zeros :: traffic :: The whole vector is sent
-    message = pairs(chosen, residual[chosen])
+    message = np.zeros(len(w), np.float32)
+    message[chosen] = residual[chosen]
-        indices, values = unpacked(each)
-        total[indices] += values
+        total += each
=== wrong: indices and values in two all-gathers :: traffic :: into one message
+    those, numbers = chosen.astype(np.int32), residual[chosen]
-    for each in comm.all_gather(message):
-        indices, values = unpacked(each)
+    for each in zip(comm.all_gather(those), comm.all_gather(numbers)):
+        indices, values = each
=== wrong: 64-bit pairs :: traffic :: 8 bytes an index and 8 a value
+    message = np.stack([chosen.astype(np.float64), residual[chosen].astype(np.float64)])
-        indices, values = unpacked(each)
+        indices, values = each[0].astype(int), each[1]
=== wrong: the residual is cleared where any rank has sent :: kept, ties :: a rank clears only what it has sent itself
-    residual[chosen] = 0

         total[indices] += values
+        residual[indices] = 0
=== wrong: added up in float32 :: weights, ties :: rounded to float32
-    total = np.zeros_like(w)
+    total = np.zeros(len(w), np.float32)
=== wrong: divided by how many have sent the entry :: weights, ties :: by how many ranks
+    total, count = np.zeros_like(w), np.zeros_like(w)
-    return w - lr * total / comm.size
+        count[indices] += 1
+    return w - lr * total / np.maximum(count, 1)
=== wrong: the learning rate in the residual :: kept, ties :: The learning rate is in the residual
     residual[chosen] = 0
+    residual *= np.float32(lr)
=== wrong: a sort that is not stable :: ties :: kind='stable'
-    chosen = np.argsort(-np.abs(residual), kind="stable")[:k]
+    chosen = np.argsort(-np.abs(residual))[:k]
=== wrong: chosen by the first digits :: ties :: residual
+    chosen = np.argsort(-np.round(np.abs(residual), 6), kind="stable")[:k]
=== wrong: all entries as large as the k-th :: traffic, ties :: more than k
+    chosen = np.flatnonzero(np.abs(residual) >= np.sort(np.abs(residual))[-k])
=== wrong: chosen before the total is rounded :: ties :: chosen before
-    residual += gradient
-    chosen = np.argsort(-np.abs(residual), kind="stable")[:k]
+    exact = residual.astype(np.float64) + gradient
+    residual += gradient
+    chosen = np.argsort(-np.abs(exact), kind="stable")[:k]
=== wrong: zeros are not sent :: traffic :: Exactly k entries
     chosen = np.argsort(-np.abs(residual), kind="stable")[:k]
+    chosen = chosen[residual[chosen] != 0]
=== wrong: the own entries first :: ties :: in the order of the ranks
     message = pairs(chosen, residual[chosen])
+    total = np.zeros_like(w)
+    total[chosen] += residual[chosen]
-    total = np.zeros_like(w)
-    for each in comm.all_gather(message):
+    gathered = comm.all_gather(message)
+    del gathered[comm.rank]
+    for each in gathered:
=== wrong: what other ranks sent is cleared, too :: kept, ties :: residual
         total[indices] += values
+        residual[indices] = 0
=== right: a sort of tuples, and np.add.at
def top_k_step(comm, w, gradient, residual, k, lr):
    total = gradient + residual
    order = sorted(range(len(total)), key=lambda i: (-abs(total[i]), i))
    chosen, rest = order[:k], order[k:]
    residual[:] = 0
    residual[rest] = total[rest]
    mean = np.zeros(len(w))
    for message in comm.all_gather(pairs(chosen, total[chosen])):
        np.add.at(mean, *unpacked(message))
    return w - lr * (mean / comm.size)
=== right: lexsort, and a matrix of all ranks
def top_k_step(comm, w, gradient, residual, k, lr):
    np.add(residual, gradient, out=residual)
    chosen = np.sort(np.lexsort((np.arange(len(residual)), -np.abs(residual)))[:k])
    gathered = comm.all_gather(pairs(chosen, residual[chosen]))
    residual[chosen] = np.float32(0)
    table = np.zeros((comm.size, len(w)))
    for row, message in zip(table, gathered):
        indices, values = unpacked(message)
        row[indices] = values
    return w - (lr / comm.size) * table.sum(axis=0)
"""
