"""PyTorch dressed as `minidl.functional`: the same names and arguments, so that one table of cases serves both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as nn

Tensor = torch.Tensor

add, sub, mul, div, neg, pow, matmul = torch.add, torch.sub, torch.mul, torch.div, torch.neg, torch.pow, torch.matmul
exp, log, sqrt, tanh, sigmoid = torch.exp, torch.log, torch.sqrt, torch.tanh, torch.sigmoid
relu, gelu, linear, embedding = nn.relu, nn.gelu, nn.linear, nn.embedding
softplus, logsigmoid = nn.softplus, nn.logsigmoid
conv1d, conv2d, batch_norm, group_norm, pad = nn.conv1d, nn.conv2d, nn.batch_norm, nn.group_norm, nn.pad
unfold = nn.unfold
max_pool2d, avg_pool2d = nn.max_pool2d, nn.avg_pool2d
adaptive_avg_pool2d, adaptive_max_pool2d = nn.adaptive_avg_pool2d, nn.adaptive_max_pool2d


def sum(a: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    return torch.sum(a, _axes(a, axis), keepdims)


def mean(a: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    return torch.mean(a, _axes(a, axis), keepdims)


def max(a: Tensor, *position: Any, axis: Any = None, keepdims: bool = False, **spelled: Any) -> Any:
    """amax for values alone: it shares the gradient among ties."""
    return torch.max(a, *position, **spelled) if position or spelled else torch.amax(a, _axes(a, axis), keepdims)


def min(a: Tensor, *position: Any, axis: Any = None, keepdims: bool = False, **spelled: Any) -> Any:
    return torch.min(a, *position, **spelled) if position or spelled else torch.amin(a, _axes(a, axis), keepdims)


def _axes(a: Tensor, axis: Any) -> Any:
    return tuple(range(a.ndim)) if axis is None else axis


def reshape(a: Tensor, *shape: Any) -> Tensor:
    return a.reshape(*shape)


def transpose(a: Tensor, *axes: Any) -> Tensor:
    order = axes[0] if axes and isinstance(axes[0], tuple) else axes or tuple(range(a.ndim))[::-1]
    return a.permute(order)


def getitem(a: Tensor, index: Any) -> Tensor:
    return a[index]


def cat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    return torch.cat(list(tensors), axis)


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    return torch.stack(list(tensors), axis)


def abs(a: Tensor) -> Tensor:
    return torch.abs(a)


def where(condition: Tensor, a: Any, b: Any) -> Tensor:
    return torch.where(condition, a, b)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    return nn.layer_norm(x, weight.shape, weight, bias, eps)


def cross_entropy(logits: Tensor, labels: Tensor, weight: Tensor | None = None, **settings: Any) -> Tensor:
    return nn.cross_entropy(logits, labels, weight, **settings)


def nll_loss(x: Tensor, labels: Tensor, weight: Tensor | None = None, **settings: Any) -> Tensor:
    return nn.nll_loss(x, labels, weight, **settings)


def binary_cross_entropy_with_logits(x: Tensor, y: Tensor, weight: Tensor | None = None, **settings: Any) -> Tensor:
    return nn.binary_cross_entropy_with_logits(x, y, weight, **settings)


l1_loss = nn.l1_loss


def mse_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    return nn.mse_loss(x, target, reduction=reduction)


def lstm(x: Tensor, h: Tensor, c: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    out, h, c = torch.lstm(x, (h[None], c[None]), list(weights), len(weights) == 4, 1, 0.0, True, False, False)
    return out, h[0], c[0]


def rnn(x: Tensor, h: Tensor, *weights: Tensor, nonlinearity: str = "tanh") -> tuple[Tensor, Tensor]:
    layer = torch.rnn_tanh if nonlinearity == "tanh" else torch.rnn_relu
    out, h = layer(x, h[None], list(weights), len(weights) == 4, 1, 0.0, True, False, False)
    return out, h[0]


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    return nn.softmax(x, axis)


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    return nn.log_softmax(x, axis)


def dropout(a: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    return nn.dropout(a, p, training)


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor, attn_mask: Any = None, **options: Any) -> Tensor:
    if isinstance(attn_mask, bool):
        return nn.scaled_dot_product_attention(q, k, v, is_causal=attn_mask)
    return nn.scaled_dot_product_attention(q, k, v, attn_mask, **options)


# ---- the same names, arguments and meaning ----

amax, amin, argmax, argmin, maximum, minimum, clamp = (
    getattr(torch, name) for name in ("amax", "amin", "argmax", "argmin", "maximum", "minimum", "clamp")
)
var, std, prod, cumsum, logsumexp = (getattr(torch, name) for name in ("var", "std", "prod", "cumsum", "logsumexp"))
cumprod, isclose = torch.cumprod, torch.isclose
lt, le, gt, ge, eq, ne, isnan = (getattr(torch, name) for name in ("lt", "le", "gt", "ge", "eq", "ne", "isnan"))
logical_and, logical_or, logical_xor = torch.logical_and, torch.logical_or, torch.logical_xor
any, all = torch.any, torch.all
floor_divide, remainder = torch.floor_divide, torch.remainder
sin, cos, square, sign = torch.sin, torch.cos, torch.square, torch.sign
squeeze, unsqueeze, flatten, permute = torch.squeeze, torch.unsqueeze, torch.flatten, torch.permute
broadcast_to, split, chunk, flip, roll = torch.broadcast_to, torch.split, torch.chunk, torch.flip, torch.roll
tril, triu, gather, scatter_add, one_hot = torch.tril, torch.triu, torch.gather, torch.scatter_add, nn.one_hot
index_select, index_add, masked_fill = torch.index_select, torch.index_add, torch.masked_fill
argsort, topk, clone, outer, einsum = torch.argsort, torch.topk, torch.clone, torch.outer, torch.einsum
expand, repeat, contiguous = torch.Tensor.expand, torch.Tensor.repeat, torch.Tensor.contiguous
sort = torch.sort


def norm(a: Tensor, p: float = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    return torch.norm(a, p, dim, keepdim)


def astype(a: Tensor, dtype: str) -> Tensor:
    return a.to(getattr(torch, dtype))
