ANSWERS = r"""
=== parts
sum: the sum, the same on all ranks
partners: one message to one partner in each of log2(p) rounds
pairs: 8 bytes an entry: equal entries are added up before they are sent on
switch: the whole vector as soon as it has no more bytes than pairs, and not before
=== base
def sparse_sum(comm, indices, values, n):
    total = np.zeros(n, np.float32)
    total[indices] = values
    distance = 1
    while distance < comm.size:
        held = np.flatnonzero(total)
        message = pairs(held, total[held]) if 8 * len(held) < 4 * n else total
        partner = comm.rank ^ distance
        came = comm.sendrecv(message, partner, partner)
        if came.dtype == np.int32:
            more, those = unpacked(came)
            total[more] += those
        else:
            total = total + came
        distance *= 2
    return total
=== wrong: a blocking send before the receive :: sum :: wait for messages that can never come :: stuck
-        came = comm.sendrecv(message, partner, partner)
+        comm.send(message, partner)
+        came = comm.recv(partner)
=== wrong: never dense :: switch :: no fewer bytes than the whole vector
-        message = pairs(held, total[held]) if 8 * len(held) < 4 * n else total
+        message = pairs(held, total[held])
=== wrong: always dense :: pairs, switch :: pairs would be fewer bytes
+        message = total
=== wrong: the switch by the rank's own entries :: switch :: no fewer bytes than the whole vector
+        message = pairs(held, total[held]) if 8 * len(indices) < 4 * n else total
=== wrong: entries also with as many bytes as the vector :: switch :: if 8 j < 4 n
+        message = pairs(held, total[held]) if 8 * len(held) <= 4 * n else total
=== wrong: half of an odd number, rounded down :: switch :: if 8 j < 4 n
+        message = pairs(held, total[held]) if len(held) < n // 2 else total
=== wrong: 64-bit values :: pairs, switch :: 8 bytes
+        message = np.stack([held, total[held].astype(np.float64).view(np.int64)]) if 8 * len(held) < 4 * n else total
-        if came.dtype == np.int32:
-            more, those = unpacked(came)
+        if came.dtype == np.int64:
+            more, those = came[0], came[1].view(np.float64)
=== wrong: overwritten :: all :: overwritten instead of added
-            total[more] += those
+            total[more] = those
=== wrong: only the own entries are sent on :: all :: own entries were sent on
-        held = np.flatnonzero(total)
-        message = pairs(held, total[held]) if 8 * len(held) < 4 * n else total
+        held = np.asarray(indices)
+        message = pairs(held, np.asarray(values)) if 8 * len(held) < 4 * n else total
=== wrong: gathered :: partners, pairs, switch :: p - 1 times
     total[indices] = values
+    for each in comm.all_gather(pairs(indices, values)):
+        if each is not None:
+            pass
+    total = np.zeros(n, np.float32)
+    for each in comm.all_gather(pairs(indices, values)):
+        more, those = unpacked(each)
+        total[more] += those
+    return total
=== wrong: an all-reduce :: partners, pairs, switch :: whole vectors
+    comm.all_reduce(total)
+    return total
=== wrong: concatenated, so that equal entries stay :: pairs, switch :: sent several times
+    have, what = np.asarray(indices), np.asarray(values)
-        held = np.flatnonzero(total)
-        message = pairs(held, total[held]) if 8 * len(held) < 4 * n else total
+        message = pairs(have, what) if 8 * len(have) < 4 * n else total
-            total[more] += those
+            total[more] += 0
+            np.add.at(total, more, those)
+            have, what = np.append(have, more), np.append(what, those)
             total = total + came
+            have = np.arange(n)
=== wrong: the farthest partner first :: partners, pairs, switch :: the other order
-    distance = 1
-    while distance < comm.size:
+    distance = comm.size // 2
+    while distance >= 1:
-        distance *= 2
+        distance //= 2
=== wrong: a round too few :: all :: The first round alone was made
-    while distance < comm.size:
+    while distance < min(comm.size, 2):
=== wrong: two messages a round :: partners, pairs, switch :: two messages
-        came = comm.sendrecv(message, partner, partner)
-        if came.dtype == np.int32:
-            more, those = unpacked(came)
+        if 8 * len(held) < 4 * n or 1:
+            more = comm.sendrecv(held.astype(np.int32), partner, partner)
+            those = comm.sendrecv(total[held], partner, partner)
-        else:
-            total = total + came
=== wrong: two rows are taken for pairs :: sum, switch :: IndexError :: raised
-        if came.dtype == np.int32:
+        if len(came) == 2:
=== wrong: the mean :: all :: the sum is wanted
-    return total
+    return total / np.float32(comm.size)
=== wrong: in float64 :: all :: float64
-    total = np.zeros(n, np.float32)
+    total = np.zeros(n)
=== wrong: only positive numbers :: all :: expected
-        held = np.flatnonzero(total)
+        held = np.flatnonzero(total > 0)
=== wrong: what is small is taken for nothing :: all :: expected
+        held = np.flatnonzero(np.abs(total) > 1e-6)
=== right: a dictionary of entries
def sparse_sum(comm, indices, values, n):
    entries = dict(zip(indices.tolist(), values))
    for i in range(comm.size.bit_length() - 1):
        if 2 * len(entries) < n:
            message = pairs(list(entries), list(entries.values()))
        else:
            message = np.zeros(n, np.float32)
            message[list(entries)] = list(entries.values())
        came = comm.sendrecv(message, comm.rank ^ 2**i, comm.rank ^ 2**i)
        if came.ndim == 1:
            more = [(j, x) for j, x in enumerate(came) if x]
        else:
            more = zip(*(each.tolist() for each in unpacked(came)))
        for j, x in more:
            entries[j] = np.float32(entries.get(j, 0) + np.float32(x))
    total = np.zeros(n, np.float32)
    total[list(entries)] = list(entries.values())
    return total
=== right: recursively, with isend and irecv
def sparse_sum(comm, indices, values, n):
    total = np.zeros(n, dtype="float32")
    np.add.at(total, indices, values)

    def from_round(total, distance):
        if distance >= comm.size:
            return total
        partner = comm.rank ^ distance
        where = np.nonzero(total)[0]
        message = total if len(where) * 2 >= n else pairs(where, total[where])
        sending, receiving = comm.isend(message, partner), comm.irecv(partner)
        came = receiving.wait()
        sending.wait()
        more = np.zeros(n, dtype="float32")
        if came.dtype == np.float32:
            more = came
        else:
            places, numbers = unpacked(came)
            more[places] = numbers
        return from_round(total + more, 2 * distance)

    return from_round(total, 1)
"""
