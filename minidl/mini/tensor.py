"""How does a program find out what each of its numbers did to the result?

A Tensor knows its parents, from which an operation computed it, and the vector-Jacobian product (vjp) of the operation:
the function from the gradient of the result to those of the parents. `backward` calls these, from the loss to weights.
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
        self.number = next(numbers)  # in order of creation

    def backward(self, gradient=1.0):
        """Add to the `grad` of every leaf `gradient` times the derivative of this tensor with respect to the leaf."""
        self.grad = np.broadcast_to(np.asarray(gradient, self.data.dtype), self.data.shape)
        reached = {self.number: self}
        while reached:
            tensor = reached.pop(max(reached))  # the youngest: what used it is younger, so its gradient is complete
            for parent, g in zip(tensor.parents, tensor.vjp(tensor.grad)):
                g = summed_to(parent.data.shape, g)
                parent.grad = g if parent.grad is None else parent.grad + g
                if parent.vjp:
                    reached[parent.number] = parent
            tensor.grad = None  # only leaves keep theirs


def summed_to(shape, g):
    """Undo broadcasting: an entry that was used many times gets the sum of the gradients of all its uses."""
    g = g.sum(axis=tuple(range(g.ndim - len(shape))))
    return g.sum(axis=tuple(axis for axis, size in enumerate(shape) if size == 1), keepdims=True)


def operation(value, vjp):
    """Make an operation on tensors from one on arrays, and from its vjp: (g, result, *arrays) -> their gradients."""

    def on_tensors(*inputs, **settings):
        inputs = [x if isinstance(x, Tensor) else Tensor(np.asarray(x, inputs[0].data.dtype)) for x in inputs]
        arrays = [x.data for x in inputs]
        result = value(*arrays, **settings)
        return Tensor(result, inputs, lambda g: vjp(g, result, *arrays, **settings))

    return on_tensors


def probabilities(x):
    e = np.exp(x - x.max(**last))  # minus the maximum: the quotient is the same, and nothing overflows
    return e / e.sum(**last)


def spread(g, index, shape):
    zeros = np.zeros(shape, g.dtype)
    np.add.at(zeros, index, g)  # an entry that the index names twice gets both gradients
    return zeros


# The rules: for each operation its value and its vjp, in which g is the gradient of the result z
add = operation(np.add, lambda g, z, x, y: (g, g))
multiply = operation(np.multiply, lambda g, z, x, y: (g * y, g * x))
matmul = operation(np.matmul, lambda g, z, x, y: (g @ y.mT, x.mT @ g))
relu = operation(lambda x: np.maximum(x, 0), lambda g, z, x: (g * (x > 0),))
softmax = operation(probabilities, lambda g, z, x: (z * (g - (g * z).sum(**last)),))
reshape = operation(lambda x, shape: x.reshape(shape), lambda g, z, x, shape: (g.reshape(x.shape),))
transpose = operation(lambda x, axes: x.transpose(axes), lambda g, z, x, axes: (g.transpose(np.argsort(axes)),))
take = operation(lambda x, index: x[index], lambda g, z, x, index: (spread(g, index, x.shape),))
normalize = operation(  # to mean 0 and variance 1 along the last axis
    lambda x: (x - x.mean(**last)) / np.sqrt(x.var(**last) + 1e-5),
    lambda g, z, x: ((g - g.mean(**last) - z * (g * z).mean(**last)) / np.sqrt(x.var(**last) + 1e-5),),
)
normal_cdf = operation(  # the probability that a standard normal variable is below x
    lambda x: (0.5 + 0.5 * np.vectorize(math.erf)(x / math.sqrt(2))).astype(x.dtype),
    lambda g, z, x: (g * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi),),
)
cross_entropy = operation(  # the sum of -log softmax(x)[label], divided by `count`: by the number of labels, their mean
    lambda x, labels, count: -np.log(np.take_along_axis(probabilities(x), labels[..., None], -1)).sum() / count,
    lambda g, z, x, labels, count: (g * (probabilities(x) - np.eye(x.shape[-1], dtype=x.dtype)[labels]) / count,),
)
Tensor.__add__, Tensor.__mul__, Tensor.__matmul__ = add, multiply, matmul

# The workshop: minidl/tape.py, minidl/functional (150 operations), minidl/kernels (compiled). Lectures 01a, 01b.
