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
from minidl.nn.losses import (
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from minidl.nn.module import Buffer, Module, Parameter
from minidl.nn.normalization import BatchNorm2d, LayerNorm
from minidl.nn.pooling import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d

__all__ = [
    "GELU",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool2d",
    "AvgPool2d",
    "BCEWithLogitsLoss",
    "BatchNorm2d",
    "Buffer",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LayerNorm",
    "Linear",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleList",
    "MultiheadAttention",
    "NLLLoss",
    "Parameter",
    "ReLU",
    "Sequential",
    "SmoothL1Loss",
    "Tanh",
    "clip_grad_norm_",
    "init",
    "models",
]
