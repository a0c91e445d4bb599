"""Layers and models: functions with parameters.

from minidl import nn
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
"""

from minidl.nn import init, models
from minidl.nn.activation import GELU, ReLU, Tanh
from minidl.nn.attention import MultiheadAttention
from minidl.nn.clip import clip_grad_norm_
from minidl.nn.container import ModuleList, Sequential
from minidl.nn.convolution import AvgPool2d, Conv2d, MaxPool2d
from minidl.nn.dropout import Dropout
from minidl.nn.flatten import Flatten
from minidl.nn.linear import Embedding, Linear
from minidl.nn.module import Buffer, Module, Parameter
from minidl.nn.normalization import BatchNorm2d, LayerNorm

__all__ = [
    "GELU",
    "AvgPool2d",
    "BatchNorm2d",
    "Buffer",
    "Conv2d",
    "Dropout",
    "Embedding",
    "Flatten",
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
