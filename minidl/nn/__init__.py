"""Layers and models: functions with parameters that are trained.

>>> from minidl import Tensor, nn
>>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
>>> model(Tensor([[[1.0, 2.0], [3.0, 4.0]]])).shape
(1, 2)

`module.py` defines Module, `parameter.py` its tensors, Parameter and Buffer; each kind of layer has a file of its name
(`linear.py` has Embedding and Flatten, too; `experts.py` the mixture of experts); whole networks are in `models/`.

`stages.py` says where a model can be cut, `replace.py` puts other layers or weights in the place of a model's own.
`checkpointing.py` lets backward recompute activations, by the segments that `segments.py` chooses. `building.py`
makes only what this rank holds of a model: `placeholder.py` has the tensors that stand for the others, and `shard.py`
divides a parameter among ranks. `counts.py` counts parameters, activations and arithmetic of a model by layer.
"""

from minidl.from_pytorch import explain_missing_names
from minidl.nn import init, models, segments
from minidl.nn.activation import GELU, Identity, LeakyReLU, LogSoftmax, ReLU, Sigmoid, SiLU, Softmax, Tanh
from minidl.nn.attention import MultiheadAttention
from minidl.nn.building import building
from minidl.nn.checkpointing import checkpointing, stage_costs
from minidl.nn.clip import clip_grad_norm_
from minidl.nn.container import ModuleList, Sequential
from minidl.nn.convolution import Conv1d, Conv2d
from minidl.nn.counts import count
from minidl.nn.dropout import Dropout, Dropout2d
from minidl.nn.experts import MixtureOfExperts
from minidl.nn.linear import Embedding, Flatten, Linear
from minidl.nn.losses import (
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
)
from minidl.nn.module import Module
from minidl.nn.normalization import BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm, RMSNorm
from minidl.nn.parameter import Buffer, Parameter
from minidl.nn.pooling import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d
from minidl.nn.recurrent import LSTM, RNN, LSTMCell, RNNCell
from minidl.nn.replace import replace_layers, using
from minidl.nn.shard import GridShard, Shard
from minidl.nn.stages import Stage, run_stages

__all__ = [
    "GELU",
    "LSTM",
    "RNN",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool2d",
    "AvgPool2d",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Buffer",
    "Conv1d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Dropout2d",
    "Embedding",
    "Flatten",
    "GridShard",
    "GroupNorm",
    "Identity",
    "L1Loss",
    "LSTMCell",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "MixtureOfExperts",
    "Module",
    "ModuleList",
    "MultiheadAttention",
    "NLLLoss",
    "Parameter",
    "RMSNorm",
    "RNNCell",
    "ReLU",
    "Sequential",
    "Shard",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Stage",
    "Tanh",
    "building",
    "checkpointing",
    "clip_grad_norm_",
    "count",
    "init",
    "models",
    "replace_layers",
    "run_stages",
    "segments",
    "stage_costs",
    "using",
]

explain_missing_names(__name__, __all__)
