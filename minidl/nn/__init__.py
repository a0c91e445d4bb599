"""Layers and models: functions with parameters.

>>> from minidl import Tensor, nn
>>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
>>> model(Tensor([[[1.0, 2.0], [3.0, 4.0]]])).shape
(1, 2)

`module.py` holds the idea; each kind of layer has a file of its name; whole networks are in `models/`.
"""

from minidl.nn import init, models
from minidl.nn.activation import GELU, Identity, LeakyReLU, LogSoftmax, ReLU, Sigmoid, SiLU, Softmax, Tanh
from minidl.nn.attention import MultiheadAttention
from minidl.nn.clip import clip_grad_norm_
from minidl.nn.container import ModuleList, Sequential
from minidl.nn.convolution import Conv2d
from minidl.nn.dropout import Dropout, Dropout2d
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
from minidl.nn.normalization import BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm
from minidl.nn.pooling import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d
from minidl.nn.recurrent import LSTM, LSTMCell

__all__ = [
    "GELU",
    "LSTM",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool2d",
    "AvgPool2d",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Buffer",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Dropout2d",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "HuberLoss",
    "Identity",
    "KLDivLoss",
    "L1Loss",
    "LSTMCell",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleList",
    "MultiheadAttention",
    "NLLLoss",
    "Parameter",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Tanh",
    "clip_grad_norm_",
    "init",
    "models",
]
