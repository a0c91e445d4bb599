"""Differentiable operations: one line and one vector-Jacobian product each, a file for each purpose.

>>> from minidl import Tensor, functional as F
>>> weight = Tensor([[0.0, 0.0], [0.0, 0.0]], requires_grad=True)
>>> F.cross_entropy(F.linear([[1.0, 2.0]], weight), [1]).backward()
>>> weight.grad
array([[ 0.5,  1. ],
       [-0.5, -1. ]], dtype=float32)

`elementwise.py` is the place to begin; `operation.py` shows how to add an operation of your own.

number by number   elementwise.py, powers.py, comparisons.py (and logic)
over axes          reductions.py (sum, mean, softmax), extrema.py, statistics.py, sorting.py
numbers moved      shapes.py, views.py, rearrangement.py, selection.py (by index), casts.py (types, copies), in_place.py
products           products.py (matmul, einsum)
layers             linear.py (and embedding), convolution.py, pooling.py, attention.py, attention_in_blocks.py,
                   recurrent.py, dropout.py, normalization.py (of minibatches, layers, groups),
                   convolution_table.py (which algorithm is fastest), micro_batches.py (within a workspace limit)
losses             cross_entropy.py (of classes), losses.py (of two tensors of one shape), added_loss.py (of one layer)
shared by them     rules.py (operations made of rows), bind.py (operators of Tensor, broadcasting),
                   axes.py (`axis=` and `dim=`), pairs.py (sizes of windows), one_type.py (types of operands),
                   shape_errors.py (messages)
"""

from minidl.from_pytorch import explain_missing_names
from minidl.functional import in_place  # noqa: F401  (operators: w -= 1, x[0] = 1)
from minidl.functional.attention import scaled_dot_product_attention
from minidl.functional.casts import astype, clone, contiguous
from minidl.functional.comparisons import all_ as all
from minidl.functional.comparisons import any_ as any
from minidl.functional.comparisons import (
    eq,
    ge,
    gt,
    isclose,
    isnan,
    le,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    ne,
)
from minidl.functional.convolution import conv1d, conv2d
from minidl.functional.cross_entropy import cross_entropy, nll_loss
from minidl.functional.dropout import dropout
from minidl.functional.elementwise import (
    abs,
    add,
    cos,
    div,
    exp,
    floor_divide,
    gelu,
    log,
    logsigmoid,
    mul,
    neg,
    relu,
    remainder,
    sigmoid,
    sign,
    sin,
    softplus,
    sqrt,
    square,
    sub,
    tanh,
)
from minidl.functional.extrema import amax, amin, argmax, argmin, clamp, maximum, minimum
from minidl.functional.extrema import max_ as max
from minidl.functional.extrema import min_ as min
from minidl.functional.linear import embedding, linear
from minidl.functional.losses import (
    binary_cross_entropy_with_logits,
    l1_loss,
    mse_loss,
)
from minidl.functional.normalization import batch_norm, group_norm, layer_norm
from minidl.functional.pooling import adaptive_avg_pool2d, adaptive_max_pool2d, avg_pool2d, max_pool2d
from minidl.functional.powers import pow
from minidl.functional.products import einsum, matmul, outer
from minidl.functional.rearrangement import flip, pad, repeat, roll, tril, triu, unfold
from minidl.functional.recurrent import lstm, rnn
from minidl.functional.reductions import log_softmax, mean, softmax, sum
from minidl.functional.selection import gather, index_add, index_select, masked_fill, one_hot, scatter_add
from minidl.functional.shapes import cat, getitem, reshape, stack, transpose, where
from minidl.functional.sorting import argsort, sort, topk
from minidl.functional.statistics import cumprod, cumsum, logsumexp, norm, prod, std, var
from minidl.functional.views import broadcast_to, chunk, expand, flatten, permute, split, squeeze, unsqueeze

__all__ = [
    "abs",
    "adaptive_avg_pool2d",
    "adaptive_max_pool2d",
    "add",
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "astype",
    "avg_pool2d",
    "batch_norm",
    "binary_cross_entropy_with_logits",
    "broadcast_to",
    "cat",
    "chunk",
    "clamp",
    "clone",
    "contiguous",
    "conv1d",
    "conv2d",
    "cos",
    "cross_entropy",
    "cumprod",
    "cumsum",
    "div",
    "dropout",
    "einsum",
    "embedding",
    "eq",
    "exp",
    "expand",
    "flatten",
    "flip",
    "floor_divide",
    "gather",
    "ge",
    "gelu",
    "getitem",
    "group_norm",
    "gt",
    "index_add",
    "index_select",
    "isclose",
    "isnan",
    "l1_loss",
    "layer_norm",
    "le",
    "linear",
    "log",
    "log_softmax",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsigmoid",
    "logsumexp",
    "lstm",
    "lt",
    "masked_fill",
    "matmul",
    "max",
    "max_pool2d",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mse_loss",
    "mul",
    "ne",
    "neg",
    "nll_loss",
    "norm",
    "one_hot",
    "outer",
    "pad",
    "permute",
    "pow",
    "prod",
    "relu",
    "remainder",
    "repeat",
    "reshape",
    "rnn",
    "roll",
    "scaled_dot_product_attention",
    "scatter_add",
    "sigmoid",
    "sign",
    "sin",
    "softmax",
    "softplus",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "sub",
    "sum",
    "tanh",
    "topk",
    "transpose",
    "tril",
    "triu",
    "unfold",
    "unsqueeze",
    "var",
    "where",
]

explain_missing_names(__name__, __all__)
