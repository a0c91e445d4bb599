ANSWERS = r"""
=== parts
blocks: each rank's block of C
words: the words that each rank receives
panels: messages of one panel at most
=== base
def summa(comm, pr, pc, width, a, b):
    row, column = row_and_column(comm, pr, pc)
    of_a, of_b = a.shape[1], b.shape[0]
    k = of_a * pc
    c = np.zeros((a.shape[0], b.shape[1]))
    for t in range(0, k, width):
        i, j = t // of_b, t // of_a
        first_a, first_b = t % of_a, t % of_b
        panel_a = a[:, first_a : first_a + width].copy() if row.rank == j else None
        panel_b = b[first_b : first_b + width].copy() if column.rank == i else None
        c += row.broadcast(panel_a, src=j) @ column.broadcast(panel_b, src=i)
    return c
=== wrong: whole matrices are gathered :: words, panels :: Whole matrices are gathered
def summa(comm, pr, pc, width, a, b):
    blocks = comm.all_gather(a)
    A = np.block([[blocks[i * pc + j] for j in range(pc)] for i in range(pr)])
    blocks = comm.all_gather(b)
    B = np.block([[blocks[i * pc + j] for j in range(pc)] for i in range(pr)])
    i, j = divmod(comm.rank, pc)
    return A[i * a.shape[0] : (i + 1) * a.shape[0]] @ B[:, j * b.shape[1] : (j + 1) * b.shape[1]]
=== wrong: whole blocks are broadcast :: panels :: Whole blocks are sent
def summa(comm, pr, pc, width, a, b):
    row, column = row_and_column(comm, pr, pc)
    A = np.concatenate([row.broadcast(a if row.rank == j else None, src=j) for j in range(pc)], axis=1)
    B = np.concatenate([column.broadcast(b if column.rank == i else None, src=i) for i in range(pr)])
    return A @ B
=== wrong: only the last panels :: all :: Only the last panels
-        c += row.broadcast(panel_a, src=j) @ column.broadcast(panel_b, src=i)
+        c = row.broadcast(panel_a, src=j) @ column.broadcast(panel_b, src=i)
=== wrong: panels are broadcast to all ranks :: all :: summa :: raised
+        c += comm.broadcast(panel_a, src=comm.rank // pc * pc + j) @ column.broadcast(panel_b, src=i)
=== wrong: no last panel where a block is one panel :: all :: C: expected
-    for t in range(0, k, width):
+    for t in range(0, k - width * (width == of_a), width):
=== wrong: the owner in turn :: all :: summa
-        i, j = t // of_b, t // of_a
+        i, j = t // width % pr, t // width % pc
=== wrong: owners of A and of B interchanged :: all :: summa
+        i, j = t // of_a % pr, t // of_b % pc
=== wrong: blocks of B taken for those of A :: all :: src must be from 0 to 1 :: raised
-    of_a, of_b = a.shape[1], b.shape[0]
+    of_a = of_b = a.shape[1]
=== wrong: the first panel of the block each time :: all :: summa on rank
-        first_a, first_b = t % of_a, t % of_b
+        first_a, first_b = 0, 0
=== wrong: each panel sent twice :: words :: words received, got
         panel_b = b[first_b : first_b + width].copy() if column.rank == i else None
+        row.broadcast(panel_a, src=j)
=== wrong: the groups are made for each panel :: panels :: one call of row_and_column
         i, j = t // of_b, t // of_a
+        row, column = row_and_column(comm, pr, pc)
=== right: panels of one column at a time
def summa(comm, pr, pc, width, a, b):
    row, column = row_and_column(comm, pr, pc)
    c = np.zeros((len(a), b.shape[1]))
    for j in range(pc):
        for s in range(a.shape[1]):
            t = j * a.shape[1] + s
            i, u = divmod(t, len(b))
            left = np.ascontiguousarray(a[:, s]) if row.rank == j else np.empty(len(a))
            right = np.ascontiguousarray(b[u]) if column.rank == i else np.empty(b.shape[1])
            c += np.outer(row.broadcast(left, src=j), column.broadcast(right, src=i))
    return c
=== right: from the last panel to the first
def summa(comm, pr, pc, width, a, b):
    row, column = row_and_column(comm, pr, pc)
    parts = []
    for t in reversed(range(0, len(b) * pr, width)):
        i, j = t // len(b), t // a.shape[1]
        mine = b[t - i * len(b) :][:width].copy() if column.rank == i else None
        panel_b = column.broadcast(mine, src=i)
        mine = a[:, t - j * a.shape[1] :][:, :width].copy() if row.rank == j else None
        parts.append(row.broadcast(mine, src=j) @ panel_b)
    return np.sum(parts, axis=0)
"""
