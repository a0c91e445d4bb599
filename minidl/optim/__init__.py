"""Optimizers update parameters from their gradients; schedules change the learning rate during training."""

from minidl.missing_names import explain_missing_names
from minidl.optim.adagrad import Adagrad
from minidl.optim.adam import Adam, AdamW
from minidl.optim.lamb import LAMB
from minidl.optim.large_batch import LargeBatchLR
from minidl.optim.lars import LARS
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

_LAMBDA = "type optim.LambdaLR(optimizer, lambda epoch: ...), the factor of the initial rate"
explain_missing_names(
    __name__,
    __all__,
    {
        "lr_scheduler": "the schedules are in optim itself: type optim.StepLR",
        "LBFGS": "type optim.Adam",
        "NAdam": "type optim.Adam",
        "RAdam": "type optim.Adam",
        "Adamax": "type optim.Adam",
        "Adadelta": "type optim.RMSprop",
        "ExponentialLR": "type optim.StepLR(optimizer, step_size=1, gamma=gamma)",
        "ConstantLR": "type optim.MultiStepLR, or optim.LambdaLR",
        "ReduceLROnPlateau": "change group['lr'] of optimizer.param_groups where the validation loss stays",
        "SequentialLR": "schedules on one optimizer multiply: a LinearLR and a StepLR warm up and drop",
        **dict.fromkeys(("OneCycleLR", "CyclicLR", "PolynomialLR", "CosineAnnealingWarmRestarts"), _LAMBDA),
    },
)
