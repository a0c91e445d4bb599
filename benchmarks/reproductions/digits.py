"""The common set-up of the experiments: an MLP on the 1,797 digits, trained in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from minidl import cluster, data, nn, optim, parallel

FAILED = 0.9  # the test error of guessing: what a run counts whose loss was not finite


def job(
    layers: Sequence[int] = (64, 64, 10),
    lr: float = 0.1,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    **settings: Any,
) -> parallel.Job:
    """SGD on digits; `settings` are passed to the Job, and may replace `optimizer`."""
    optimizer: Callable[..., Any] = partial(optim.SGD, lr=lr, momentum=momentum, weight_decay=weight_decay)
    defaults = {"model": partial(nn.models.MLP, *layers), "data": data.digits, "optimizer": optimizer}
    return parallel.Job(**{**defaults, **settings})


def he_mlp(*layers: int) -> nn.Module:
    """An MLP with the initial weights of He et al. (arXiv:1502.01852), which let deep networks learn from the start."""
    model = nn.models.MLP(*layers)
    for parameter in model.parameters():
        if parameter.ndim == 2:
            nn.init.kaiming_normal_(parameter)
        else:
            nn.init.zeros_(parameter)
    return model


def train(of: parallel.Job, strategy: parallel.Strategy | None = None, nodes: int = 1, **terms: Any) -> Any:  # a Report
    """Train on a simulated cluster in this process; None if the loss became infinite or not a number."""
    try:
        return parallel.train(of, strategy, nodes, cluster.Simulation(trace="ledger"), **terms)
    except parallel.NonFiniteLoss:
        return None


def error(report: parallel.Report | None) -> float:
    """The fraction of the test set that is misclassified."""
    return FAILED if report is None else 1 - report.accuracy


def mean_column(reports: Sequence[parallel.Report], column: str) -> list[float]:
    """The mean of a column of the histories, for every epoch."""
    columns: Any = [[dict(row)[column] for row in report.history] for report in reports]
    return [float(value) for value in np.mean(columns, axis=0)]


def training_loss(report: parallel.Report | None) -> float:
    """The mean training loss of the last epoch."""
    return float("inf") if report is None else report.history[-1]["loss"]
