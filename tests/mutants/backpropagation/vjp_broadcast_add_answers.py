ANSWERS = r"""
=== parts
leading: axes that were added in front
stretched: axes of length 1 that were stretched
=== wrong: leading axes alone :: stretched :: gradient of x: expected an array of shape
def vjp_broadcast_add(g, x, y):
    def to(shape):
        return g.sum(axis=tuple(range(g.ndim - len(shape))))
    return to(x.shape), to(y.shape)
=== wrong: stretched axes alone :: all :: g itself was returned
def vjp_broadcast_add(g, x, y):
    def to(shape):
        return g.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)
    return to(x.shape), to(y.shape)
=== wrong: keepdims forgotten :: stretched :: keepdims=True
def vjp_broadcast_add(g, x, y):
    def to(shape):
        t = g.sum(axis=tuple(range(g.ndim - len(shape))))
        return t.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1))
    return to(x.shape), to(y.shape)
=== wrong: the mean :: all :: This is the mean
def vjp_broadcast_add(g, x, y):
    def to(shape):
        t = g.mean(axis=tuple(range(g.ndim - len(shape))))
        return t.mean(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)
    return to(x.shape), to(y.shape)
=== wrong: the first of the uses :: all :: vjp_broadcast_add
def vjp_broadcast_add(g, x, y):
    def to(shape):
        return g[tuple([0] * (g.ndim - len(shape)) + [slice(n) for n in shape])]
    return to(x.shape), to(y.shape)
=== wrong: only the batch axis, for a bias :: all :: : expected an array of shape
def vjp_broadcast_add(g, x, y):
    def to(shape):
        return g.sum(axis=0) if len(shape) < g.ndim else g
    return to(x.shape), to(y.shape)
=== wrong: one stretched axis alone :: stretched :: expected an array of shape (1, 4, 1)
def vjp_broadcast_add(g, x, y):
    def to(shape):
        t = g.sum(axis=tuple(range(g.ndim - len(shape))))
        return t.sum(axis=shape.index(1), keepdims=True) if 1 in shape else t
    return to(x.shape), to(y.shape)
=== wrong: one leading axis alone :: leading :: expected an array of shape (
def vjp_broadcast_add(g, x, y):
    def to(shape):
        t = g.sum(axis=0) if g.ndim > len(shape) else g
        return t.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)
    return to(x.shape), to(y.shape)
=== wrong: an axis that was stretched to nothing is left :: stretched :: may be stretched to length 0
def vjp_broadcast_add(g, x, y):
    def to(shape):
        t = g.sum(axis=tuple(range(g.ndim - len(shape))))
        return t.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1 and t.shape[i] > 1), keepdims=True)
    return to(x.shape), to(y.shape)
=== wrong: every axis of equal length is kept, whichever it is :: all :: cannot reshape :: raised
def vjp_broadcast_add(g, x, y):
    def to(shape):
        keep = [i for i, n in enumerate(g.shape) if n in shape]
        return g.sum(axis=tuple(i for i in range(g.ndim) if i not in keep)).reshape(shape)
    return to(x.shape), to(y.shape)
=== wrong: y alone is summed, in front too :: all :: g itself was returned
def vjp_broadcast_add(g, x, y):
    gy = g.sum(axis=tuple(range(g.ndim - y.ndim)))
    for axis, length in enumerate(y.shape):
        if length == 1:
            gy = gy.sum(axis=axis, keepdims=True)
    return g, gy
=== right: all axes at once
def vjp_broadcast_add(g, x, y):
    def to(shape):
        padded = (1,) * (g.ndim - len(shape)) + shape
        return g.sum(axis=tuple(i for i, n in enumerate(padded) if n == 1), keepdims=True).reshape(shape)
    return [to(np.shape(x)), to(np.shape(y))]
=== right: every element to where it came from
def vjp_broadcast_add(g, x, y):
    def to(shape):
        out = np.zeros(shape)
        flat, places = out.reshape(-1), np.broadcast_to(np.arange(out.size).reshape(shape), g.shape)
        for place, value in zip(places.ravel(), g.ravel()):
            flat[place] += value
        return flat.reshape(shape)
    return to(x.shape), to(y.shape)
=== right: bincount by the place that each number came from; a number for ()
def vjp_broadcast_add(g, x, y):
    def to(shape):
        if shape == ():
            return float(g.sum())
        size = int(np.prod(shape))
        places = np.broadcast_to(np.arange(size).reshape(shape), g.shape).ravel()
        return np.bincount(places, weights=g.ravel(), minlength=size)[:size].reshape(shape)
    return to(x.shape), to(y.shape)
"""
