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
conv2d, batch_norm, group_norm = nn.conv2d, nn.batch_norm, nn.group_norm


def sum(a: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    return torch.sum(a, _axes(a, axis), keepdims)


def mean(a: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    return torch.mean(a, _axes(a, axis), keepdims)


def max(a: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """amax, not max: it shares the gradient among ties."""
    return torch.amax(a, _axes(a, axis), keepdims)


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


def max_pool2d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Tensor:
    return nn.max_pool2d(x, kernel_size, stride, padding)


def avg_pool2d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Tensor:
    return nn.avg_pool2d(x, kernel_size, stride, padding)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    return nn.layer_norm(x, weight.shape, weight, bias, eps)


def cross_entropy(logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
    return nn.cross_entropy(logits, labels, reduction=reduction)


def mse_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    return nn.mse_loss(x, target, reduction=reduction)


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    return nn.softmax(x, axis)


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    return nn.log_softmax(x, axis)


def dropout(a: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    return nn.dropout(a, p, training)


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor, is_causal: bool = False) -> Tensor:
    return nn.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
