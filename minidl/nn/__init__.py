"""Layers and models: functions with parameters.

>>> from minidl import Tensor, nn
>>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
>>> model(Tensor([[[1.0, 2.0], [3.0, 4.0]]])).shape
(1, 2)

`module.py` holds the idea; each kind of layer has a file of its name; whole networks are in `models/`.
"""

from minidl.nn import init, models
from minidl.nn.activation import GELU, ReLU, Tanh
from minidl.nn.attention import MultiheadAttention
from minidl.nn.clip import clip_grad_norm_
from minidl.nn.container import ModuleList, Sequential
from minidl.nn.convolution import Conv2d
from minidl.nn.dropout import Dropout
from minidl.nn.embedding import Embedding
from minidl.nn.flatten import Flatten
from minidl.nn.linear import Linear
from minidl.nn.module import Buffer, Module, Parameter
from minidl.nn.normalization import BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm
from minidl.nn.pooling import AvgPool2d, MaxPool2d

__all__ = [
    "GELU",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Buffer",
    "Conv2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "LayerNorm",
    "Linear",
    "MaxPool2d",
    "Module",
    "ModuleList",
    "MultiheadAttention",
    "Parameter",
    "ReLU",
    "Sequential",
    "Tanh",
    "clip_grad_norm_",
    "init",
    "models",
]
