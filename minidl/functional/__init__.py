"""Differentiable operations: one line and one vector-Jacobian product each, grouped by what they are for.

>>> from minidl import Tensor, functional as F
>>> weight = Tensor([[0.0, 0.0], [0.0, 0.0]], requires_grad=True)
>>> F.cross_entropy(F.linear([[1.0, 2.0]], weight), [1]).backward()
>>> weight.grad
array([[ 0.5,  1. ],
       [-0.5, -1. ]], dtype=float32)

`arithmetic.py` is the place to begin; `bind.py` tells how an operation becomes an operator of Tensor.
"""

from minidl.functional import comparisons, in_place  # noqa: F401  (operators: x > 0, w -= 1, x[0] = 1)
from minidl.functional.activations import exp, gelu, log, relu, sigmoid, sqrt, tanh
from minidl.functional.arithmetic import abs, add, div, matmul, mul, neg, pow, sub
from minidl.functional.attention import scaled_dot_product_attention
from minidl.functional.convolution import conv2d
from minidl.functional.dropout import dropout
from minidl.functional.embedding import embedding
from minidl.functional.linear import linear
from minidl.functional.losses import cross_entropy, mse_loss
from minidl.functional.normalization import batch_norm, group_norm, layer_norm
from minidl.functional.pooling import avg_pool2d, max_pool2d
from minidl.functional.reductions import max_ as max
from minidl.functional.reductions import mean, sum
from minidl.functional.shapes import cat, getitem, reshape, stack, transpose, where
from minidl.functional.softmax import log_softmax, softmax

__all__ = [
    "abs",
    "add",
    "avg_pool2d",
    "batch_norm",
    "cat",
    "conv2d",
    "cross_entropy",
    "div",
    "dropout",
    "embedding",
    "exp",
    "gelu",
    "getitem",
    "group_norm",
    "layer_norm",
    "linear",
    "log",
    "log_softmax",
    "matmul",
    "max",
    "max_pool2d",
    "mean",
    "mse_loss",
    "mul",
    "neg",
    "pow",
    "relu",
    "reshape",
    "scaled_dot_product_attention",
    "sigmoid",
    "softmax",
    "sqrt",
    "stack",
    "sub",
    "sum",
    "tanh",
    "transpose",
    "where",
]
