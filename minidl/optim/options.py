"""The options of a parameter group (learning rate, momentum, ...), and the checks that update rules make of them."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

Group = dict[str, Any]  # "params": a list of tensors; all other keys are options
_NUMBERS = (int, float, np.floating)


def check_option(group: Group, name: str, high: float | None = None) -> None:
    """Raise unless the option is a finite number from 0 to `high`; TypeError for no number, ValueError outside."""
    value = group[name]
    if not isinstance(value, _NUMBERS):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not (value >= 0 and isfinite(value)) or (high is not None and value > high):
        raise ValueError(f"{name} must be {'at least 0' if high is None else f'from 0 to {high}'}, got {value!r}")


def check_betas(group: Group) -> None:
    """Raise ValueError unless `betas` is two numbers, each at least 0 and below 1; make it a tuple."""
    betas = group["betas"]
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise ValueError(f"betas must be two numbers, such as (0.9, 0.999), got {betas!r}")
    if not all(isinstance(beta, _NUMBERS) and 0 <= beta < 1 for beta in betas):
        raise ValueError(f"betas must be numbers, each at least 0 and below 1, got {betas!r}")
    group["betas"] = tuple(betas)
