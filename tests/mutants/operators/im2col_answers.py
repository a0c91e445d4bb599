ANSWERS = r"""
=== parts
patches: each column of B is a patch
result: the result is the convolution
product: one product of all filters with all patches
lines: no loop of Python over images or pixels
=== right: windows as a view
def im2col(x, w, stride, padding, product):
    F, C, R, S = w.shape
    p = padding
    wide = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (R, S), axis=(2, 3))[:, :, ::stride, ::stride]
    N, _, h, v = windows.shape[:4]
    B = windows.transpose(1, 4, 5, 0, 2, 3).reshape(C * R * S, N * h * v)
    y = product(w.reshape(F, C * R * S), B)
    return np.moveaxis(y.reshape(F, N, h, v), 0, 1)
=== wrong: the axes of the result are taken for those of the product :: result :: reshape to (F, N, H', W')
-    return np.moveaxis(y.reshape(F, N, h, v), 0, 1)
+    return y.reshape(N, F, h, v)
=== wrong: the axis of the filters comes first :: result :: in the order (F, N, H', W')
+    return y.reshape(F, N, h, v)
=== wrong: the product as it is :: result, product, lines :: This is the product as it is
+    return y
=== wrong: rows and columns of the result are interchanged :: result, product, lines :: H' and W' are interchanged
+    return np.moveaxis(y.reshape(F, N, h, v), 0, 1).swapaxes(2, 3)
=== wrong: the filter is turned round :: result, product, lines :: The filter was turned round
-    y = product(w.reshape(F, C * R * S), B)
+    y = product(w[:, :, ::-1, ::-1].reshape(F, C * R * S), B)
=== wrong: a patch in each row :: all :: columns, but B has :: raised
+    y = product(w.reshape(F, C * R * S), B.T)
=== wrong: patches times filters :: patches, product :: expected an array of shape
+    y = product(B.T, w.reshape(F, C * R * S).T).T
=== wrong: the zeros around the image are forgotten :: patches, result, product
:: The zeros around the image are missing
+    y = product(w.reshape(F, C * R * S), B)
-    p = padding
+    p = 0
=== wrong: the channel is the last of a row :: patches, product :: The rows are in the order (r, s, c)
-    B = windows.transpose(1, 4, 5, 0, 2, 3).reshape(C * R * S, N * h * v)
-    y = product(w.reshape(F, C * R * S), B)
+    B = windows.transpose(4, 5, 1, 0, 2, 3).reshape(C * R * S, N * h * v)
+    y = product(w.transpose(0, 2, 3, 1).reshape(F, C * R * S), B)
=== wrong: the channels of the patches alone are last :: patches, result, product, lines :: in the order (r, s, c)
-    B = windows.transpose(1, 4, 5, 0, 2, 3).reshape(C * R * S, N * h * v)
+    B = windows.transpose(4, 5, 1, 0, 2, 3).reshape(C * R * S, N * h * v)
=== wrong: the column of the filter before its row :: patches, result, product, lines :: in the order (c, s, r)
+    B = windows.transpose(1, 5, 4, 0, 2, 3).reshape(C * R * S, N * h * v)
=== wrong: images run fastest :: patches, result :: The columns are in the order (i, j, n)
+    B = windows.transpose(1, 4, 5, 2, 3, 0).reshape(C * R * S, N * h * v)
=== wrong: the column of the image before its row :: all :: The columns are in the order (n, j, i)
+    B = windows.transpose(1, 4, 5, 0, 3, 2).reshape(C * R * S, N * h * v)
=== wrong: no order at all: reshaped without moving axes :: all :: expected
+    B = windows.reshape(C * R * S, N * h * v)
=== wrong: zeros on two sides :: patches, result :: Zeros are only above and to the left
-    wide = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
+    wide = np.pad(x, ((0, 0), (0, 0), (2 * p, 0), (2 * p, 0)))
=== wrong: the border is repeated in place of zeros :: patches, result :: expected
+    wide = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)), mode="edge") if p else x
=== wrong: always float64 :: patches :: expected an array of float32, got one of float64
+    wide = np.pad(x.astype(float), ((0, 0), (0, 0), (p, p), (p, p)))
=== wrong: the stride is forgotten :: patches, result :: The stride is missing
-    windows = np.lib.stride_tricks.sliding_window_view(wide, (R, S), axis=(2, 3))[:, :, ::stride, ::stride]
+    windows = np.lib.stride_tricks.sliding_window_view(wide, (R, S), axis=(2, 3))
=== wrong: computed for all strides, thrown away afterwards :: patches, product :: The stride is missing
+    windows = np.lib.stride_tricks.sliding_window_view(wide, (R, S), axis=(2, 3))
-    return np.moveaxis(y.reshape(F, N, h, v), 0, 1)
+    return np.moveaxis(y.reshape(F, N, h, v), 0, 1)[:, :, ::stride, ::stride]
=== wrong: the memory is taken to be in the order of the axes :: patches, result :: expected
+    _, _, H, W = x.shape
+    N, h, v = len(x), (H + 2 * p - R) // stride + 1, (W + 2 * p - S) // stride + 1
+    wide = wide if p else x
+    d = wide.itemsize
+    H, W = wide.shape[2:]
+    strides = (d * C * H * W, d * H * W, stride * d * W, stride * d, d * W, d)
+    windows = np.lib.stride_tricks.as_strided(wide, (N, C, h, v, R, S), strides)
=== base
def im2col(x, w, stride, padding, product):
    N, C, H, W = x.shape
    F, _, R, S = w.shape
    X = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    h, v = (H + 2 * padding - R) // stride + 1, (W + 2 * padding - S) // stride + 1
    B = np.empty((C, R, S, N, h, v), x.dtype)
    for c in range(C):
        for r in range(R):
            for s in range(S):
                B[c, r, s] = X[:, c, r : r + stride * h : stride, s : s + stride * v : stride]
    A, B = w.reshape(F, C * R * S), B.reshape(C * R * S, N * h * v)
    return product(A, B).reshape(F, N, h, v).transpose(1, 0, 2, 3)
=== wrong: a loop over pixels :: lines :: lines of Python were executed
-    for c in range(C):
-        for r in range(R):
-            for s in range(S):
-                B[c, r, s] = X[:, c, r : r + stride * h : stride, s : s + stride * v : stride]
+    for n in range(N):
+        for i in range(h):
+            for j in range(v):
+                B[:, :, :, n, i, j] = X[n, :, i * stride : i * stride + R, j * stride : j * stride + S]
=== wrong: a loop over rows in a comprehension :: lines :: lines of Python were executed
+    both = [np.array([[[X[:, c, r + stride * i, s : s + stride * v : stride] for i in range(h)]
+            for s in range(S)] for r in range(R)]) for c in range(C)]
+    B[...] = np.array(both).transpose(0, 1, 2, 4, 3, 5)
=== wrong: a loop over images :: lines :: lines of Python were executed
+    for n in range(N):
+        for r in range(R):
+            for s in range(S):
+                B[:, r, s, n] = X[n, :, r : r + stride * h : stride, s : s + stride * v : stride]
=== wrong: a product for each image :: patches, product, lines :: expected an array of shape
-    A, B = w.reshape(F, C * R * S), B.reshape(C * R * S, N * h * v)
-    return product(A, B).reshape(F, N, h, v).transpose(1, 0, 2, 3)
+    A, B = w.reshape(F, C * R * S), B.reshape(C * R * S, N, h * v)
+    y = [product(A, B[:, n]).reshape(1, F, h, v) for n in range(N)]
+    return np.concatenate(y or [np.zeros((0, F, h, v))])
=== wrong: a product for each filter :: product :: All filters together are one product
+    A, B = w.reshape(F, C * R * S), B.reshape(C * R * S, N * h * v)
+    return np.array([product(A[f : f + 1], B).reshape(N, h, v) for f in range(F)]).transpose(1, 0, 2, 3)
=== wrong: a product for each position of the filter :: patches, product :: expected an array of shape
+    y = [product(w[:, :, r, s], B[:, r, s].reshape(C, N * h * v)) for r in range(R) for s in range(S)]
+    return sum(y).reshape(F, N, h, v).transpose(1, 0, 2, 3)
=== wrong: numpy's product instead :: patches, product :: product was not called
+    return np.tensordot(w, B, 3).transpose(1, 0, 2, 3)
=== wrong: called for show, with matrices of zeros :: patches, product :: expected
+    product(np.zeros((F, 1)), np.zeros((1, N * h * v)))
+    return np.tensordot(w, B, 3).transpose(1, 0, 2, 3)
=== wrong: the last row of patches is missing :: all :: expected
-    h, v = (H + 2 * padding - R) // stride + 1, (W + 2 * padding - S) // stride + 1
+    h, v = (H + 2 * padding - R + stride - 1) // stride, (W + 2 * padding - S + stride - 1) // stride
=== wrong: writes zeros into the caller's images :: patches :: changed
-    X = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
+    X = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
+    x[:, :, 0] = 0
=== base
def im2col(x, w, stride, padding, product):
    (N, C, _, _), (F, _, R, S), p = x.shape, w.shape, padding
    P = np.pad(x, [(0, 0), (0, 0), (p, p), (p, p)])
    P = np.lib.stride_tricks.sliding_window_view(P, (R, S), (2, 3))[:, :, ::stride, ::stride]
    A, B = w.reshape(F, -1), P.transpose(1, 4, 5, 0, 2, 3).reshape(C * R * S, N * P.shape[2] * P.shape[3])
    y = product(A, B)
    return y.reshape(F, N, *P.shape[2:4]).swapaxes(0, 1)
=== wrong: the result is computed once more :: product :: does not have the numbers of product(A, B)
-    return y.reshape(F, N, *P.shape[2:4]).swapaxes(0, 1)
+    return np.einsum("nchvrs,fcrs->nfhv", P, w)
=== wrong: rows of A that are thrown away :: product :: rows and columns that are thrown away
-    y = product(A, B)
+    y = product(np.concatenate([A, A]), B)[:F]
=== wrong: no product for no images :: patches, product :: product was not called
+    if N == 0:
+        return np.zeros((0, F, *P.shape[2:4]))
+    y = product(A, B)
=== wrong: the filters in the order of their memory :: result :: expected
-    A, B = w.reshape(F, -1), P.transpose(1, 4, 5, 0, 2, 3).reshape(C * R * S, N * P.shape[2] * P.shape[3])
+    A, B = w.ravel("K").reshape(F, -1), P.transpose(1, 4, 5, 0, 2, 3).reshape(C * R * S, N * P.shape[2] * P.shape[3])
=== right: numbers of places as arrays of indices
def im2col(x, w, stride, padding, product):
    (N, C, H, W), (F, _, R, S) = x.shape, w.shape
    X = np.zeros((N, C, H + 2 * padding, W + 2 * padding), x.dtype)
    X[:, :, padding : H + padding, padding : W + padding] = x
    i, j = np.arange(0, H + 2 * padding - R + 1, stride), np.arange(0, W + 2 * padding - S + 1, stride)
    rows, columns = np.arange(R)[:, None, None, None] + i[:, None], np.arange(S)[:, None, None] + j
    B = X[:, :, rows, columns].transpose(1, 2, 3, 0, 4, 5).reshape(C * R * S, N * len(i) * len(j))
    y = product(np.ascontiguousarray(w.reshape(F, -1)), np.asfortranarray(B))
    return y.reshape(F, N, len(i), len(j)).swapaxes(0, 1)
"""
