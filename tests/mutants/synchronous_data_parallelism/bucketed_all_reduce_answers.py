ANSWERS = r"""
=== parts
sums: every layer's sum, in the order of the layers
kept: the gradients stay as they are
buckets: one all-reduce for each bucket, of the right size
starts: each starts as soon as its bucket is full
ends: all end as early as they can
=== base
def bucketed_all_reduce(comm, layers, bucket_bytes):
    bucket, in_flight = [], []

    def start():
        joined = np.concatenate(bucket)
        lengths = [len(gradient) for gradient in bucket]
        in_flight.append((comm.all_reduce(joined, async_op=True), joined, lengths))
        bucket.clear()

    for gradient in backward(comm, layers):
        bucket.append(gradient)
        if sum(gradient.nbytes for gradient in bucket) >= bucket_bytes:
            start()
    if bucket:
        start()
    sums = []
    for work, joined, lengths in in_flight:
        work.wait()
        sums += np.split(joined, np.cumsum(lengths)[:-1])
    return sums[::-1]
=== wrong: waits right after each all-reduce :: starts, ends :: Did it wait for the all-reduce before?
         in_flight.append((comm.all_reduce(joined, async_op=True), joined, lengths))
+        in_flight[-1][0].wait()
=== wrong: bucket_bytes in whole elements, rounded down :: buckets :: expected :: hidden only
-        if sum(gradient.nbytes for gradient in bucket) >= bucket_bytes:
+        if sum(len(gradient) for gradient in bucket) >= bucket_bytes // 8:
=== wrong: one all-reduce for each gradient :: buckets, starts, ends :: Every gradient has an all-reduce of its own
+        if True:
=== wrong: everything in one bucket :: buckets, starts, ends :: All gradients are in one bucket
+        if False:
=== wrong: a bucket that holds exactly bucket_bytes is not full :: buckets
:: A bucket that holds exactly bucket_bytes is full, too
+        if sum(gradient.nbytes for gradient in bucket) > bucket_bytes:
=== wrong: bytes taken for elements :: buckets, starts, ends :: expected
+        if sum(len(gradient) for gradient in bucket) >= bucket_bytes:
=== wrong: starts after backward :: starts, ends :: All of them began after backward
-    for gradient in backward(comm, layers):
+    for gradient in list(backward(comm, layers)):
=== wrong: the first layer's gradient first :: buckets, starts, ends :: buckets
+    for gradient in list(backward(comm, layers))[::-1]:
-    return sums[::-1]
+    return sums
=== wrong: reduces gradients before they are computed :: starts, ends :: before its gradients were computed
+    for gradient in (gradient for gradient, _ in reversed(layers)):
         start()
+    for _ in backward(comm, layers):
+        pass
=== wrong: the last bucket is forgotten :: all :: The last bucket need not be full
-    if bucket:
-        start()
=== wrong: the list goes from the last layer to the first :: sums, kept :: layer 0
-    return sums[::-1]
+    return sums
=== wrong: the gradients themselves are written into :: kept :: the caller's gradient of layer 0 was changed
+    for (gradient, _), total in zip(layers, sums[::-1]):
+        gradient[...] = total
+    return [gradient for gradient, _ in layers]
=== wrong: odd ranks start their buckets in the reverse order :: all :: all_reduce :: raised
def bucketed_all_reduce(comm, layers, bucket_bytes):
    buckets = [[]]
    for gradient in backward(comm, layers):
        buckets[-1].append(gradient)
        if sum(each.nbytes for each in buckets[-1]) >= bucket_bytes:
            buckets.append([])
    buckets = [bucket for bucket in buckets if bucket]
    joined = [np.concatenate(bucket) for bucket in buckets]
    order = list(range(len(joined)))
    if comm.rank % 2:
        order.reverse()
    for work in [comm.all_reduce(joined[i], async_op=True) for i in order]:
        work.wait()
    sums = []
    for bucket, total in zip(buckets, joined):
        sums += np.split(total, np.cumsum([len(gradient) for gradient in bucket])[:-1])
    return sums[::-1]
=== wrong: a bucket is closed when the next gradient does not fit :: buckets, starts, ends :: bucket
     for gradient in backward(comm, layers):
+        if bucket and sum(each.nbytes for each in bucket) + gradient.nbytes > bucket_bytes:
+            start()
-        if sum(gradient.nbytes for gradient in bucket) >= bucket_bytes:
-            start()
=== wrong: a full bucket starts when the next gradient is there :: starts, ends
:: Does it start only when the next gradient is there?
+        if bucket and sum(gradient.nbytes for gradient in bucket) >= bucket_bytes:
+            start()
-        if sum(gradient.nbytes for gradient in bucket) >= bucket_bytes:
-            start()
=== wrong: the mean of the ranks :: sums, kept :: This is the mean
-        in_flight.append((comm.all_reduce(joined, async_op=True), joined, lengths))
+        in_flight.append((comm.all_reduce(joined, op="mean", async_op=True), joined, lengths))
=== wrong: does not wait :: sums, kept :: the sum was read before wait()
-        work.wait()
=== wrong: returns the buckets :: sums, kept, ends :: These are the buckets
-        sums += np.split(joined, np.cumsum(lengths)[:-1])
+        sums.append(joined)
=== wrong: float32 on the way :: all :: expected an array of float64
-        joined = np.concatenate(bucket)
+        joined = np.concatenate(bucket).astype(np.float32)
=== wrong: an all-reduce of nothing when the last bucket is empty :: buckets, starts :: An all-reduce has no element
+        joined = np.concatenate([*bucket, np.zeros(0)])
-    if bucket:
-        start()
+    start()
-        sums += np.split(joined, np.cumsum(lengths)[:-1])
+        sums += np.split(joined, np.cumsum(lengths)[:-1]) if lengths else []
=== wrong: fails without layers :: sums, kept, buckets :: concatenate :: raised
-    if bucket:
+    if bucket or not in_flight:
=== wrong: at most two all-reduces in flight :: starts :: Backward stood still in between
         bucket.clear()
+        if len(in_flight) > 2:
+            in_flight[-3][0].wait()
=== right: the buckets are planned first; slices of one long vector
def bucketed_all_reduce(comm, layers, bucket_bytes):
    lengths = [len(gradient) for gradient, _ in layers]
    ends = np.cumsum(lengths)
    everything = np.zeros(sum(lengths))
    layer = upper = len(layers)
    works = []
    for gradient in backward(comm, layers):
        layer -= 1
        everything[ends[layer] - lengths[layer] : ends[layer]] = gradient
        if 8 * sum(lengths[layer:upper]) >= bucket_bytes or layer == 0:
            part = everything[ends[layer] - lengths[layer] : ends[upper - 1]]
            works.append(comm.all_reduce(part, async_op=True, label=str(len(works))))
            upper = layer
    for work in works:
        work.wait()
    return [everything[end - length : end] for length, end in zip(lengths, ends)]
=== right: one bucket array is filled at a time; the ring; waits in reverse order; a tuple
def bucketed_all_reduce(comm, layers, bucket_bytes):
    found, works, filling = {}, [], np.zeros(0)
    names = []
    for back, gradient in enumerate(backward(comm, layers), start=1):
        filling = np.append(filling, gradient)
        names.append(len(layers) - back)
        if 8 * len(filling) >= bucket_bytes or back == len(layers):
            works.append((comm.all_reduce(filling, algorithm="ring", async_op=True), filling, names))
            filling, names = np.zeros(0), []
    for work, joined, names in works[::-1]:
        work.wait()
        place = 0
        for layer in names:
            length = len(layers[layer][0])
            found[layer] = joined[place : place + length].copy()
            place += length
    return tuple(found[layer] for layer in range(len(layers)))
"""
