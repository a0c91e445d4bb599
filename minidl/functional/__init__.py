"""Differentiable operations: one line and one vector-Jacobian product each, grouped by what they are for.

from minidl import functional as F
loss = F.cross_entropy(F.linear(x, weight, bias), labels)
"""

from minidl.functional.activations import exp, gelu, log, relu, sigmoid, sqrt, tanh
from minidl.functional.arithmetic import add, div, matmul, mul, neg, pow, sub
from minidl.functional.attention import scaled_dot_product_attention
from minidl.functional.convolution import conv2d
from minidl.functional.dropout import dropout
from minidl.functional.linear import embedding, linear
from minidl.functional.losses import cross_entropy, log_softmax, mse_loss, softmax
from minidl.functional.normalization import batch_norm, layer_norm
from minidl.functional.pooling import avg_pool2d, max_pool2d
from minidl.functional.reductions import max_ as max
from minidl.functional.reductions import mean, sum
from minidl.functional.shapes import cat, getitem, reshape, stack, transpose, where

__all__ = [
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
