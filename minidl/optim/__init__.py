"""Optimizers update parameters from their gradients; schedules change the learning rate during training."""

from minidl.from_pytorch import explain_missing_names
from minidl.optim.adagrad import Adagrad
from minidl.optim.adam import Adam, AdamW
from minidl.optim.large_batch import LargeBatchLR
from minidl.optim.layer_wise import LAMB, LARS
from minidl.optim.optimizer import Optimizer
from minidl.optim.rmsprop import RMSprop
from minidl.optim.schedules import CosineAnnealingLR, LambdaLR, LinearLR, LRScheduler, MultiStepLR, StepLR
from minidl.optim.sgd import SGD

__all__ = [
    "LAMB",
    "LARS",
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "CosineAnnealingLR",
    "LRScheduler",
    "LambdaLR",
    "LargeBatchLR",
    "LinearLR",
    "MultiStepLR",
    "Optimizer",
    "RMSprop",
    "StepLR",
]

explain_missing_names(__name__, __all__)
