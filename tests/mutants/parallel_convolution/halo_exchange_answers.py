ANSWERS = r"""
=== parts
slabs: slabs: the rows that the convolution needs
grid: a grid: rows, columns and corners
messages: the patch by one message to each neighbour, with what it needs
time: long messages and more ranks: no deadlock, and no waiting in a line
=== base
def halo_exchange(comm, x, grid, size, kernel, stride, padding):
    h, w = grid
    H, W = size
    i, j = divmod(comm.rank, w)

    def needs(n, p, k):
        first, stop = span(output_size(n, kernel, stride, padding), p, k)
        return first * stride - padding, (stop - 1) * stride - padding + kernel

    def phase(x, n, p, k, step):
        begin, end = span(n, p, k)
        start, stop = needs(n, p, k)
        out = np.zeros(x.shape[:2] + (stop - start, x.shape[3]))
        for t in range(max(begin, start), min(end, stop)):
            out[:, :, t - start] = x[:, :, t - begin]
        near = [q for q in (k - 1, k + 1) if 0 <= q < p]
        works = []
        for q in near:
            a, b = needs(n, p, q)
            a, b = max(a, begin), min(b, end)
            if a < b:
                works.append(comm.isend(x[:, :, a - begin : b - begin].copy(), comm.rank + (q - k) * step))
        for q in near:
            a, b = span(n, p, q)
            a, b = max(a, start), min(b, stop)
            if a < b:
                out[:, :, a - start : b - start] = comm.recv(comm.rank + (q - k) * step)
        for work in works:
            work.wait()
        return out

    y = phase(x, H, h, i, w)
    return phase(y.swapaxes(2, 3), W, w, j, 1).swapaxes(2, 3).copy()
=== wrong: no messages :: all :: The halo is zero
-        near = [q for q in (k - 1, k + 1) if 0 <= q < p]
+        near = []
=== wrong: padding at inner borders :: all :: The halo is zero
def halo_exchange(comm, x, grid, size, kernel, stride, padding):
    return np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
=== wrong: the corners are forgotten :: grid, messages, time :: The corners of the halo are zero
-    return phase(y.swapaxes(2, 3), W, w, j, 1).swapaxes(2, 3).copy()
+    z = phase(x.swapaxes(2, 3), W, w, j, 1).swapaxes(2, 3)
+    top, left = needs(H, h, i)[0], needs(W, w, j)[0]
+    out = np.zeros(z.shape[:2] + (y.shape[2], z.shape[3]))
+    for r in range(out.shape[2]):
+        if span(H, h, i)[0] <= r + top < span(H, h, i)[1]:
+            out[:, :, r] = z[:, :, r + top - span(H, h, i)[0]]
+    for c in range(out.shape[3]):
+        if span(W, w, j)[0] <= c + left < span(W, w, j)[1]:
+            out[:, :, :, c] = y[:, :, :, c + left - span(W, w, j)[0]]
+    return out
=== wrong: rows only :: all :: The padding of the columns is missing
+    return y
=== wrong: columns only :: all :: those of the halo above and below are missing
+    return phase(x.swapaxes(2, 3), W, w, j, 1).swapaxes(2, 3).copy()
=== wrong: a halo row short :: all :: A row and a column are missing
-        return first * stride - padding, (stop - 1) * stride - padding + kernel
+        return first * stride - padding, (stop - 1) * stride - padding + kernel - 1
=== wrong: a row too many :: all :: the patch: expected an array of shape
+        return first * stride - padding, (stop - 1) * stride - padding + kernel + 1
=== wrong: the window of a row ends where that of the next one begins :: all :: the patch: expected an array of shape
+        return first * stride - padding, stop * stride - padding + kernel
=== wrong: no padding :: all :: the patch
+        return first * stride, (stop - 1) * stride + kernel
=== wrong: the padded rows are cut off :: all :: The padding is missing
+        return max(first * stride - padding, 0), min((stop - 1) * stride - padding + kernel, n)
=== wrong: floor(K / 2) rows on each side :: slabs, grid, messages :: not always floor(K / 2) rows
+        first, stop = span(n, p, k)
+        return first - kernel // 2, stop + kernel // 2
=== wrong: `padding` rows on each side :: slabs, grid, messages :: not always
+        first, stop = span(n, p, k)
+        return first - padding, stop + padding
=== wrong: the output's rows are divided as the input's :: slabs, grid, messages :: the patch
-        first, stop = span(output_size(n, kernel, stride, padding), p, k)
+        first, stop = span(n // stride, p, k)
=== wrong: only the rank above sends, and the rank below expects it :: all :: The halo is zero
-        for q in near:
-            a, b = needs(n, p, q)
+        for q in [q for q in near if q > k]:
+            a, b = needs(n, p, q)

-        for q in near:
-            a, b = span(n, p, q)
+        for q in [q for q in near if q < k]:
+            a, b = span(n, p, q)
=== wrong: a receive without a send :: all :: can never complete :: stuck
+        for q in near[:1]:
+            a, b = needs(n, p, q)
=== base
def halo_exchange(comm, x, grid, size, kernel, stride, padding):
    (h, w), (H, W) = grid, size
    i, j = divmod(comm.rank, w)
    tiles = comm.all_gather(x)
    image = np.block([[tiles[r * w + c] for c in range(w)] for r in range(h)])
    first, stop = span(output_size(H, kernel, stride, padding), h, i)
    rows = np.arange(first * stride - padding, (stop - 1) * stride - padding + kernel)
    first, stop = span(output_size(W, kernel, stride, padding), w, j)
    columns = np.arange(first * stride - padding, (stop - 1) * stride - padding + kernel)
    around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    padded = np.pad(image, around)
    return padded[:, :, rows + padding][:, :, :, columns + padding]
=== wrong: the whole image is gathered :: messages, time :: An all-gather brings every rank the whole image
-    padded = np.pad(image, around)
-    return padded[:, :, rows + padding][:, :, :, columns + padding]
+    return np.pad(image, around)[:, :, rows + padding][:, :, :, columns + padding]
=== wrong: outer borders wrapped :: slabs, grid, messages, time :: the pixels of the opposite side
+    return image[:, :, rows % H][:, :, :, columns % W]
=== wrong: outer borders repeated :: slabs, grid, messages, time :: not the pixels of its border
+    return image[:, :, rows.clip(0, H - 1)][:, :, :, columns.clip(0, W - 1)]
=== wrong: the whole image is returned :: all :: Each rank returns its own patch
+    return np.pad(image, around)
=== base
def halo_exchange(comm, x, grid, size, kernel, stride, padding):
    h, w = grid
    H, W = size
    i, j = divmod(comm.rank, w)

    def needs(n, p, k):
        first, stop = span(output_size(n, kernel, stride, padding), p, k)
        return first * stride - padding, (stop - 1) * stride - padding + kernel

    def phase(x, n, p, k, step):
        begin, end = span(n, p, k)
        start, stop = needs(n, p, k)
        out = np.zeros(x.shape[:2] + (stop - start, x.shape[3]))
        for t in range(max(begin, start), min(end, stop)):
            out[:, :, t - start] = x[:, :, t - begin]
        for q in (k - 1, k + 1):
            if 0 <= q < p:
                other = comm.rank + (q - k) * step
                a, b = needs(n, p, q)
                a, b = max(a, begin), min(b, end)
                theirs = x[:, :, a - begin : b - begin].copy() if a < b else np.empty(0)
                came = comm.sendrecv(theirs, other, other)
                a, b = span(n, p, q)
                a, b = max(a, start), min(b, stop)
                if a < b:
                    out[:, :, a - start : b - start] = came
        return out

    y = phase(x, H, h, i, w)
    return phase(y.swapaxes(2, 3), W, w, j, 1).swapaxes(2, 3).copy()
=== wrong: each rank waits for the one before it :: time :: Each rank waits for the one before it
-        for q in (k - 1, k + 1):
+        for q in [k - 1, k + 1]:
=== wrong: send, then receive :: time :: deadlock: ranks 0 :: stuck
-                came = comm.sendrecv(theirs, other, other)
+                comm.send(theirs, other)
+                came = comm.recv(other)
=== wrong: the one with the lower rank sends first :: time :: Each rank waits for the one before it
+                if k < q:
+                    comm.send(theirs, other)
+                came = comm.recv(other)
+                if k > q:
+                    comm.send(theirs, other)
=== wrong: a message more :: messages, time :: to rank 1, expected at most one
+                comm.sendrecv(np.array([len(theirs)]), other, other)
+                came = comm.sendrecv(theirs, other, other)
=== wrong: numbers of 4 bytes :: all :: the patch: expected
+                came = comm.sendrecv(theirs.astype(np.float32), other, other)
=== wrong: isend is not waited for :: messages, time :: without waiting for the end
+                comm.isend(theirs, other)
+                came = comm.recv(other)
=== wrong: whole tiles are sent :: messages, time :: Whole tiles are sent
-                theirs = x[:, :, a - begin : b - begin].copy() if a < b else np.empty(0)
+                theirs = x.copy()

-                    out[:, :, a - start : b - start] = came
+                    c = span(n, p, q)[0]
+                    out[:, :, a - start : b - start] = came[:, :, a - c : b - c]
=== wrong: halos of above and below interchanged :: slabs, grid, messages, time :: halo_exchange
-                a, b = span(n, p, q)
-                a, b = max(a, start), min(b, stop)
-                if a < b:
-                    out[:, :, a - start : b - start] = came
+                if a < b and q < k:
+                    out[:, :, stop - start - came.shape[2] :] = came
+                elif a < b:
+                    out[:, :, : came.shape[2]] = came
=== wrong: rank r is in column r // h :: grid, messages, time :: dst must be from 0 to :: raised
-    i, j = divmod(comm.rank, w)
+    j, i = divmod(comm.rank, h)
=== right: one direction after the other, and every second rank first
def halo_exchange(comm, x, grid, size, kernel, stride, padding):
    for axis in (3, 2):
        p, n = grid[axis - 2], size[axis - 2]
        step = 1 if axis == 3 else grid[1]
        k = comm.rank // step % p
        outputs = np.array_split(np.arange(output_size(n, kernel, stride, padding)), p)
        wants = [np.arange(o[0] * stride - padding, o[-1] * stride - padding + kernel) for o in outputs]
        has = np.array_split(np.arange(n), p)
        here = {line: np.take(x, number, axis) for number, line in enumerate(has[k])}

        def give(q):
            lines = [here[line] for line in has[k] if line in wants[q]]
            if lines:
                comm.send(np.stack(lines, axis), comm.rank + (q - k) * step)

        def take(q):
            lines = [line for line in has[q] if line in wants[k]]
            if lines:
                got = comm.recv(comm.rank + (q - k) * step)
                here.update({line: np.take(got, number, axis) for number, line in enumerate(lines)})

        for q, is_first in ((k + 1, True), (k - 1, True)) if k % 2 else ((k - 1, False), (k + 1, False)):
            if 0 <= q < p:
                for act in (give, take) if is_first else (take, give):
                    act(q)
        zero = np.zeros_like(np.take(x, 0, axis))
        x = np.stack([here[line] if line in here else zero for line in wants[k]], axis)
    return x
=== right: shifted down, then up, as lists
def halo_exchange(comm, x, grid, size, kernel, stride, padding):
    def phase(x, n, p, k, step):
        spans = [span(n, p, q) for q in range(p)]
        outputs = [span((n + 2 * padding - kernel) // stride + 1, p, q) for q in range(p)]
        needs = [(first * stride - padding, (stop - 1) * stride - padding + kernel) for first, stop in outputs]
        whole = np.zeros((n + 2 * padding + 2 * kernel + stride, *x.shape[1:]))
        whole[padding + spans[k][0] : padding + spans[k][1]] = x

        def part(a, b):
            low, high = max(needs[a][0], spans[b][0]), min(needs[a][1], spans[b][1])
            return slice(padding + low, padding + max(low, high))

        for shift in (1, -1):
            to, source = k + shift, k - shift
            sends = 0 <= to < p and whole[part(to, k)].size
            takes = 0 <= source < p and whole[part(k, source)].size
            if sends and takes:
                got = comm.sendrecv(whole[part(to, k)].copy(), comm.rank + shift * step, comm.rank - shift * step)
            elif sends:
                comm.send(whole[part(to, k)].copy(), comm.rank + shift * step)
            elif takes:
                got = comm.recv(comm.rank - shift * step)
            if takes:
                whole[part(k, source)] = got
        return whole[padding + needs[k][0] : padding + needs[k][1]]

    i, j = divmod(comm.rank, grid[1])
    tall = phase(np.moveaxis(x, 2, 0), size[0], grid[0], i, grid[1])
    wide = phase(np.moveaxis(tall, 3, 0), size[1], grid[1], j, 1)
    return wide.transpose(2, 3, 1, 0).copy()
"""
