ANSWERS = r"""
=== parts
weights: the gradients of the weights and of the bias, whole on each rank
input: the gradient of this rank's rows, with that of the neighbours' halos
sums: one or two all-reduces of F C K K + F words
halo: gx by one message to each neighbour, with the gradients of its pixels
=== base
def weight_gradient(comm, patch, w, g, H, W, stride, padding):
    p, i, K = comm.size, comm.rank, w.shape[2]
    N, C = patch.shape[:2]

    def needs(k):
        first, stop = span(output_size(H, K, stride, padding), p, k)
        return first * stride - padding, (stop - 1) * stride - padding + K

    gp = patch_gradient(patch, w, g, stride)
    gp = gp[:, :, :, padding : padding + W]
    gp = np.concatenate([gp, np.zeros(gp.shape[:3] + (W - gp.shape[3],))], axis=3)
    start, stop = needs(i)
    begin, end = span(H, p, i)
    gx = np.zeros((N, C, end - begin, W))
    for t in range(max(start, begin), min(stop, end)):
        gx[:, :, t - begin] = gp[:, :, t - start]
    works = []
    for k in (i - 1, i + 1):
        if 0 <= k < p:
            a, b = span(H, p, k)
            a, b = max(a, start), min(b, stop)
            if a < b:
                works.append(comm.isend(gp[:, :, a - start : b - start].copy(), k))
    for k in (i - 1, i + 1):
        if 0 <= k < p:
            a, b = needs(k)
            a, b = max(a, begin), min(b, end)
            if a < b:
                gx[:, :, a - begin : b - begin] += comm.recv(k)
    for work in works:
        work.wait()
    gw = weights_gradient(patch, g, K, stride)
    gb = g.sum(axis=(0, 2, 3))
    comm.all_reduce(gw)
    comm.all_reduce(gb)
    return gx, gw, gb
=== wrong: the weights' gradient stays local :: weights, sums :: This is the sum over this rank's pixels
-    comm.all_reduce(gw)
=== wrong: summed twice :: weights, sums :: This is summed over the ranks twice
+    comm.all_reduce(gw)
+    comm.all_reduce(gw)
=== wrong: the bias's gradient stays local :: weights, sums :: This is the sum over this rank's rows of y
-    comm.all_reduce(gb)
=== wrong: nothing is summed :: weights, sums :: This is the sum over this rank's pixels
-    comm.all_reduce(gw)
-    comm.all_reduce(gb)
=== wrong: the mean over the ranks :: weights :: divided by p
     comm.all_reduce(gb)
+    gw, gb = gw / p, gb / p
=== wrong: the weights' gradient is a mean of the samples :: weights :: not the mean
+    gw /= N
=== wrong: the bias is added p times :: weights :: gb is added p times
+    gb *= p
=== wrong: the bias's gradient is a mean over the pixels :: weights :: not their mean
-    gb = g.sum(axis=(0, 2, 3))
+    gb = g.sum(axis=(0, 2, 3)) / output_size(H, K, stride, padding) / output_size(W, K, stride, padding)
=== wrong: one number for the bias :: weights, sums :: gb: expected an array of shape
+    gb = g.sum(keepdims=True).reshape(1)
=== wrong: without the halo :: weights :: The halo is missing
-    gw = weights_gradient(patch, g, K, stride)
+    inner = np.zeros_like(patch)
+    a, b = max(begin, start) - start, max(min(end, stop) - start, 0)
+    inner[:, :, a:b] = patch[:, :, a:b]
+    gw = weights_gradient(inner, g, K, stride)
=== wrong: the gradient of the halo is not returned :: input, halo :: The gradient of the halo is not returned
-    for k in (i - 1, i + 1):
-        if 0 <= k < p:
-            a, b = span(H, p, k)
+    for k in ():
+        if 0 <= k < p:
+            a, b = span(H, p, k)

-    for k in (i - 1, i + 1):
-        if 0 <= k < p:
-            a, b = needs(k)
+    for k in ():
+        if 0 <= k < p:
+            a, b = needs(k)
=== wrong: returned, but not added :: input, halo :: not put in its place
-                gx[:, :, a - begin : b - begin] += comm.recv(k)
+                gx[:, :, a - begin : b - begin] = comm.recv(k)
=== wrong: returned and dropped :: input, halo :: The gradient of the halo is not returned
+                comm.recv(k)
=== wrong: added twice :: input, halo :: added twice
+                gx[:, :, a - begin : b - begin] += 2 * comm.recv(k)
=== wrong: the gradient of the input is a mean :: input, halo :: divided by p
-    return gx, gw, gb
+    return gx / p, gw, gb
=== wrong: the gradient of the patch is returned :: input, halo :: Its halo belongs to the neighbours
+    return patch_gradient(patch, w, g, stride), gw, gb
=== wrong: the kernel the wrong way round :: input, halo :: The kernel is the wrong way round
-    gp = patch_gradient(patch, w, g, stride)
+    gp = patch_gradient(patch, w[:, :, ::-1, ::-1], g, stride)
=== wrong: the columns of the padding are kept :: input, halo :: gx: expected an array of shape
-    gp = gp[:, :, :, padding : padding + W]
-    gp = np.concatenate([gp, np.zeros(gp.shape[:3] + (W - gp.shape[3],))], axis=3)
+    W = gp.shape[3]
=== wrong: columns in no window are left out :: input, halo :: gx: expected an array of shape
-    gp = np.concatenate([gp, np.zeros(gp.shape[:3] + (W - gp.shape[3],))], axis=3)
+    W = gp.shape[3]
=== wrong: the columns of the padding are sent :: halo :: Columns outside the image belong to nobody
-                works.append(comm.isend(gp[:, :, a - start : b - start].copy(), k))
+                wide = np.pad(gp, ((0, 0), (0, 0), (0, 0), (padding, padding)))
+                works.append(comm.isend(wide[:, :, a - start : b - start].copy(), k))

-                gx[:, :, a - begin : b - begin] += comm.recv(k)
+                gx[:, :, a - begin : b - begin] += comm.recv(k)[:, :, :, padding : padding + W]
=== wrong: the whole patch's gradient is sent :: halo :: Only the rows of the patch
+                works.append(comm.isend(gp.copy(), k))

-                gx[:, :, a - begin : b - begin] += comm.recv(k)
+                gx[:, :, a - begin : b - begin] += comm.recv(k)[:, :, a - needs(k)[0] : b - needs(k)[0]]
=== base
def weight_gradient(comm, patch, w, g, H, W, stride, padding):
    K = w.shape[2]
    first = span(output_size(H, K, stride, padding), comm.size, comm.rank)[0] * stride
    whole = np.zeros(patch.shape[:2] + (H + 2 * padding + K + stride, W + 2 * padding))
    whole[:, :, first : first + patch.shape[2], : patch.shape[3]] = patch_gradient(patch, w, g, stride)
    whole = np.ascontiguousarray(whole[:, :, padding : padding + H, padding : padding + W])
    comm.all_reduce(whole)
    sums = np.append(weights_gradient(patch, g, K, stride), g.sum(axis=(0, 2, 3)))
    comm.all_reduce(sums)
    start, stop = span(H, comm.size, comm.rank)
    return whole[:, :, start:stop], sums[: w.size].reshape(w.shape), sums[w.size :]
=== wrong: the gradient of the input is all-reduced :: sums, halo :: expected one or two all-reduces of
-    comm.all_reduce(whole)
+    whole = comm.all_reduce(whole)
=== wrong: gathered gradients of the weights :: sums, halo :: no comm.all_gather
-    comm.all_reduce(sums)
+    sums = sum(comm.all_gather(sums))
=== wrong: every filter is all-reduced by itself :: sums, halo :: all-reduces
+    for number in range(len(sums)):
+        sums[number] = comm.all_reduce(float(sums[number]))
=== wrong: the deadlock of send before receive :: all :: deadlock: ranks 0 :: stuck
def weight_gradient(comm, patch, w, g, H, W, stride, padding):
    big = np.zeros(9000)
    for k in (comm.rank - 1, comm.rank + 1):
        if 0 <= k < comm.size:
            comm.send(big, k)
            comm.recv(k)
    if comm.rank == 0:
        comm.recv(0)
=== right: one vector, sendrecv, extended slabs
def weight_gradient(comm, patch, w, g, H, W, stride, padding):
    p, i, K = comm.size, comm.rank, w.shape[2]
    outputs = [span(output_size(H, K, stride, padding), p, k) for k in range(p)]
    halo = [range(max(a * stride - padding, 0), min((b - 1) * stride - padding + K, H)) for a, b in outputs]
    mine = [range(*span(H, p, k)) for k in range(p)]
    padded = np.zeros(patch.shape[:2] + (H + 2 * padding + stride, W + 2 * padding + stride))
    top = outputs[i][0] * stride
    padded[:, :, top : top + patch.shape[2], : patch.shape[3]] = patch_gradient(patch, w, g, stride)
    image = padded[:, :, padding : padding + H, padding : padding + W].copy()
    columns = min(W, patch.shape[3] - padding)
    for shift in (1, -1):
        sent = [t for t in halo[i] if 0 <= i + shift < p and t in mine[i + shift]]
        came = [t for t in mine[i] if 0 <= i - shift < p and t in halo[i - shift]]
        work = comm.isend(image[:, :, sent, :columns], i + shift) if sent else None
        if came:
            image[:, :, came, :columns] += comm.recv(i - shift)
        if work:
            work.wait()
    both = np.append(weights_gradient(patch, g, K, stride), np.einsum("nfhw->f", g))
    both = comm.reduce_scatter(both)
    both = np.concatenate(comm.all_gather(both))
    return [image[:, :, list(mine[i])], both[: w.size].reshape(w.shape), both[w.size :]]
=== right: row by row of the output
def weight_gradient(comm, patch, w, g, H, W, stride, padding):
    K, p, i = w.shape[2], comm.size, comm.rank
    sums, whole = [np.zeros_like(w), np.einsum("nfhw->f", g)], np.zeros_like(patch)
    for r in range(g.shape[2]):
        window, row = np.s_[:, :, r * stride : r * stride + K], g[:, :, r : r + 1]
        whole[window] += patch_gradient(patch[window], w, row, stride)
        sums[0] += weights_gradient(patch[window], row, K, stride)
    for each in sums:
        comm.all_reduce(each)
    rows = [span(output_size(H, K, stride, padding), p, k) for k in range(p)]
    first = [a * stride - padding for a, _ in rows]
    last = [(b - 1) * stride - padding + K for _, b in rows]
    begin, end = span(H, p, i)
    gx = np.zeros(patch.shape[:2] + (end - begin, W))

    def put(part, start, stop):
        width = min(part.shape[3], W)
        gx[:, :, start - begin : stop - begin, :width] += part[:, :, :, :width]

    inside = whole[:, :, :, padding : padding + W]
    low, high = max(begin, first[i]), min(end, last[i])
    put(inside[:, :, low - first[i] : max(high, low) - first[i]], low, max(low, high))
    pending = []
    for k in [k for k in (i + 1, i - 1) if 0 <= k < p]:
        a, b = span(H, p, k)
        a, b = max(a, first[i]), min(b, last[i])
        if a < b:
            pending.append(comm.isend(inside[:, :, a - first[i] : b - first[i]].copy(), k))
    for k in [k for k in (i + 1, i - 1) if 0 <= k < p]:
        a, b = max(begin, first[k]), min(end, last[k])
        if a < b:
            put(comm.irecv(k).wait(), a, b)
    [work.wait() for work in pending]
    return gx, *sums
"""
