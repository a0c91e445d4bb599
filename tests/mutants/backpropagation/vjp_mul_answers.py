ANSWERS = r"""
=== parts
unchanged: g, x and y are left as they were
values: the gradients of x and y
=== wrong: swapped :: values :: swapped
def vjp_mul(g, x, y):
    return g * x, g * y
=== wrong: g is missing :: values :: g is missing
def vjp_mul(g, x, y):
    return y, x
=== wrong: right, but in place :: unchanged :: changed its argument g
def vjp_mul(g, x, y):
    gy = g * x
    g *= y
    return g, gy
=== wrong: only one gradient :: all :: expected two gradients
def vjp_mul(g, x, y):
    return g * y
=== wrong: summed to a number :: all :: expected two arrays of that shape
def vjp_mul(g, x, y):
    return np.sum(g * y), np.sum(g * x)
=== wrong: truncated to whole numbers :: values :: got 0 (the first of
def vjp_mul(g, x, y):
    return (g * y).astype(int), g * x
=== wrong: writes into y, which is returned :: unchanged :: vjp_mul changed its argument y at [0]
def vjp_mul(g, x, y):
    gx = g * y
    np.multiply(g, x, out=y)
    return gx, y
=== wrong: the product for both :: values :: gradient of x
def vjp_mul(g, x, y):
    return g * x * y, g * x * y
=== wrong: in single precision :: values :: gradient of x: expected
def vjp_mul(g, x, y):
    return np.float32(g * y), np.float32(g * x)
=== wrong: one array is filled twice and returned for both :: values :: one array was filled twice
def vjp_mul(g, x, y):
    out = np.empty_like(g)
    np.multiply(g, y, out=out)
    gx = out
    np.multiply(g, x, out=out)
    return gx, out
=== wrong: one array as both operands is taken for a square :: values :: also where x and y are one array
def vjp_mul(g, x, y):
    return (2 * g * x, 2 * g * x) if x is y or np.array_equal(x, y) and x.any() else (g * y, g * x)
=== wrong: numbers become arrays of one element :: all :: expected two arrays of that shape
def vjp_mul(g, x, y):
    return np.atleast_1d(g * y), np.atleast_1d(g * x)
=== right: a list, by numpy's functions
def vjp_mul(g, x, y):
    return [np.multiply(y, g), np.multiply(x, g)]
=== right: the operands are members of an Enum
from enum import Enum

class Operand(Enum):
    X = 0
    Y = 1

def vjp_mul(g, x, y):
    return tuple(g * (y if Operand(place) is Operand.X else x) for place in (0, 1))
"""
