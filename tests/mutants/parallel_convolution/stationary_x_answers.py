ANSWERS = r"""
=== parts
values: this rank's channels of y, with the bias once
collective: y by one reduce-scatter, and nothing else
words: the words of one reduce-scatter of y
=== base
def stationary_x(comm, x, w, b, stride, padding):
    pad = (padding, padding)
    padded = np.pad(x, ((0, 0), (0, 0), pad, pad))
    partial = convolve(padded, w, stride)
    flat = np.ascontiguousarray(partial.swapaxes(0, 1))
    mine = comm.reduce_scatter(flat)
    start, stop = span(len(b), comm.size, comm.rank)
    return (mine + b[start:stop].reshape(-1, 1, 1, 1)).swapaxes(0, 1)
=== wrong: the bias is added p times :: values, collective :: added p times
-    flat = np.ascontiguousarray(partial.swapaxes(0, 1))
+    flat = np.ascontiguousarray((partial + b[:, None, None]).swapaxes(0, 1))

-    return (mine + b[start:stop].reshape(-1, 1, 1, 1)).swapaxes(0, 1)
+    return mine.swapaxes(0, 1)
=== wrong: no bias :: values, collective :: The bias is missing
-    return (mine + b[start:stop].reshape(-1, 1, 1, 1)).swapaxes(0, 1)
+    return mine.swapaxes(0, 1)
=== wrong: the bias of the first filters :: values, collective :: that of the first filters
+    return (mine + b[: stop - start].reshape(-1, 1, 1, 1)).swapaxes(0, 1)
=== wrong: the bias divided by p :: values, collective :: y: expected
+    return (mine + b[start:stop].reshape(-1, 1, 1, 1) / comm.size).swapaxes(0, 1)
=== wrong: the mean over the ranks :: values, collective :: This is the mean
+    return (mine / comm.size + b[start:stop].reshape(-1, 1, 1, 1)).swapaxes(0, 1)
=== wrong: filters first in the result :: values, collective :: move it back
+    return mine + b[start:stop].reshape(-1, 1, 1, 1)
=== wrong: no messages :: all :: This is a partial sum
-    mine = comm.reduce_scatter(flat)
+    mine = flat[slice(*span(len(b), comm.size, comm.rank))]
=== wrong: the sum is reduced on every rank :: collective, words :: An all-reduce brings every rank all of y
+    comm.all_reduce(flat)
+    mine = flat[slice(*span(len(b), comm.size, comm.rank))]
=== wrong: partial sums are gathered :: collective, words :: With an all-gather every rank gets
+    mine = sum(comm.all_gather(flat))[slice(*span(len(b), comm.size, comm.rank))]
=== wrong: partial sums go to rank 0 :: collective, words :: got comm.broadcast
+    whole = comm.reduce(flat, dst=0)
+    whole = comm.broadcast(whole if comm.rank == 0 else None, src=0)
+    mine = whole[slice(*span(len(b), comm.size, comm.rank))]
=== wrong: channels of x are gathered :: collective, words :: With an all-gather
+    whole = np.concatenate(comm.all_gather(padded), axis=1)
+    weights = np.concatenate(comm.all_gather(w), axis=1)
+    start, stop = span(len(b), comm.size, comm.rank)
+    mine = convolve(whole, weights[start:stop], stride).swapaxes(0, 1)
=== wrong: a reduce-scatter for each sample :: collective :: expected one comm.reduce_scatter and nothing else
+    mine = np.stack([comm.reduce_scatter(flat[:, n].copy()) for n in range(len(x))], axis=1)
=== wrong: sent to those who need it :: collective :: sends the partial sums to the rank that needs them
+    mine = sum(comm.all_to_all([flat[slice(*span(len(b), comm.size, r))].copy() for r in range(comm.size)]))
=== wrong: reduced twice :: collective, words :: expected one comm.reduce_scatter and nothing else
+    mine = comm.reduce_scatter(flat)
+    mine = comm.reduce_scatter(flat)
=== wrong: numbers of 4 bytes :: values, collective, words :: y: expected
+    mine = comm.reduce_scatter(flat.astype(np.float32))
=== wrong: samples are scattered :: all :: stationary_x
-    flat = np.ascontiguousarray(partial.swapaxes(0, 1))
-    mine = comm.reduce_scatter(flat)
+    mine = comm.reduce_scatter(partial)

-    return (mine + b[start:stop].reshape(-1, 1, 1, 1)).swapaxes(0, 1)
+    return mine + b[:, None, None]
=== wrong: the flattened result is scattered :: all :: bring the filters there before
+    mine = comm.reduce_scatter(partial.ravel())

-    return (mine + b[start:stop].reshape(-1, 1, 1, 1)).swapaxes(0, 1)
+    return mine
=== wrong: all of y is returned :: all :: Each rank returns its own channels
-    flat = np.ascontiguousarray(partial.swapaxes(0, 1))
-    mine = comm.reduce_scatter(flat)
-    start, stop = span(len(b), comm.size, comm.rank)
-    return (mine + b[start:stop].reshape(-1, 1, 1, 1)).swapaxes(0, 1)
+    comm.all_reduce(partial)
+    return partial + b[:, None, None]
=== wrong: a barrier more :: collective :: waits for what it needs
     mine = comm.reduce_scatter(flat)
+    comm.barrier()
=== wrong: the padding is missing :: all :: The padding is missing
-    padded = np.pad(x, ((0, 0), (0, 0), pad, pad))
+    padded = x
=== wrong: padding on one side :: values, collective :: stationary_x
+    padded = np.pad(x, ((0, 0), (0, 0), (2 * padding, 0), (2 * padding, 0)))
=== wrong: the stride is missing :: all :: The stride is missing
-    partial = convolve(padded, w, stride)
+    partial = convolve(padded, w, 1)
=== wrong: the kernel the wrong way round :: values, collective :: The kernel is the wrong way round
+    partial = convolve(padded, w[:, :, ::-1, ::-1], stride)
=== right: a loop over filters
def stationary_x(comm, x, w, b, stride, padding):
    N, C, H, W = x.shape
    OH, OW = (output_size(n, w.shape[2], stride, padding) for n in (H, W))
    padded = np.zeros((N, C, H + 2 * padding, W + 2 * padding))
    padded[:, :, padding : padding + H, padding : padding + W] = x
    sums = np.zeros((len(b), N, OH, OW))
    for f, filter in enumerate(w):
        for i in range(OH):
            for j in range(OW):
                window = padded[:, :, i * stride :, j * stride :][:, :, : w.shape[2], : w.shape[2]]
                sums[f, :, i, j] = np.tensordot(window, filter, 3)
    own = comm.reduce_scatter(sums)
    return np.moveaxis(own, 0, 1) + np.array_split(b, comm.size)[comm.rank][:, None, None]
=== right: the bias on one rank before the sum
def stationary_x(comm, x, w, b, stride, padding):
    from minidl import functional as F
    y = F.conv2d(x, w, stride=stride, padding=padding)
    y = np.array(getattr(y, "data", y)).transpose(1, 2, 3, 0)
    if comm.rank == comm.size - 1:
        y += b[:, None, None, None]
    return comm.reduce_scatter(y.copy()).transpose(3, 0, 1, 2)
"""
