ANSWERS = r"""
=== parts
of x: the gradient of X
of w: the gradient of W
memory: in the memory of a few matrices
=== wrong: W is not transposed where it fits :: of x :: W is not transposed
def vjp_matmul(g, X, W):
    return g @ (W if W.shape[0] == W.shape[1] else W.T), X.T @ g
=== wrong: all products before the sum :: memory :: a matrix product sums as it goes
def vjp_matmul(g, X, W):
    gX = (g[:, None, :] * W).sum(axis=2)
    return gX, (X[:, :, None] * g[:, None, :]).sum(axis=0)
=== wrong: by the Jacobian :: memory :: at its peak
def vjp_matmul(g, X, W):
    J = np.kron(np.eye(len(X)), W)
    return (J @ g.ravel()).reshape(X.shape), X.T @ g
=== wrong: a matrix of m times m :: memory :: at its peak
def vjp_matmul(g, X, W):
    return np.eye(len(X)) @ g @ W.T, X.T @ g
=== wrong: fails without rows :: of w :: need at least one array to stack :: raised
def vjp_matmul(g, X, W):
    return np.stack([W @ row for row in g]), X.T @ g
=== wrong: both transposed :: all :: the gradient of X: expected an array of shape
def vjp_matmul(g, X, W):
    return W @ g.T, g.T @ X
=== wrong: the result is written into W :: of x :: vjp_matmul changed its argument W at [0, 0]
def vjp_matmul(g, X, W):
    gX = g @ W.T
    W[...] = X.T @ g
    return gX, W
=== wrong: the gradient of W alone :: all :: expected two gradients
def vjp_matmul(g, X, W):
    return X.T @ g
=== wrong: gX row by row, which is no matrix where there are no rows :: of w
:: the gradient of X: expected an array of shape (0,
def vjp_matmul(g, X, W):
    return np.array([W @ row for row in g]), X.T @ g
=== right: sample by sample
def vjp_matmul(g, X, W):
    gX, gW = np.zeros_like(X), np.zeros_like(W)
    for i in range(len(X)):
        gX[i] = W @ g[i]
        gW += np.outer(X[i], g[i])
    return gX, gW
=== right: lists of Python's numbers
def vjp_matmul(g, X, W):
    G, A, B = g.tolist(), X.tolist(), W.tolist()
    gX = [[sum(p * q for p, q in zip(row, other)) for other in B] for row in G]
    gW = [[sum(A[i][j] * G[i][c] for i in range(len(A))) for c in range(W.shape[1])] for j in range(W.shape[0])]
    return np.array(gX).reshape(X.shape), np.array(gW).reshape(W.shape)
=== right: by einsum
def vjp_matmul(g, X, W):
    return [np.einsum('mn,kn->mk', g, W), np.einsum('mk,mn->kn', X, g)]
"""
