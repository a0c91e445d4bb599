"""Answers to `vjp_matmul`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant

OF_X, OF_W, MEMORY = "the gradient of X", "the gradient of W", "in the memory of a few matrices"


def vjp_matmul(mistake: str, body: str, loses: tuple[str, ...], says: str, status: Status = Status.WRONG) -> Mutant:
    return Mutant("vjp_matmul", mistake, f"def vjp_matmul(g, X, W):\n    {body}\n", loses, says, status)


MUTANTS = [
    vjp_matmul("W is not transposed", "return g @ W, X.T @ g", (OF_X, OF_W, MEMORY), "mismatch", Status.RAISED),
    vjp_matmul(
        "W is not transposed where it fits",
        "return g @ (W if W.shape[0] == W.shape[1] else W.T), X.T @ g",
        (OF_X,),
        "W is not transposed",
    ),
    vjp_matmul("the mean over the rows", "return g @ W.T, X.T @ g / max(len(X), 1)", (OF_W,), "mean over the rows"),
    vjp_matmul("transposed", "return g @ W.T, g.T @ X", (OF_W,), "the gradient of W: expected an array"),
    vjp_matmul("only the last row", "return g @ W.T, np.outer(X[-1:], g[-1:])", (OF_W,), "last row's share"),
    vjp_matmul("the two are swapped", "return X.T @ g, g @ W.T", (OF_X, OF_W, MEMORY), "The two gradients are swapped"),
    vjp_matmul(
        "all products before the sum",
        "gX = (g[:, None, :] * W).sum(axis=2)\n    return gX, (X[:, :, None] * g[:, None, :]).sum(axis=0)",
        (MEMORY,),
        "a matrix product sums as it goes",
    ),
    vjp_matmul(
        "by the Jacobian",
        "J = np.kron(np.eye(len(X)), W)\n    return (J @ g.ravel()).reshape(X.shape), X.T @ g",
        (MEMORY,),
        "at its peak",
    ),
    vjp_matmul(
        "g is missing", "return np.ones_like(g) @ W.T, X.T @ np.ones_like(g)", (OF_X, OF_W, MEMORY), "g is missing"
    ),
    vjp_matmul(
        "fails without rows",
        "return np.stack([W @ row for row in g]), X.T @ g",
        (OF_W,),
        "need at least one array to stack",
        Status.RAISED,
    ),
    vjp_matmul("elementwise", "return g * W.sum(), X * g.sum()", (OF_X, OF_W, MEMORY), "the gradient of X: expected"),
    vjp_matmul(
        "both transposed",
        "return W @ g.T, g.T @ X",
        (OF_X, OF_W, MEMORY),
        "the gradient of X: expected an array of shape",
    ),
    vjp_matmul(
        "the result is written into W",
        "gX = g @ W.T\n    W[...] = X.T @ g\n    return gX, W",
        (OF_X,),
        "vjp_matmul changed its argument W at [0, 0]",
    ),
    vjp_matmul("the gradient of W alone", "return X.T @ g", (OF_X, OF_W, MEMORY), "expected two gradients"),
]

MUTANTS += [
    vjp_matmul(
        "gX row by row, which is no matrix where there are no rows",
        "return np.array([W @ row for row in g]), X.T @ g",
        (OF_W,),
        "the gradient of X: expected an array of shape (0,",
    ),
]

ALTERNATIVES = [
    Alternative(
        "vjp_matmul",
        "sample by sample",
        """
def vjp_matmul(g, X, W):
    gX, gW = np.zeros_like(X), np.zeros_like(W)
    for i in range(len(X)):
        gX[i] = W @ g[i]
        gW += np.outer(X[i], g[i])
    return gX, gW
""",
    ),
    Alternative(
        "vjp_matmul",
        "lists of Python's numbers",
        """
def vjp_matmul(g, X, W):
    G, A, B = g.tolist(), X.tolist(), W.tolist()
    gX = [[sum(p * q for p, q in zip(row, other)) for other in B] for row in G]
    gW = [[sum(A[i][j] * G[i][c] for i in range(len(A))) for c in range(W.shape[1])] for j in range(W.shape[0])]
    return np.array(gX).reshape(X.shape), np.array(gW).reshape(W.shape)
""",
    ),
    Alternative(
        "vjp_matmul",
        "by einsum",
        "def vjp_matmul(g, X, W):\n    return [np.einsum('mn,kn->mk', g, W), np.einsum('mk,mn->kn', X, g)]\n",
    ),
]
