"""Answers to `vjp_mul`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant

VALUES = "the gradients of x and y"
UNCHANGED = "g, x and y are left as they were"


def vjp_mul(mistake: str, body: str, loses: tuple[str, ...], says: str, status: Status = Status.WRONG) -> Mutant:
    return Mutant("vjp_mul", mistake, f"def vjp_mul(g, x, y):\n    {body}\n", loses, says, status)


MUTANTS = [
    vjp_mul("swapped", "return g * x, g * y", (VALUES,), "swapped"),
    vjp_mul("g is missing", "return y, x", (VALUES,), "g is missing"),
    vjp_mul(
        "works in place", "g *= y\n    return g, g * x", (UNCHANGED, VALUES), "vjp_mul changed its argument g at [0]"
    ),
    vjp_mul(
        "right, but in place",
        "gy = g * x\n    g *= y\n    return g, gy",
        (UNCHANGED,),
        "changed its argument g",
    ),
    vjp_mul("divides by the operand", "z = x * y\n    return g * z / x, g * z / y", (VALUES,), "gradient of x"),
    vjp_mul("only one gradient", "return g * y", (UNCHANGED, VALUES), "expected two gradients"),
    vjp_mul("no return", "gx, gy = g * y, g * x", (UNCHANGED, VALUES), "return"),
    vjp_mul(
        "summed to a number",
        "return np.sum(g * y), np.sum(g * x)",
        (UNCHANGED, VALUES),
        "expected two arrays of that shape",
    ),
    vjp_mul("the gradient of a sum", "return g, g", (VALUES,), "gradient of x"),
    vjp_mul("truncated to whole numbers", "return (g * y).astype(int), g * x", (VALUES,), "got 0 (the first of"),
    vjp_mul(
        "writes into y, which is returned",
        "gx = g * y\n    np.multiply(g, x, out=y)\n    return gx, y",
        (UNCHANGED,),
        "vjp_mul changed its argument y at [0]",
    ),
    vjp_mul("the product for both", "return g * x * y, g * x * y", (VALUES,), "gradient of x"),
    vjp_mul("in single precision", "return np.float32(g * y), np.float32(g * x)", (VALUES,), "gradient of x: expected"),
]

MUTANTS += [
    vjp_mul(
        "one array is filled twice and returned for both",
        "out = np.empty_like(g)\n    np.multiply(g, y, out=out)\n    gx = out\n"
        "    np.multiply(g, x, out=out)\n    return gx, out",
        (VALUES,),
        "one array was filled twice",
    ),
]

ALTERNATIVES = [
    Alternative(
        "vjp_mul",
        "a list, by numpy's functions",
        "def vjp_mul(g, x, y):\n    return [np.multiply(y, g), np.multiply(x, g)]\n",
    ),
    Alternative(
        "vjp_mul",
        "the operands are members of an Enum",
        """
from enum import Enum

class Operand(Enum):
    X = 0
    Y = 1

def vjp_mul(g, x, y):
    return tuple(g * (y if Operand(place) is Operand.X else x) for place in (0, 1))
""",
    ),
]
