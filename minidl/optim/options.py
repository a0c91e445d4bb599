"""The options of a parameter group: learning rate, momentum and the like."""

from __future__ import annotations

from typing import Any

from minidl.arguments import real_number

Group = dict[str, Any]  # "params": a list of tensors; all other keys are options


def check_not_negative(group: Group, *names: str) -> None:
    """Raise TypeError or ValueError unless each named option is a finite number of at least 0."""
    for name in names:
        real_number(name, group[name], at_least=0)


def check_betas(group: Group) -> None:
    """Raise TypeError or ValueError unless `betas` is two numbers, each at least 0 and below 1; make it a tuple."""
    betas = group["betas"]
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise ValueError(f"betas must be two numbers, such as (0.9, 0.999), got {betas!r}")
    for index, beta in enumerate(betas):
        real_number(f"betas[{index}]", beta, at_least=0, below=1)
    group["betas"] = tuple(betas)
