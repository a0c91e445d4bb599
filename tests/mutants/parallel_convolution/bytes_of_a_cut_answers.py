ANSWERS = r"""
=== parts
slabs: slabs, forward
tiles: tiles with corners, forward
groups: channels and filters, forward
backward: the backward of each division
=== base
def bytes_of_a_cut(sizes, kernel, stride, padding, cut):
    N, C, H, W, F = sizes
    OH = output_size(H, kernel, stride, padding)
    OW = output_size(W, kernel, stride, padding)
    if cut[0] == "channels":
        p = cut[1]
        there = back = (p - 1) * N * F * OH * OW
        return 4 * there, 4 * back
    if cut[0] == "filters":
        p = cut[1]
        there = back = (p - 1) * N * C * H * W
        return 4 * there, 4 * back
    _, h, w = cut
    halo = 0
    for i in range(h):
        for j in range(w):
            first, last = span(OH, h, i)
            top = max(first * stride - padding, 0)
            bottom = min((last - 1) * stride - padding + kernel, H)
            first, last = span(OW, w, j)
            left = max(first * stride - padding, 0)
            right = min((last - 1) * stride - padding + kernel, W)
            a, b = span(H, h, i)
            c, d = span(W, w, j)
            rows, columns = max(bottom - top, 0), max(right - left, 0)
            mine = max(min(bottom, b) - max(top, a), 0) * max(min(right, d) - max(left, c), 0)
            halo += rows * columns - mine
    halo *= N * C
    sums = 2 * (h * w - 1) * (F * C * kernel**2 + F)
    return 4 * halo, 4 * (halo + sums)
=== wrong: numbers instead of bytes :: all :: each has 4 bytes
-        return 4 * there, 4 * back
-    if cut[0] == "filters":
+        return there, back
+    if cut[0] == "filters":

-        return 4 * there, 4 * back
-    _, h, w = cut
+        return there, back
+    _, h, w = cut

-    return 4 * halo, 4 * (halo + sums)
+    return halo, halo + sums
=== wrong: one number :: all :: expected a pair (forward, backward)
+        return 8 * there
+    if cut[0] == "filters":

-    return 4 * halo, 4 * (halo + sums)
+    return 4 * halo
=== wrong: 8 bytes a number :: slabs, tiles, backward :: 4 bytes here, not 8
-    return 4 * halo, 4 * (halo + sums)
+    return 8 * halo, 8 * (halo + sums)
=== wrong: the halo's gradient is not returned :: backward :: The gradients of the halo go back
+    return 4 * halo, 4 * sums
=== wrong: the halo's gradient alone :: backward :: are summed over the ranks
+    return 4 * halo, 4 * halo
=== wrong: forward and backward together :: backward :: comes without the forward
+    return 4 * halo, 4 * (2 * halo + sums)
=== wrong: interchanged :: slabs, tiles, backward :: in this order
+    return 4 * (halo + sums), 4 * halo
=== wrong: the corner is forgotten :: tiles, backward :: The corners are missing
-            halo += rows * columns - mine
+            own_rows, own_columns = (min(bottom, b) - max(top, a)), (min(right, d) - max(left, c))
+            halo += (rows - own_rows) * own_columns + own_rows * (columns - own_columns)
=== wrong: the corner is counted twice :: tiles, backward :: The corners count once
+            own_rows, own_columns = (min(bottom, b) - max(top, a)), (min(right, d) - max(left, c))
+            halo += (rows - own_rows) * columns + rows * (columns - own_columns)
=== wrong: all rows needed, its own too :: slabs, tiles, backward :: forward: expected
+            halo += rows * columns
=== wrong: all rows that it has are subtracted :: slabs, backward :: forward: expected
+            halo += rows * columns - (b - a) * (d - c)
=== wrong: the whole image is gathered :: slabs, tiles, backward :: the whole image for each rank
-    halo *= N * C
+    halo = (h * w - 1) * N * C * H * W
=== wrong: K - 1 rows for each border, stride or not :: slabs, tiles, backward :: The stride is missing
+    halo = N * C * (W * (h - 1) + H * (w - 1)) * (kernel - 1)
=== wrong: floor(K / 2) rows each way for each border :: slabs, tiles, backward :: The stride is missing
+    halo = N * C * (W * (h - 1) + H * (w - 1)) * 2 * (kernel // 2)
=== wrong: K - stride rows for each border :: slabs, tiles, backward :: right only if a border of the
+    halo = N * C * (W * (h - 1) + H * (w - 1)) * max(kernel - stride, 0)
=== wrong: each slab has two borders :: slabs, tiles, backward :: have one border each
+    halo = N * C * (W * h * (h > 1) + H * w * (w > 1)) * 2 * (kernel // 2)
=== wrong: channels of y :: slabs, tiles, backward :: the channels of x
+    halo *= N * F
=== wrong: one sample :: slabs, tiles, backward :: This is one sample's
+    halo *= C
=== wrong: rows in one direction :: slabs, tiles, backward :: forward: expected
+    halo *= N * C / 2
=== wrong: what one rank sends :: slabs, tiles, backward :: forward: expected
+    halo *= N * C / (h * w)
=== wrong: zeros of the padding are sent :: slabs, tiles, backward :: Zeros of the padding are not sent
-            top = max(first * stride - padding, 0)
-            bottom = min((last - 1) * stride - padding + kernel, H)
+            top = first * stride - padding
+            bottom = (last - 1) * stride - padding + kernel

-            left = max(first * stride - padding, 0)
-            right = min((last - 1) * stride - padding + kernel, W)
+            left = first * stride - padding
+            right = (last - 1) * stride - padding + kernel
=== wrong: a halo row short :: slabs, tiles, backward :: forward: expected
+            top = max(first * stride - padding, 0)
+            bottom = min((last - 1) * stride - padding + kernel - 1, H)
=== wrong: the output is divided as the input :: slabs, tiles, backward :: forward: expected
-            first, last = span(OH, h, i)
+            first, last = span(H, h, i)

-            first, last = span(OW, w, j)
+            first, last = span(W, w, j)
=== wrong: only pixels that are used :: slabs, backward :: forward: expected
-            rows, columns = max(bottom - top, 0), max(right - left, 0)
-            mine = max(min(bottom, b) - max(top, a), 0) * max(min(right, d) - max(left, c), 0)
-            halo += rows * columns - mine
+            used = []
+            for n, out, q, k in ((H, OH, h, i), (W, OW, w, j)):
+                windows = [range(y * stride - padding, y * stride - padding + kernel) for y in range(*span(out, q, k))]
+                used.append({t for window in windows for t in window if 0 <= t < n})
+            rows, columns = used
+            halo += len(rows) * len(columns) - len(rows & {*range(a, b)}) * len(columns & {*range(c, d)})
=== wrong: rows and columns of the grid interchanged :: slabs, tiles, backward :: forward: expected
-    _, h, w = cut
+    _, w, h = cut
=== wrong: no gradient of the bias :: backward :: The gradient of the bias is summed
-    sums = 2 * (h * w - 1) * (F * C * kernel**2 + F)
+    sums = 2 * (h * w - 1) * (F * C * kernel**2)
=== wrong: K weights in a kernel :: backward :: K K weights
+    sums = 2 * (h * w - 1) * (F * C * kernel + F)
=== wrong: one pass for the all-reduce :: backward :: not (p - 1) n
+    sums = (h * w - 1) * (F * C * kernel**2 + F)
=== wrong: all-reduce of 2 p n :: backward :: not 2 p n
+    sums = 2 * h * w * (F * C * kernel**2 + F)
=== wrong: what one rank sends in the all-reduce :: backward :: of one rank in the all-reduce
+    sums = 2 * (h * w - 1) / (h * w) * (F * C * kernel**2 + F)
=== wrong: channels gather x :: groups, backward :: these are the bytes of the other
-        there = back = (p - 1) * N * F * OH * OW
+        there = back = (p - 1) * N * C * H * W
=== wrong: y has the pixels of x :: groups, backward :: look at stride and padding
+        there = back = (p - 1) * N * F * H * W
=== wrong: y is all-reduced :: groups :: one collective of (p - 1) n numbers
+        there, back = 2 * (p - 1) * N * F * OH * OW, (p - 1) * N * F * OH * OW
=== wrong: nothing in the backward of channels :: backward :: there is communication, too
+        there, back = (p - 1) * N * F * OH * OW, 0
=== wrong: filters reduce y :: groups, backward :: these are the bytes of the other
-        there = back = (p - 1) * N * C * H * W
+        there = back = (p - 1) * N * F * OH * OW
=== wrong: the padded image is gathered :: groups, backward :: x has H W pixels
+        there = back = (p - 1) * N * C * (H + 2 * padding) * (W + 2 * padding)
=== wrong: p times x :: groups, backward :: not p n
+        there = back = p * N * C * H * W
=== wrong: what one rank sends of x :: groups, backward :: what one rank sends
+        there = back = (p - 1) / p * N * C * H * W
=== wrong: divided weights are summed :: backward :: The gradients of divided weights stay
+        there = (p - 1) * N * C * H * W
+        back = there + 2 * (p - 1) * (F * C * kernel**2 + F)
=== right: sets of pixels
def bytes_of_a_cut(sizes, kernel, stride, padding, cut):
    N, C, H, W, F = sizes
    kind, p, *w = cut
    if kind != "tiles":
        n = C * H * W
        if kind == "channels":
            n = F * output_size(H, kernel, stride, padding) * output_size(W, kernel, stride, padding)
        return [4 * (p - 1) * N * n] * 2

    def lines(n, q):
        size = output_size(n, kernel, stride, padding)
        for own, outputs in zip(np.array_split(range(n), q), np.array_split(range(size), q)):
            inside = range(outputs[0] * stride - padding, outputs[-1] * stride - padding + kernel)
            yield set(map(int, own)), {i for i in inside if 0 <= i < n}

    total = 0
    for own_rows, rows in lines(H, p):
        for own_columns, columns in lines(W, w[0]):
            total += len({(i, j) for i in rows for j in columns} - {(i, j) for i in own_rows for j in own_columns})
    total *= N * C
    return np.array([total, total + 2 * (p * w[0] - 1) * F * (C * kernel * kernel + 1)]) * 4
"""
