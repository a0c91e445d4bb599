"""How does a program find out what each of its numbers did to the result?

A Tensor knows its parents, from which an operation computed it, and the vector-Jacobian product (vjp) of the operation:
the function from the gradient of the result to those of the parents; for z = x * y, it is g -> (g * y, g * x).
"""

import itertools
import math

import numpy as np

numbers = itertools.count()
last = {"axis": -1, "keepdims": True}  # sums, means and maxima along the last axis


class Tensor:
    """An array that remembers how it was made. A leaf, such as a weight, was made by no operation: it has no vjp."""

    def __init__(self, data, parents=(), vjp=None):
        self.data, self.parents, self.vjp, self.grad = np.asarray(data), parents, vjp, None
        self.number = next(numbers)  # parents are older than children: a topological order of the graph

    def backward(self, gradient=1.0):
        """Add to the `grad` of every leaf: the derivative by it of sum(gradient * this tensor), entry by entry."""
        self.grad = np.broadcast_to(np.asarray(gradient, self.data.dtype), self.data.shape)
        reached = {self.number: self}
        while reached:
            tensor = reached.pop(max(reached))  # the youngest: its children are done, so its gradient is complete
            for parent, g in zip(tensor.parents, tensor.vjp(tensor.grad)):  # the chain rule
                g = summed_to(parent.data.shape, g)
                parent.grad = g if parent.grad is None else parent.grad + g
                if parent.vjp:
                    reached[parent.number] = parent
            tensor.grad = None  # only leaves keep theirs


def summed_to(shape, g):
    """Undo broadcasting: an entry that was used many times gets the sum of the gradients of all its uses."""
    g = g.sum(axis=tuple(range(g.ndim - len(shape))))  # the axes that broadcasting put in front; axis=() sums nothing
    return g.sum(axis=tuple(axis for axis, size in enumerate(shape) if size == 1), keepdims=True)  # those it stretched


def operation(forward, vjp):
    """Make an operation on tensors from one on arrays, z = forward(*arrays), and its vjp: (g, z, *arrays) -> tuple."""

    def on_tensors(*inputs, **settings):
        inputs = [x if isinstance(x, Tensor) else Tensor(np.asarray(x, inputs[0].data.dtype)) for x in inputs]
        arrays = [x.data for x in inputs]
        z = forward(*arrays, **settings)
        return Tensor(z, inputs, lambda g: vjp(g, z, *arrays, **settings))

    return on_tensors


def probabilities(x):
    e = np.exp(x - x.max(**last))  # minus the maximum: the quotient is the same, and exp cannot overflow
    return e / e.sum(**last)


def spread(g, index, shape):
    zeros = np.zeros(shape, g.dtype)
    np.add.at(zeros, index, g)  # an entry that the index names twice gets both gradients
    return zeros


# The rules: for each operation z = forward(x, y) and its vjp, in which g is the gradient of z
add = operation(np.add, lambda g, z, x, y: (g, g))
multiply = operation(np.multiply, lambda g, z, x, y: (g * y, g * x))
matmul = operation(np.matmul, lambda g, z, x, y: (g @ y.mT, x.mT @ g))
relu = operation(lambda x: np.maximum(x, 0), lambda g, z, x: (g * (x > 0),))
softmax = operation(probabilities, lambda g, z, x: (z * (g - (g * z).sum(**last)),))  # dz_i/dx_j = z_i (I_ij - z_j)
reshape = operation(lambda x, shape: x.reshape(shape), lambda g, z, x, shape: (g.reshape(x.shape),))
swapaxes = operation(lambda x, axes: x.swapaxes(*axes), lambda g, z, x, axes: (g.swapaxes(*axes),))
take = operation(lambda x, index: x[index], lambda g, z, x, index: (spread(g, index, x.shape),))
normalize = operation(  # to mean 0, variance 1: with n = width, s = the root, dz_i/dx_j = (I_ij - 1/n - z_i z_j/n) / s
    lambda x: (x - x.mean(**last)) / np.sqrt(x.var(**last) + 1e-5),
    lambda g, z, x: ((g - g.mean(**last) - z * (g * z).mean(**last)) / np.sqrt(x.var(**last) + 1e-5),),
)
normal_cdf = operation(  # the probability that a standard normal variable is below x; numpy has no erf of its own
    lambda x: (0.5 + 0.5 * np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2))).astype(x.dtype),
    lambda g, z, x: (g * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi),),
)
cross_entropy = operation(  # sum over labels of -log softmax(x)[label], / `count`; d/dx = softmax(x) - (1 at the label)
    lambda x, labels, count: -np.log(np.take_along_axis(probabilities(x), labels[..., None], -1)).sum() / count,
    lambda g, z, x, labels, count: (g * (probabilities(x) - np.eye(x.shape[-1], dtype=x.dtype)[labels]) / count,),
)
Tensor.__add__, Tensor.__mul__, Tensor.__matmul__ = add, multiply, matmul
Tensor.__sub__ = lambda x, y: x + y * -1.0
Tensor.__getitem__ = lambda x, index: take(x, index=index)
Tensor.reshape, Tensor.swapaxes = reshape, swapaxes
Tensor.mT = property(lambda x: swapaxes(x, axes=(-1, -2)))  # as in numpy: each matrix is transposed
# The workshop: minidl/tape.py, minidl/functional (150 operations), minidl/kernels (compiled). Lectures 01a, 01b.
